"""Integer sums of blocks that span several passes, for the columns of one column group."""

from amaranth import Module, signed
from amaranth.lib.wiring import In, Out

from .array import group_sums
from .buffer import Ram
from .cell import Cell
from .layout import ArrayLayout, StructLayout, index


def totals_layout(design, count):
    """Sums of whole blocks of ``count`` columns."""
    return ArrayLayout(signed(design.format.sum_width(design.format.terms)), count)


def pass_layout():
    """What the partial sums need to know of a row: ``opens`` and ``closes`` as in :func:`rtl.sequencer.beat_layout`."""
    return StructLayout({name: 1 for name in ("valid", "opens", "closes")})


class Partial(Cell):
    """Adds up the passes of a block; the last one's totals go to a memory of their own, from which they are folded.

    Cycles are counted from the one in which ``west`` shows a row. Its sums are there at cycle 1, and in the memory
    at the end of it.

    Parameters
    ----------
    design : golden.spec.config.Design

    Members
    -------
    west, east : ``In``, ``Out(pass_layout)``
        About the row; ``east`` is a cycle later.
    address, address_east : ``In``, ``Out``
        Word of the row, likewise.
    sums : ``In``
        Sums of the columns.
    fold_en, fold_address : ``In``
        Totals to read: one cycle later on ``o``, held while ``fold_en`` is low.
    o : ``Out(totals_layout)``
    """
    kind = "partial"
    #: Fewest cycles between two rows with the same address.
    INTERVAL = 2

    def __init__(self, design):
        self.design = design
        kc, word = design.group[1], index(design.depth)
        super().__init__({
            "west": In(pass_layout()), "east": Out(pass_layout()), "address": In(word), "address_east": Out(word),
            "sums": In(group_sums(design, design.height)), "fold_en": In(1), "fold_address": In(word),
            "o": Out(totals_layout(design, kc)),
        }, m=design.format.mantissa, b=design.format.terms, h=design.height, c=kc, d=design.depth)

    def body(self, platform):
        m = Module()
        layout = totals_layout(self.design, self.design.group[1])
        size = layout.size
        m.d.sync += [self.east.eq(self.west), self.address_east.eq(self.address)]
        m.submodules.running = running = Ram(self.design.depth, size)
        m.submodules.totals = totals = Ram(self.design.depth, size)
        width = layout.elem_shape.width
        # The memories' write ports register the sums.
        for column in range(layout.length):
            before = (running.r_data.word_select(column, width) & ~self.east.opens.replicate(width)).as_signed()
            for bank in (running, totals):
                m.d.comb += bank.w_data.word_select(column, width).eq(before + self.sums[column])
        m.d.comb += [
            running.r_en.eq(1), running.r_addr.eq(self.address),
            running.w_en.eq(self.east.valid), running.w_addr.eq(self.address_east),
            totals.w_en.eq(self.east.valid & self.east.closes), totals.w_addr.eq(self.address_east),
            totals.r_en.eq(self.fold_en), totals.r_addr.eq(self.fold_address), self.o.as_value().eq(totals.r_data),
        ]
        return m
