"""Memories: one write port, one read port."""

from amaranth import Module
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .cell import Cell


class Ram(Cell):
    """A memory with one write port and one registered read port; contents are lost on no event.

    Parameters
    ----------
    depth, width : int
        Words, at least 2 (one word has no address), and bits of a word.
    granules : int
        Parts of a word that can be written alone.

    Members
    -------
    w_en : ``In(granules)``
        Write enables; bit 0 writes the lowest part.
    w_addr, w_data : ``In``
        Written at the end of the cycle.
    r_en, r_addr : ``In``
        ``r_data`` is word ``r_addr`` as it was before this cycle's write, one cycle later; it holds while ``r_en``
        is low.
    r_data : ``Out(width)``
    """
    kind = "ram"

    def __init__(self, depth, width, granules=1):
        if width % granules:
            raise ValueError(f"RAM width {width} must be a multiple of its granules, not of {granules!r}")
        depth = max(depth, 2)
        self.depth, self.width, self.granules = depth, width, granules
        bits = (depth - 1).bit_length()
        super().__init__({"w_en": In(granules), "w_addr": In(bits), "w_data": In(width),
                          "r_en": In(1), "r_addr": In(bits), "r_data": Out(width)},
                         d=depth, w=width, g=granules)

    def body(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.width, depth=self.depth, init=[])
        write = memory.write_port(granularity=self.width // self.granules)
        read = memory.read_port()
        m.d.comb += [write.en.eq(self.w_en), write.addr.eq(self.w_addr), write.data.eq(self.w_data),
                     read.en.eq(self.r_en), read.addr.eq(self.r_addr), self.r_data.eq(read.data)]
        return m
