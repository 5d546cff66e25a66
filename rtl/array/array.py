"""The grid of elements, wired by compass."""

from dataclasses import dataclass

from amaranth import Cat, Module, Shape
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.compass import west_to_east
from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from ..lib.skew import Skew, delay
from ..number.kinds import number_of
from ..number.number import Number
from .pe import Group, row_signature, sum_signature


def weight_word(number, shape):
    """Weights of one group, row by row: what the array loads per column group and cycle."""
    rows, cols = shape
    return ArrayLayout(ArrayLayout(number.weight, cols), rows)


class GroupRow(Component):
    """A row of groups from west to east.

    Parameters
    ----------
    group : rtl.array.pe.Group.Parameters
    count : int
        Column groups.

    Members
    -------
    west : ``In(row_signature)``
        Reaches group column j after j cycles.
    weight : ``In(weight_word).array``
        One word per group column, valid when ``swap`` is there.
    head : ``In(kc heads).array``
        Where a group has one: with every row of X.
    north, south : ``In(sum_signature).array``, ``Out(sum_signature).array``
        By group column; no ``north`` in the top row of a segment.
    """
    kind, area, apart = "row", "elements", True

    @dataclass(frozen=True)
    class Parameters:
        group: Group.Parameters = parameter("")
        count: int = parameter("x")

        @classmethod
        def of(cls, design, above=None):
            """The row of a design below ``above`` rows of its segment: the lowest one, if not given."""
            return cls(Group.Parameters.of(design, above), design.group_cols)

    @staticmethod
    def ports(params):
        group, count = params.group, params.count
        kr, kc = group.shape
        members = {"west": In(row_signature(group.number, kr, group.start, group.join)),
                   "weight": In(weight_word(group.number, group.shape)).array(count),
                   "south": Out(sum_signature(group.south, kc)).array(count)}
        if group.north is not None:
            members["north"] = In(sum_signature(group.north, kc)).array(count)
        if group.head is not None:
            members["head"] = In(ArrayLayout(group.head, kc)).array(count)
        return members

    def body(self, platform):
        m, params = Module(), self.params.group
        groups = [Group.made(params) for _ in range(self.params.count)]
        for j, group in enumerate(groups):
            m.submodules[f"g{j}"] = group
            m.d.comb += group.weight.eq(self.weight[j])
            connect(m, group.south, flipped(self.south[j]))
            if params.north is not None:
                connect(m, flipped(self.north[j]), group.north)
            if params.head is not None:
                m.d.comb += group.head.eq(self.head[j])
        west_to_east(m, flipped(self.west), groups)
        return m


