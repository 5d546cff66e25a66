"""Integer sums of blocks that span several passes, for the columns of one column group."""

from dataclasses import dataclass

from amaranth import Module, Shape, signed
from amaranth.lib.wiring import In, Out

from hbfp.design import ConflictError

from ..fixed.scales import Scales
from ..lib.compass import pass_east
from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.memory import Ram
from ..lib.names import parameter
from ..number.kinds import accumulation_of, number_of
from .digits import Digits
from .signatures import pass_layout, read_signature, row_signature


def require_shared(design):
    """Raise ConflictError if no columns share an accumulator."""
    if design.share == 1:
        raise ConflictError("share", design.share, "must be 2 or more: only columns that share have this unit")


def exponents_ahead(design):
    """What the accumulation of a design adds to the exponents of X, where columns share it."""
    return accumulation_of(design).offset(design.block_sum_width)


def shared_scales(design):
    """Exponents of X, with what the accumulation adds to them, and of W."""
    return Scales.of(design, exponents_ahead(design))


def totals_layout(width, count):
    """Sums of whole blocks, of ``width`` bits, of ``count`` columns."""
    return ArrayLayout(signed(width), count)


class BlockSum(Component):
    """Adds up the passes of a block; the last one's totals go to a memory, from which they are accumulated.

    Cycles are counted from the one in which ``west`` shows a row. Its sums are there at cycle 1, and in the memory
    at the end of it.

    Parameters
    ----------
    sums : Shape
        Shape of the sum of a column in a pass.
    total : int
        Bits of the sum of a block.
    columns : int
    depth : int
        Words of the memories.
    digits : Digits
        None where no mantissas are wide.

    Members
    -------
    west, east : ``In(row_signature)``, ``Out(row_signature)``
        ``east`` is ``west`` a cycle later.
    sums : ``In``
        Sums of the columns.
    read : ``In(read_signature)``
        Totals to read: one cycle later on ``o``.
    o : ``Out(totals_layout)``
    """
    kind, area, apart = "block_sum", "accumulation", True
    blocked = True
    #: Fewest cycles between two rows with the same address.
    INTERVAL = 2

    @dataclass(frozen=True)
    class Parameters:
        sums: Shape = parameter("s")
        total: int = parameter("t")
        columns: int = parameter("c")
        depth: int = parameter("d")
        digits: Digits | None = parameter("", None)

        @classmethod
        def of(cls, design):
            """The sums of one column group of a design."""
            require_shared(design)
            return cls(number_of(design).sum(design.height, design.height),
                       design.block_sum_width, design.group[1], design.depth,
                       Digits.of(design))

    @staticmethod
    def ports(params):
        row = row_signature(params.depth, pass_layout(params.digits is not None))
        return {
            "west": In(row), "east": Out(row), "sums": In(ArrayLayout(params.sums, params.columns)),
            "read": In(read_signature(params.depth)), "o": Out(totals_layout(params.total, params.columns)),
        }

    @property
    def latencies(self):
        """``interval``: fewest from a row to the next with its address."""
        return {"interval": self.INTERVAL}

    def body(self, platform):
        m, params = Module(), self.params
        layout = totals_layout(params.total, params.columns)
        size = layout.size
        pass_east(m, self.west, self.east)
        beat, address = self.east.beat, self.east.address
        m.submodules.running = running = Ram(params.depth, size)
        m.submodules.totals = totals = Ram(params.depth, size)
        width = layout.elem_shape.width
        sums = [self.sums[column] for column in range(layout.length)]
        if params.digits:
            sums = params.digits.join(m, "s", sums, beat)
        # The memories' write ports register the sums.
        for column in range(layout.length):
            before = (running.r_data.word_select(column, width) & ~beat.opens.replicate(width)).as_signed()
            for bank in (running, totals):
                m.d.comb += bank.w_data.word_select(column, width).eq(before + sums[column])
        m.d.comb += [
            running.r_en.eq(1), running.r_addr.eq(self.west.address),
            running.w_en.eq(beat.valid), running.w_addr.eq(address),
            totals.w_en.eq(beat.valid & beat.closes), totals.w_addr.eq(address),
            totals.r_en.eq(self.read.en), totals.r_addr.eq(self.read.address), self.o.as_value().eq(totals.r_data),
        ]
        return m
