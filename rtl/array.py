"""The grid of elements, wired by compass."""

from amaranth import Cat, Module
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .dot import Correction, Recode
from .lanes import act_shape, lane_shape, psum_shape
from .layout import ArrayLayout
from .mac import lead, step
from .pe import Group
from .skew import Skew, delay


def weight_word(design):
    """Weights of one group, row by row: what the array loads per column group and cycle."""
    kr, kc = design.group
    return ArrayLayout(ArrayLayout(lane_shape(design), kc), kr)


def group_sums(design, terms):
    """Partial sums of one group's columns."""
    return ArrayLayout(psum_shape(design, terms), design.group[1])


class GroupRow(Cell):
    """A row of groups from west to east.

    Parameters
    ----------
    design : golden.spec.config.Design
    above : int
        As for :class:`rtl.pe.Group`.

    Members
    -------
    west : ``In(kr lanes)``
        Reaches group column j after j cycles.
    swap : ``In(1)``
        Likewise; loads weights as in :class:`rtl.pe.Group`.
    weight : ``In(weight_word).array``
        One word per group column, valid when ``swap`` is there.
    north, south : ``In(group_sums).array``, ``Out(group_sums).array``
        By group column.
    start : ``In``
        The correction of recoded activations, with ``west``, in the top row of a segment.
    """
    kind = "row"

    def __init__(self, design, above):
        self.design, self.above = design, above
        kr, _ = design.group
        members = {"west": In(ArrayLayout(act_shape(design), kr)), "swap": In(1),
                   "weight": In(weight_word(design)).array(design.group_cols),
                   "south": Out(group_sums(design, above + kr)).array(design.group_cols)}
        if above:
            members["north"] = In(group_sums(design, above)).array(design.group_cols)
        elif design.recoded:
            members["start"] = In(psum_shape(design, 0))
        super().__init__(members, c=design.cols, **Group.parameters(design, above))

    def body(self, platform):
        m = Module()
        west, swap = self.west, self.swap
        start = None if self.above or not self.design.recoded else self.start
        for j in range(self.design.group_cols):
            m.submodules[f"g{j}"] = group = Group(self.design, self.above)
            m.d.comb += [group.west.eq(west), group.swap.eq(swap), group.weight.eq(self.weight[j]),
                         self.south[j].eq(group.south)]
            if self.above:
                m.d.comb += group.north.eq(self.north[j])
            if start is not None:
                m.d.comb += group.start.eq(start)
                start = group.start_east
            west, swap = group.east, group.swap_east
        return m


class Array(Cell):
    """All rows of groups, with the skew of the activations.

    A row of X that enters at cycle t is at group (i, j) at ``t + 1 + i * step + j``; the sums of segment s leave group
    column j at ``t + 1 + lead + (s + 1) * h * step + j``, h groups a segment. Without registers inside elements
    ``step`` is 1 and ``lead`` 0; else see :mod:`rtl.mac`.

    Parameters
    ----------
    design : golden.spec.config.Design

    Members
    -------
    x : ``In(R lanes)``
    swap : ``In(1)``
        High with the first row of X that uses a new tile of weights.
    weight : ``In(weight_word).array``
        One word per group column: with ``swap`` at cycle t, group row i of group column j at ``t + i * step + j``.
    sums : ``Out(group_sums).array``
        By segment and group column.
    """
    kind = "array"

    def __init__(self, design):
        self.design = design
        super().__init__({
            "x": In(ArrayLayout(lane_shape(design), design.rows)), "swap": In(1),
            "weight": In(weight_word(design)).array(design.group_cols),
            "sums": Out(group_sums(design, design.height)).array(design.segments, design.group_cols),
        }, **{design.arithmetic: design.lane_width}, **({"": "recoded"} if design.recoded else {}),
           r=design.rows, c=design.cols, h=design.height,
           g=f"{design.group[0]}x{design.group[1]}", **({"p": design.pipeline} if design.pipeline else {}))

    @staticmethod
    def latency(design):
        """Cycles from a row of X to the sums of segment 0 in group column 0, but for one at the edge."""
        return lead(design) + (design.height // design.group[0]) * step(design)

    def body(self, platform):
        m = Module()
        design = self.design
        kr, _ = design.group
        per_segment = design.height // kr
        act = ArrayLayout(act_shape(design), kr)
        m.submodules.skew = skew = Skew(act, design.group_rows, first=1, step=step(design))
        m.submodules.swap_skew = swap_skew = Skew(1, design.group_rows, step=step(design), reset_less=False)
        acts = self._recode(m) if design.recoded else [self.x[row] for row in range(design.rows)]
        north = None
        for i in range(design.group_rows):
            segment, place = divmod(i, per_segment)
            if segment == design.segments:    # idle rows of a ragged design
                break
            m.submodules[f"r{i}"] = row = GroupRow(design, place * kr)
            m.d.comb += [skew.i[i].eq(Cat(acts[i * kr:(i + 1) * kr])), swap_skew.i[i].eq(self.swap),
                         row.west.eq(skew.o[i]), row.swap.eq(swap_skew.o[i])]
            if design.recoded and not place:
                m.d.comb += row.start.eq(self._correction(m, segment, acts))
            for j in range(design.group_cols):
                m.d.comb += row.weight[j].eq(self.weight[j])
                if place:
                    m.d.comb += row.north[j].eq(north[j])
                if place == per_segment - 1:
                    m.d.comb += self.sums[segment][j].eq(row.south[j])
            north = row.south
        return m

    def _recode(self, m):
        """Digits of every activation, as it enters."""
        codes = []
        for row in range(self.design.rows):
            m.submodules[f"recode{row}"] = recode = Recode(self.design.lane_width)
            m.d.comb += recode.i.eq(self.x[row])
            codes.append(recode.o)
        return codes

    def _correction(self, m, segment, acts):
        """What a segment's columns start from, when its first group has the row of X."""
        height = self.design.height
        m.submodules[f"correction{segment}"] = correction = Correction(self.design.lane_width, height)
        m.d.comb += correction.code.eq(Cat(acts[segment * height:(segment + 1) * height]))
        return delay(m, correction.o, 1 + segment * height // self.design.group[0], f"start{segment}")
