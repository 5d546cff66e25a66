"""The block sums of a group of columns, added to partial sums that come in."""

from dataclasses import dataclass
from typing import ClassVar

from amaranth import Module, Shape, Signal, signed
from amaranth.lib.wiring import In, Out, Signature

from ..accumulate.accumulator import Accumulator
from ..fixed.scales import Scales
from ..lib.compass import pass_east
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from ..lib.skew import delay
from ..number.accumulation import Accumulation
from ..number.kinds import accumulation_of, number_of
from ..number.streams import scale_layout


def row_signature(exponent, segments):
    """What is passed on from west to east about a row of X; names as for accumulators."""
    return Signature({"load": Out(segments), "exponent": Out(signed(exponent)).array(segments),
                      "invalid": Out(1).array(segments)})


class PartialSums(Accumulator):
    """For the columns of one column group: ``o = start + block sums``, segments in ascending order.

    As an accumulator without banks. Cycles are counted from the one in which ``west`` shows a row: its sum of segment
    0 is there at cycle 1, that of segment s at ``1 + s * h``; ``start`` is read at cycle 2.

    Parameters
    ----------
    accumulation, sums, columns, segments, spacing, scales, scale_cols
        See :class:`~rtl.accumulate.accumulator.Accumulator`.

    Members
    -------
    west, east : ``In(row_signature)``, ``Out(row_signature)``
        ``east`` is ``west`` a cycle later; the row's exponent and flag in segment s, and its ``load``, come at cycle
        ``s * h``.
    w, sums : ``In``
        See :class:`~rtl.accumulate.accumulator.Accumulator`.
    start : ``In``
        FP32 partial sums of the columns.
    o : ``Out``
        The new ones, ``latency`` cycles after ``west``.
    """
    kind = "partial_sums"

    @dataclass(frozen=True)
    class Parameters:
        accumulation: Accumulation = parameter("")
        sums: Shape = parameter("s")
        columns: int = parameter("c")
        segments: int = parameter("n")
        spacing: int = parameter("h")
        scales: Scales = parameter("")
        scale_cols: int = parameter("k", 1)

        #: What sums of pods never have.
        block_sum: ClassVar[int] = 0
        skips: ClassVar[bool] = False
        wait: ClassVar[int] = 0

        @property
        def latency(self):
            """Cycles from ``west`` to ``o``."""
            return 3 + (self.segments - 1) * self.spacing

        @classmethod
        def of(cls, design):
            """The parameters of one column group of a design."""
            return cls(accumulation_of(design), number_of(design).sum(design.height, design.height), design.group[1],
                       design.segments, design.height // design.group[0], Scales.of(design), design.scale_cols)

    @staticmethod
    def ports(params):
        columns, segments, scales = params.columns, params.segments, params.scales
        row, values = row_signature(scales.row, segments), ArrayLayout(32, columns)
        return {"west": In(row), "east": Out(row), "w": In(scale_layout(scales.column, columns)).array(segments),
                "sums": In(ArrayLayout(params.sums, columns)).array(segments), "start": In(values), "o": Out(values)}

    @property
    def latencies(self):
        """``result``: from ``west`` to ``o``."""
        return {"result": self.params.latency}

    def body(self, platform):
        m, params = Module(), self.params
        pass_east(m, self.west, self.east, reset_less=("exponent", "invalid"))
        scales = self._scales(m, self.sums)
        result = Signal.like(self.o, name="result", reset_less=True)
        for column in range(params.columns):
            acc = self.start[column]
            for s in range(params.segments):
                acc = delay(m, acc, params.spacing, f"c{column}_acc{s}") if s else acc
                acc = params.accumulation.add(m, (s, column), acc, [self.sums[s][column]], scales[s][column], None)
            m.d.sync += result[column].eq(acc)
        m.d.comb += self.o.eq(result)
        return m
