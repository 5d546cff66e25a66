"""Reductions of the vector unit: running totals of the lanes, and their tree once a row has passed."""

from amaranth import Cat, Const, Mux, Signal

from hbfp.golden.spec.vector import Reduce

from .lane import LOWEST, NEGATIVE_ZERO, Reduction, later


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
    several : Several
        Where a pass takes several rows of one beat, each of the lanes' adders is one of the tree, which needs one less
        than there are lanes: a total comes in every cycle.

    Attributes
    ----------
    there, index, value : Value
        A total is to be put into the scalar ``index`` in this cycle.
    place : Value
        Of several rows, which one it is of.
    comes : tuple of Value
        A pass's last total will be put into a scalar in two cycles, and the scalar's number.
    busy : Value
        Totals are added up.
    """

    def __init__(self, m, unit, line, result, length, en, several):
        levels, turns, whole = (unit.lanes - 1).bit_length(), unit.reduce_turns, unit.reduce_cycles
        arrives, stored = line.arrives, line.stored
        starts, sums = (Signal(name=name) for name in ("total_starts", "total_sums"))
        maximum = Signal(name="total_maximum", reset_less=True)
        self.index = Signal(4, name="total_index", reset_less=True)
        m.d.comb += [starts.eq(en & arrives.valid & arrives.beat.first & arrives.beat.reduce.any()),
                     sums.eq(stored.valid & stored.beat.reduce.any())]
        largest = Mux(starts, arrives.beat.reduce == Reduce.MAX, maximum)
        with m.If(starts):
            m.d.sync += [maximum.eq(largest), self.index.eq(arrives.beat.reduce_index)]
        # Cycles since a row's last beat: an adder's for its sum and for each level of the tree, whose root is put away
        # in the last one.
        tree = Signal(whole)
        level = Cat(tree[turns * each - 1] for each in range(1, levels + 1)).any()
        ends = sums & stored.beat.last
        with m.If(en):
            m.d.sync += tree.eq(Cat(sums & several.either(stored.beat.last), tree[:-1]))
        tail = (length - 1)[:levels]    # last valid lane of the last beat
        within = [lane <= tail if lane else Const(1, 1) for lane in range(unit.lanes)]
        lanes = [Reduction(unit.sum) for _ in range(unit.lanes)]
        for lane, reduction in enumerate(lanes):
            m.submodules[f"reduction{lane}"] = reduction
            inside = ~stored.beat.last | within[lane] if lane else within[0]
            pair = (lanes[2 * lane].o, lanes[2 * lane + 1].o) if 2 * lane + 1 < unit.lanes else (0, 0)
            if unit.short_rows:
                values = [Mux(each, value, Mux(largest, LOWEST, NEGATIVE_ZERO))
                          for each, value in zip(within, result, strict=True)]
                pair = self._of_rows(lane, lanes, pair, values, several.there)
            m.d.comb += [reduction.start.eq(starts), reduction.maximum.eq(largest),
                         reduction.tree.eq(several.either(~sums)),
                         reduction.x.eq(result[lane]), reduction.left.eq(pair[0]), reduction.right.eq(pair[1]),
                         reduction.step.eq(en & several.either(sums & inside | level))]
            if unit.sum:
                m.d.comb += reduction.en.eq(en)
        lasts, self.place, self.value = tree, Const(0, 1), lanes[0].o
        if unit.short_rows:
            lasts, root = Signal(whole, name="total_lasts"), Signal(32, name="total_root", reset_less=True)
            top = later(m, en, "total_top", lanes[-2].o, turns - 1)
            self.place = Signal(range(unit.short_rows), name="total_place")
            self.value = Mux(several.there, root, lanes[0].o)
            with m.If(en):
                m.d.sync += [lasts.eq(Cat(ends, lasts[:-1])), root.eq(top),
                             self.place.eq(Mux(lasts[-1], 0, self.place + tree[-1]))]
        before = [(arrives.valid & arrives.beat.last & arrives.beat.reduce.any(), arrives.beat.reduce_index),
                  (ends, self.index), *((each, self.index) for each in lasts)]
        self.there, self.comes, self.busy = tree[-1], before[whole - 1], tree.any()

    @staticmethod
    def _of_rows(number, adders, pair, values, many):
        """What an adder adds up: of one row its two lanes, of several those of the tree's first level a beat's values,
        and the others what two of the level before have.
        """
        half = len(adders) // 2
        if number >= half:
            return [each.o for each in adders[2 * (number - half):][:2]]
        return [Mux(many, value, own) for value, own in zip(values[2 * number:], pair, strict=False)]