class Array(Component):
    """All rows of groups, with the skew of the activations.

    A row of X that enters at cycle t is at group (i, j) at ``t + 1 + i * step + j``; the sums of segment s leave group
    column j at ``t + 1 + lead + (s + 1) * h * step + j``, h groups a segment. Without registers inside elements
    ``step`` is 1 and ``lead`` 0; see :class:`rtl.number.number.Number`.

    Parameters
    ----------
    number : rtl.number.number.Number
    rows, cols : int
        Elements along K and N.
    height : int
        Rows of a segment.
    group : tuple of int
        Rows and columns of a group.
    joined : int
        Segments that add up to one while ``joins``.
    gated : bool
        Whether the weights have a gated clock, one a group.

    Members
    -------
    x : ``In(elements)``
        A row of X: as many as the rows reach.
    joins : ``In(1)``
        Only where segments may be joined: this row's sums go on from one segment to the next; those that leave a
        segment which is not the last of its ``joined`` are without meaning then.
    head : ``In(kc heads).array``
        By segment and group column, where columns start from one, with every row of X: for one that enters at t, that
        of segment s is there at ``t + 1 + s * h * step + j``, h groups a segment.
    swap : ``In(1)``
        High with the first row of X that uses a new tile of weights.
    sparse : ``In(1)``
        With ``swap``, where commands may be sparse: whether the weights are.
    weight : ``In(weight_word).array``
        One word per group column: with ``swap`` at cycle t, group row i of group column j at ``t + i * step + j``.
    sums : ``Out(kc sums).array``
        By segment and group column.
    """
    kind, area, apart = "array", "elements", True

    @dataclass(frozen=True)
    class Parameters:
        number: Number = parameter("")
        rows: int = parameter("r")
        cols: int = parameter("c")
        height: int = parameter("h")
        group: tuple[int, int] = parameter("g")
        joined: int = parameter("j", 1)
        gated: bool = parameter("gated", False, rare=True)

        @property
        def segments(self):
            """Segments that a column is cut into; rows below the last one are idle."""
            return self.rows // self.height

        @property
        def latency(self):
            """Cycles from a row of X to the sums of segment 0 in group column 0, but for one at the edge."""
            return self.number.lead + self.height // self.group[0] * self.number.step

        @classmethod
        def of(cls, design):
            """The array of a design."""
            return cls(number_of(design), design.rows, design.cols, design.height, design.group, design.joined,
                       design.gated)

    @staticmethod
    def ports(params):
        number, groups = params.number, params.cols // params.group[1]
        whole, head = params.height * params.joined, number.head(params.height)
        sums = ArrayLayout(number.sum(whole, whole), params.group[1])
        members = {"x": In(ArrayLayout(number.element, number.reach(params.rows))), "swap": In(1),
                   "weight": In(weight_word(number, params.group)).array(groups),
                   "sums": Out(sums).array(params.segments, groups)}
        if number.modes:
            members["sparse"] = In(1)
        if params.joined > 1:
            members["joins"] = In(1)
        if head is not None:
            members["head"] = In(ArrayLayout(head, params.group[1])).array(params.segments, groups)
        return members

    @property
    def latencies(self):
        """``result``: from a row of X to the sums of segment 0 in group column 0."""
        return {"result": 1 + self.params.latency}

    def body(self, platform):
        m, params = Module(), self.params
        number, (kr, kc), height = params.number, params.group, params.height
        group_rows, group_cols = params.rows // kr, params.cols // kc
        per_segment = height // kr
        reach = number.reach(kr)
        act = ArrayLayout(number.activation, reach)
        m.submodules.skew = skew = Skew(Shape.cast(act), group_rows, first=1, step=number.step)
        m.submodules.swap_skew = swap_skew = Skew(1, group_rows, step=number.step, reset_less=False)
        if number.modes:
            m.submodules.sparse_skew = sparse_skew = Skew(1, group_rows, step=number.step)
        acts = number.enter(m, [self.x[row] for row in range(number.reach(params.rows))])
        start = number.start(height)
        above = None
        for i in range(group_rows):
            segment, place = divmod(i, per_segment)
            if segment == params.segments:    # idle rows of a ragged design
                break
            above_rows = (segment % params.joined * per_segment + place) * kr
            m.submodules[f"r{i}"] = row = GroupRow(
                Group.Parameters.at(number, params.group, height, above_rows, params.joined, params.gated), group_cols)
            m.d.comb += [skew.i[i].eq(Cat(acts[i * reach:(i + 1) * reach])), swap_skew.i[i].eq(self.swap),
                         row.west.act.eq(skew.o[i]), row.west.swap.eq(swap_skew.o[i])]
            if number.modes:
                m.d.comb += [sparse_skew.i[i].eq(self.sparse), row.west.sparse.eq(sparse_skew.o[i])]
            if start is not None and not place:
                value = number.starts(m, segment, acts[segment * height:(segment + 1) * height])
                m.d.comb += row.west.start.eq(delay(m, value, 1 + segment * per_segment, f"start{segment}"))
            if row.params.group.join:
                m.d.comb += row.west.joins.eq(delay(m, self.joins, 1 + number.lead + i * number.step, f"join{segment}"))
            for j in range(group_cols):
                m.d.comb += row.weight[j].eq(self.weight[j])
                if row.params.group.head is not None:
                    m.d.comb += row.head[j].eq(self.head[segment][j])
                if above_rows:
                    connect(m, above.south[j], row.north[j])
                if place == per_segment - 1:
                    leaving = self.sums[segment][j]
                    m.d.comb += [leaving[c].eq(row.south[j].sum[c]) for c in range(kc)] if params.joined > 1 else \
                        leaving.eq(row.south[j].sum)
            above = row
        return m
