"""The grid of elements, wired by compass."""

from amaranth import Cat, Module
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .lanes import lane_shape, psum_shape
from .layout import ArrayLayout
from .pe import Group
from .skew import Skew


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
    """
    kind = "row"

    def __init__(self, design, above):
        self.design, self.above = design, above
        kr, _ = design.group
        below = above + kr
        members = {"west": In(ArrayLayout(lane_shape(design), kr)), "swap": In(1),
                   "weight": In(weight_word(design)).array(design.group_cols),
                   "south": Out(group_sums(design, below)).array(design.group_cols)}
        if above:
            members["north"] = In(group_sums(design, above)).array(design.group_cols)
        super().__init__(members, c=design.cols, **Group.parameters(design, above))

    def body(self, platform):
        m = Module()
        west, swap = self.west, self.swap
        for j in range(self.design.group_cols):
            m.submodules[f"g{j}"] = group = Group(self.design, self.above)
            m.d.comb += [group.west.eq(west), group.swap.eq(swap), group.weight.eq(self.weight[j]),
                         self.south[j].eq(group.south)]
            if self.above:
                m.d.comb += group.north.eq(self.north[j])
            west, swap = group.east, group.swap_east
        return m


class Array(Cell):
    """All rows of groups, with the skew of the activations.

    A row of X that enters at cycle t is at group (i, j) at ``t + 1 + i + j``; the sums of segment s leave group
    column j at ``t + 1 + (s + 1) * h + j``, h groups a segment.

    Parameters
    ----------
    design : golden.spec.config.Design

    Members
    -------
    x : ``In(R lanes)``
    swap : ``In(1)``
        High with the first row of X that uses a new tile of weights.
    weight : ``In(weight_word).array``
        One word per group column: with ``swap`` at cycle t, group row i of group column j at ``t + i + j``.
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
        }, **{design.arithmetic: design.lane_width}, r=design.rows, c=design.cols, h=design.height,
           g=f"{design.group[0]}x{design.group[1]}")

    def body(self, platform):
        m = Module()
        design = self.design
        kr, _ = design.group
        per_segment = design.height // kr
        m.submodules.skew = skew = Skew(ArrayLayout(lane_shape(design), kr), design.group_rows, first=1)
        m.submodules.swap_skew = swap_skew = Skew(1, design.group_rows, reset_less=False)
        north = None
        for i in range(design.group_rows):
            segment, place = divmod(i, per_segment)
            if segment == design.segments:    # idle rows of a ragged design
                break
            m.submodules[f"r{i}"] = row = GroupRow(design, place * kr)
            m.d.comb += [skew.i[i].eq(Cat(self.x[i * kr + k] for k in range(kr))), swap_skew.i[i].eq(self.swap),
                         row.west.eq(skew.o[i]), row.swap.eq(swap_skew.o[i])]
            for j in range(design.group_cols):
                m.d.comb += row.weight[j].eq(self.weight[j])
                if place:
                    m.d.comb += row.north[j].eq(north[j])
                if place == per_segment - 1:
                    m.d.comb += self.sums[segment][j].eq(row.south[j])
            north = row.south
        return m
