"""Pruning in front of the converter: N of every M terms stay, the largest."""

from dataclasses import dataclass

from amaranth import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.design import ConflictError

from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter


def larger(m, magnitudes, name):
    """Which others stay rather than an element, a bit each: those that are larger, and of equal ones the lower.

    One comparison for each pair.
    """
    count = len(magnitudes)
    wins = [Signal(count, name=f"{name}_beaten{j}") for j in range(count)]
    for low in range(count):
        for high in range(low + 1, count):
            first = Signal(name=f"{name}_first{low}_{high}")
            m.d.comb += [first.eq(magnitudes[low] >= magnitudes[high]), wins[high][low].eq(first),
                         wins[low][high].eq(~first)]
    return wins


class Prune(Component):
    """Keeps the N largest magnitudes of each group of M FP32 numbers, the lowest place on a tie; the rest become +0.

    Groups are M lanes side by side, so K has to run along the lanes: a square tile of weights is sent by columns.
    Golden twin: :func:`golden.sparsity.prune`, NaN and Inf by their bits included.

    Parameters
    ----------
    lanes : int
        Numbers of a beat, a multiple of M.
    kept, group : int
        N and M.

    Members
    -------
    i, o : ``In(stream)``, ``Out(stream)``
        Beats of FP32 numbers, as the converter takes them; one a cycle, a cycle later.
    """
    kind, area, apart = "prune", "converter", True

    @dataclass(frozen=True)
    class Parameters:
        lanes: int = parameter("l")
        kept: int = parameter("n")
        group: int = parameter("m")

        @classmethod
        def of(cls, design):
            """The pruner in front of a design's converter.

            Raises
            ------
            ConflictError
                If the design has no sparse weights, or the converter does not take whole groups.
            """
            design.require_sparse()
            kept, group = design.sparse
            if design.encode_lanes % group:
                raise ConflictError("rows", design.rows, f"must make the converter's {design.encode_lanes} lanes a "
                                    f"multiple of {group}, for whole groups")
            return cls(design.encode_lanes, kept, group)

    @staticmethod
    def ports(params):
        beats = stream.Signature(ArrayLayout(32, params.lanes))
        return {"i": In(beats), "o": Out(beats)}

    @property
    def latencies(self):
        """``result``: from a beat to the same one, pruned."""
        return {"result": 1}

    def body(self, platform):
        m, params = Module(), self.params
        pruned = Signal(ArrayLayout(32, params.lanes))
        for first in range(0, params.lanes, params.group):
            places = range(first, first + params.group)
            beaten = larger(m, [self.i.payload[place][:31] for place in places], f"g{first}")
            for place, by in zip(places, beaten, strict=True):
                stays = Signal(name=f"stays{place}")
                m.d.comb += [stays.eq(sum(by, 0) < params.kept),
                             pruned[place].eq(self.i.payload[place] & stays.replicate(32))]
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(pruned)]
        return m
