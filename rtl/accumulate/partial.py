"""Integer sums of blocks that span several passes, for the columns of one column group."""

from dataclasses import dataclass

from amaranth import Module, Shape, signed
from amaranth.lib.wiring import In, Out

from hbfp.design import ConflictError

from ..lib.cell import Cell
from ..lib.layout import ArrayLayout, StructLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..number.kinds import number_of


def require_shared(design):
    """Raise ConflictError if no columns share an accumulator."""
    if design.share == 1:
        raise ConflictError("share", design.share, "must be 2 or more: only columns that share have this unit")


def totals_layout(width, count):
    """Sums of whole blocks, of ``width`` bits, of ``count`` columns."""
    return ArrayLayout(signed(width), count)


def pass_layout():
    """What the partial sums need to know of a row; names as in :func:`rtl.accumulate.beat.beat_layout`."""
    return StructLayout({name: 1 for name in ("valid", "opens", "closes")})


class Partial(Cell):
    """Adds up the passes of a block; the last one's totals go to a memory of their own, from which they are folded.

    Cycles are counted from the one in which ``west`` shows a row. Its sums are there at cycle 1, and in the memory
    at the end of it.

    Parameters
    ----------
    sums : Shape
        Of the sum of a column and pass.
    total : int
        Bits of the sum of a block.
    columns : int
    depth : int
        Words of the memories.

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
    kind, area, apart = "partial", "accumulation", True
    blocked = True
    #: Fewest cycles between two rows with the same address.
    INTERVAL = 2

    @dataclass(frozen=True)
    class Parameters:
        sums: Shape = parameter("s")
        total: int = parameter("t")
        columns: int = parameter("c")
        depth: int = parameter("d")

        @classmethod
        def of(cls, design):
            """The sums of one column group of a design."""
            require_shared(design)
            return cls(number_of(design).sum(design.height, design.height),
                       design.format.sum_width(design.format.terms), design.group[1], design.depth)

    @staticmethod
    def ports(params):
        word = index(params.depth)
        return {
            "west": In(pass_layout()), "east": Out(pass_layout()), "address": In(word), "address_east": Out(word),
            "sums": In(ArrayLayout(params.sums, params.columns)), "fold_en": In(1), "fold_address": In(word),
            "o": Out(totals_layout(params.total, params.columns)),
        }

    @property
    def latencies(self):
        """``interval``: fewest from a row to the next with its address."""
        return {"interval": self.INTERVAL}

    def body(self, platform):
        m, params = Module(), self.params
        layout = totals_layout(params.total, params.columns)
        size = layout.size
        m.d.sync += [self.east.eq(self.west), self.address_east.eq(self.address)]
        m.submodules.running = running = Ram(params.depth, size)
        m.submodules.totals = totals = Ram(params.depth, size)
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
