"""Memories: one write port, one read port; or one port for both."""

from dataclasses import dataclass

from amaranth import Module, Mux
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .component import Component
from .names import parameter


class Ram(Component):
    """A memory with one write port and one registered read port; contents are lost on no event.

    Parameters
    ----------
    depth, width : int
        Words, at least 2 (one word has no address), and bits of a word.
    granules : int
        Parts of a word that can be written alone.
    single : bool
        Whether there is one port, with ``en`` and ``addr`` in place of ``r_en``, ``r_addr`` and ``w_addr``: while
        ``en`` is high, word ``addr`` is written where a bit of ``w_en`` is high, and read where none is.

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
    kind, apart = "ram", True

    @dataclass(frozen=True)
    class Parameters:
        depth: int = parameter("d")
        width: int = parameter("w")
        granules: int = parameter("g", 1)
        single: bool = parameter("single", False, rare=True)

        def __post_init__(self):
            if self.width % self.granules:
                raise ValueError(f"RAM width {self.width} must be a multiple of its granules, not of "
                                 f"{self.granules!r}")
            object.__setattr__(self, "depth", max(self.depth, 2))

    @staticmethod
    def ports(params):
        bits = (params.depth - 1).bit_length()
        if params.single:
            return {"en": In(1), "w_en": In(params.granules), "addr": In(bits), "w_data": In(params.width),
                    "r_data": Out(params.width)}
        return {"w_en": In(params.granules), "w_addr": In(bits), "w_data": In(params.width),
                "r_en": In(1), "r_addr": In(bits), "r_data": Out(params.width)}

    @property
    def shape(self):
        """Words, and bits of one; and 1, where there is one port."""
        return (self.params.depth, self.params.width) + (1,) * self.params.single

    def body(self, platform):
        m, params = Module(), self.params
        contents = Memory(shape=params.width, depth=params.depth, init=[])
        m.submodules.contents = contents
        write = contents.write_port(granularity=params.width // params.granules)
        read = contents.read_port()
        if params.single:
            m.d.comb += [write.en.eq(Mux(self.en, self.w_en, 0)), read.en.eq(self.en & ~self.w_en.any()),
                         write.addr.eq(self.addr), read.addr.eq(self.addr), write.data.eq(self.w_data),
                         self.r_data.eq(read.data)]
            return m
        m.d.comb += [write.en.eq(self.w_en), write.addr.eq(self.w_addr), write.data.eq(self.w_data),
                     read.en.eq(self.r_en), read.addr.eq(self.r_addr), self.r_data.eq(read.data)]
        return m
