"""A pod: rows of X against a tile of W, added to partial sums."""

from amaranth import Module
from amaranth.lib.wiring import In, Out

from hbfp.design import Design

from ..array.array import Array
from ..array.weights import WeightBuffer
from ..fixed.scales import scale_offset
from ..lib.compass import west_to_east
from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout
from ..lib.skew import delay
from ..number.streams import activations_layout, weights_layout
from .partial_sums import PartialSums


def x_layout(design):
    """A row of X on its way to a pod; ``first``: of a tile, whose weights are the next ones."""
    return StructLayout({"first": 1, "row": activations_layout(design)})


def w_layout(design):
    """A row of W on its way to a pod; ``valid``: there is one."""
    return StructLayout({"valid": 1, "row": weights_layout(design)})


class Pod(Component):
    """A weight-stationary array with two tiles of weights; block sums are added to partial sums that come and go.

    A row of X and the partial sums of its results enter together, and leave as sums ``latencies["result"]`` cycles
    later. An operation without partial sums has zeros. Golden twin: :func:`golden.pods.execute.operation`.

    Parameters
    ----------
    format, rows, ... :
        See :class:`hbfp.design.Design`.

    Members
    -------
    x : ``In(x_layout)``
        With the ``first`` row the next tile of weights is taken into use; all of it came at least two cycles before.
    w : ``In(w_layout)``
        Rows of tiles, in the order of their use; at most one tile ahead.
    sums : ``In(columns x 32)``
        With a row of X: FP32 partial sums.
    o : ``Out(columns x 32)``
    """
    kind = "pod"
    Parameters = Design

    @staticmethod
    def ports(design):
        values = ArrayLayout(32, design.cols)
        return {"x": In(x_layout(design)), "w": In(w_layout(design)), "sums": In(values), "o": Out(values)}

    @staticmethod
    def latency(design):
        """Cycles from a row of X to its sums."""
        array = Array.Parameters.of(design)
        return array.latency + design.group_cols - 1 + PartialSums.Parameters.of(design).latency

    @staticmethod
    def interval(design):
        """Fewest cycles from an operation's first row to that of the next, if rows of tiles are fewer still."""
        return max(design.rows + 1, WeightBuffer.Parameters.of(design).interval)

    @property
    def module(self):
        """Name of the Verilog module: the design's."""
        return f"{self.params.name}_pod"

    @property
    def latencies(self):
        """``result``: from a row of X to its sums. ``interval``: fewest from an operation's first row to the next's."""
        return {"result": self.latency(self.params), "interval": self.interval(self.params)}

    def body(self, platform):
        m, design = Module(), self.params
        m.submodules.weights = weights = WeightBuffer.of(design)
        m.submodules.array = array = Array.of(design)
        row, start = self.x.row, self.x.first
        m.d.comb += [
            weights.i.valid.eq(self.w.valid), weights.i.payload.eq(self.w.row), weights.start.eq(start),
            array.x.eq(row.mantissa), array.swap.eq(start),
            *(into.eq(word) for into, word in zip(array.weight, weights.weight, strict=True)),
        ]
        chain = [PartialSums.of(design) for _ in range(design.group_cols)]
        kc, arrives = design.group[1], array.params.latency
        for j, sums in enumerate(chain):
            m.submodules[f"sums{j}"] = sums
            for s in range(design.segments):
                m.d.comb += [sums.sums[s].eq(array.sums[s][j]), sums.w[s].eq(weights.scale[s][j])]
            # Columns are j cycles later than those of the first group: what enters is delayed, what leaves the less.
            columns = range(j * kc, (j + 1) * kc)
            for n, column in enumerate(columns):
                m.d.comb += [
                    sums.start[n].eq(delay(m, self.sums[column], arrives + j + 2, f"start{column}")),
                    self.o[column].eq(delay(m, sums.o[n], design.group_cols - 1 - j, f"o{column}"))]
        west = chain[0].west.signature.flip().create(path=("west",))
        per_segment, offset = design.height // design.group[0], scale_offset(design)
        for s in range(design.segments):
            cycles = (s + 1) * per_segment
            m.d.comb += [
                west.exponent[s].eq(delay(m, row.exponent[s] - offset, cycles, f"scale{s}_exponent")),
                west.invalid[s].eq(delay(m, row.invalid[s], cycles, f"scale{s}_invalid")),
                west.load[s].eq(delay(m, start, cycles, f"load{s}", reset_less=False)),
            ]
        west_to_east(m, west, chain)
        return m
