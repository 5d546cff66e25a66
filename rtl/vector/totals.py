"""Reductions of the vector unit: running totals of the lanes, and their tree once a row has passed."""

from amaranth import Cat, Const, Mux, Signal

from hbfp.golden.spec.vector import Reduce

from .lane import Reduction


class Totals:
    """Totals of the rows of passes that reduce, one after the other; plain logic inside a component.

    Parameters
    ----------
    m : Module
    unit : golden.spec.vector.VectorUnit
    line : rtl.vector.line.Line
    result : View
        The lanes' results of the beat that is stored.
    length : Value
        Elements of a row.
    en : Value
        While low all holds.

    Attributes
    ----------
    there, index, value : Value
        A total is to be put into the scalar ``index`` in this cycle.
    comes : tuple of Value
        A total will be put into a scalar in two cycles, and the scalar's number.
    busy : Value
        Totals are added up.
    """

    def __init__(self, m, unit, line, result, length, en):
        levels = (unit.lanes - 1).bit_length()
        arrives, stored = line.arrives, line.stored
        starts, sums = (Signal(name=name) for name in ("total_starts", "total_sums"))
        maximum = Signal(name="total_maximum", reset_less=True)
        self.index = Signal(4, name="total_index", reset_less=True)
        m.d.comb += [starts.eq(en & arrives.valid & arrives.beat.first & arrives.beat.reduce.any()),
                     sums.eq(stored.valid & stored.beat.reduce.any())]
        largest = Mux(starts, arrives.beat.reduce == Reduce.MAX, maximum)
        with m.If(starts):
            m.d.sync += [maximum.eq(largest), self.index.eq(arrives.beat.reduce_index)]
        # Levels of the tree, a cycle each, and the cycle in which its root is put away.
        tree = Signal(levels + 1)
        ends = sums & stored.beat.last
        with m.If(en):
            m.d.sync += tree.eq(Cat(ends, tree[:-1]))
        tail = (length - 1)[:levels]    # last valid lane of the last beat
        lanes = [Reduction() for _ in range(unit.lanes)]
        for lane, reduction in enumerate(lanes):
            m.submodules[f"reduction{lane}"] = reduction
            inside = ~stored.beat.last | (lane <= tail) if lane else Const(1, 1)
            pair = (lanes[2 * lane].o, lanes[2 * lane + 1].o) if 2 * lane + 1 < unit.lanes else (0, 0)
            m.d.comb += [reduction.start.eq(starts), reduction.maximum.eq(largest), reduction.tree.eq(~sums),
                         reduction.x.eq(result[lane]), reduction.left.eq(pair[0]), reduction.right.eq(pair[1]),
                         reduction.step.eq(en & (sums & inside | tree[:-1].any()))]
        before = [(arrives.valid & arrives.beat.last & arrives.beat.reduce.any(), arrives.beat.reduce_index),
                  (ends, self.index), *((level, self.index) for level in tree)]
        self.there, self.value, self.comes, self.busy = tree[-1], lanes[0].o, before[levels], tree.any()
