"""Processing elements, a group at a time."""

from dataclasses import dataclass

from amaranth import Module, Shape, Signal
from amaranth.lib.wiring import In, Out, Signature

from ..lib.compass import pass_east
from ..lib.component import Component
from ..lib.gated import Gated
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from ..number.kinds import number_of
from ..number.number import Number


def row_signature(number, rows, start=None, join=False):
    """What groups pass on from west to east.

    ``act``: activations that ``rows`` elements choose from, as the kind of number has them. ``swap``: load the
    weights, a cycle ahead of the first activations that use them. ``sparse``, where commands may be: whether the
    weights that ``swap`` loads are. ``start``, where columns start from something: its value. ``joins``, where a
    segment may go on from the one above: whether it does.
    """
    members = {"act": Out(ArrayLayout(number.activation, number.reach(rows))), "swap": Out(1)}
    members |= {"sparse": Out(1)} if number.modes else {}
    members |= {} if start is None else {"start": Out(start)}
    return Signature(members | {"joins": Out(1)} if join else members)


def sum_signature(shape, columns):
    """What groups pass on from north to south: the ``sum`` of each column."""
    return Signature({"sum": Out(ArrayLayout(shape, columns))})


class Group(Component):
    """kr x kc weight-stationary elements without registers between them, as a rule.

    Each of its columns is one dot product with the activations, added to the partial sum from above. Integer sums
    are exact: widths grow with the terms above. Every element has one weight register; the weight that it loads is
    used from the next cycle on. Golden twin: :func:`golden.matmul.mantissa_dot`.

    Parameters
    ----------
    number : rtl.number.number.Number
    shape : tuple of int
        Rows kr and columns kc of elements.
    south, north, start : Shape
        Of the sums below; of those from above, None in the top group of a segment; of what its columns start from
        instead, None where that is nothing.
    head : Shape, optional
        Of what each column starts from, or adds to what it starts from, and its weights decide.
    join : bool
        Whether ``north`` counts only while ``west.joins``.
    gated : bool
        Whether the weights have a gated clock.

    Members
    -------
    west, east : ``In(row_signature)``, ``Out(row_signature)``
        ``east`` is ``west`` one cycle later. ``start`` is one value for all columns, instead of ``north``.
    weight : ``In(kr x kc weights)``
        Row by row, while ``west.swap``.
    head : ``In(kc heads)``
        With every row of activations, where there is one.
    north, south : ``In(sum_signature)``, ``Out(sum_signature)``
        ``south = north + west . weights``, one cycle later; with registers inside the elements ``north`` comes
        ``number.lead`` cycles after ``west`` and the sum ``number.step`` cycles after ``north``.
    """
    kind, area, apart = "group", "elements", True
    #: Columns of a group share what they do with an activation.
    inline = 8

    @dataclass(frozen=True)
    class Parameters:
        number: Number = parameter("")
        shape: tuple[int, int] = parameter("g")
        south: Shape = parameter("s")
        north: Shape | None = parameter("n", None)
        start: Shape | None = parameter("c", None)
        head: Shape | None = parameter("w", None)
        join: bool = parameter("join", False)
        gated: bool = parameter("gated", False, rare=True)

        @classmethod
        def of(cls, design, above=None):
            """The group of a design below ``above`` rows of its segment: the lowest one, if not given."""
            height = design.height * design.joined
            above = height - design.group[0] if above is None else above
            return cls.at(number_of(design), design.group, design.height, above, design.joined, design.gated)

        @classmethod
        def at(cls, number, shape, height, above, joined=1, gated=False):
            """The group below ``above`` rows of ``joined`` segments of ``height``."""
            top, whole = not above % height, height * joined
            return cls(number, shape, number.sum(above + shape[0], whole),
                       number.sum(above, whole) if above else None, None if above else number.start(whole),
                       number.head(height) if top else None, bool(top and above), gated)

    @staticmethod
    def ports(params):
        (kr, kc), number = params.shape, params.number
        row = row_signature(number, kr, params.start, params.join)
        members = {"west": In(row), "east": Out(row), "weight": In(ArrayLayout(ArrayLayout(number.weight, kc), kr)),
                   "south": Out(sum_signature(params.south, kc))}
        if params.north is not None:
            members["north"] = In(sum_signature(params.north, kc))
        if params.head is not None:
            members["head"] = In(ArrayLayout(params.head, kc))
        return members

    @property
    def latencies(self):
        """``lead``: from activations to the sums from above that belong to them; ``result``: on to the sums below."""
        number = self.params.number
        return {"lead": number.lead, "result": number.step}

    def body(self, platform):
        m, params = Module(), self.params
        (kr, kc), number = params.shape, params.number
        west = self.west
        pass_east(m, west, self.east, reset_less=("act", "sparse", "start", "joins"))
        psum = Signal.like(self.south.sum, name="psum", reset_less=True)
        weights = self._hold(m)
        acts = number.prepare(m, [west.act[row] for row in range(number.reach(kr))])
        for col in range(kc):
            first = (self.north.sum[col] if params.north is not None
                     else west.start if params.start is not None else None)
            if params.join:
                above, first = first, Signal(params.north, name=f"above{col}")
                m.d.comb += first.eq(above & west.joins.replicate(len(above)))
            m.d.sync += psum[col].eq(number.column(
                m, acts, [weights[row][col] for row in range(kr)],
                first, params.south, f"c{col}", **({} if params.head is None else {"head": self.head[col]})))
        m.d.comb += self.south.sum.eq(psum)
        return m

    def _hold(self, m):
        """The weights in use."""
        number, west = self.params.number, self.west
        if not self.params.gated:
            return number.hold(m, west.swap, self.weight, **({"sparse": west.sparse} if number.modes else {}))
        weights = Signal.like(self.weight, name="weights")
        m.submodules.gated = gated = Gated(len(self.weight.as_value()))
        m.d.comb += [gated.load.eq(west.swap), gated.i.eq(self.weight.as_value()), weights.as_value().eq(gated.o)]
        return weights
