"""Processing elements, a group at a time."""

from dataclasses import dataclass

from amaranth import Module, Shape, Signal
from amaranth.lib.wiring import In, Out, Signature

from ..lib.compass import pass_east
from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from ..number.kinds import number_of
from ..number.number import Number


def row_signature(number, rows, start=None):
    """What groups pass on from west to east.

    ``act``: activations of ``rows`` elements, as the kind of number has them. ``swap``: load the weights, a cycle
    ahead of the first activations that use them. ``start``, where columns start from something: its value.
    """
    members = {"act": Out(ArrayLayout(number.activation, rows)), "swap": Out(1)}
    return Signature(members if start is None else members | {"start": Out(start)})


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

    Members
    -------
    west, east : ``In(row_signature)``, ``Out(row_signature)``
        ``east`` is ``west`` one cycle later. ``start`` is one value for all columns, instead of ``north``.
    weight : ``In(kr x kc elements)``
        Row by row, while ``west.swap``.
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

        @classmethod
        def of(cls, design, above=None):
            """The group of a design below ``above`` rows of its segment: the lowest one, if not given."""
            above = design.height - design.group[0] if above is None else above
            return cls.at(number_of(design), design.group, design.height, above)

        @classmethod
        def at(cls, number, shape, height, above):
            """The group below ``above`` rows of a segment of ``height``."""
            return cls(number, shape, number.sum(above + shape[0], height),
                       number.sum(above, height) if above else None, None if above else number.start(height))

    @staticmethod
    def ports(params):
        (kr, kc), number = params.shape, params.number
        row = row_signature(number, kr, params.start)
        members = {"west": In(row), "east": Out(row), "weight": In(ArrayLayout(ArrayLayout(number.element, kc), kr)),
                   "south": Out(sum_signature(params.south, kc))}
        if params.north is not None:
            members["north"] = In(sum_signature(params.north, kc))
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
        pass_east(m, west, self.east, reset_less=("act", "start"))
        psum = Signal.like(self.south.sum, name="psum", reset_less=True)
        weights = number.hold(m, west.swap, self.weight)
        for col in range(kc):
            first = (self.north.sum[col] if params.north is not None
                     else west.start if params.start is not None else None)
            m.d.sync += psum[col].eq(number.column(
                m, [west.act[row] for row in range(kr)], [weights[row][col] for row in range(kr)], first,
                params.south, f"c{col}"))
        m.d.comb += self.south.sum.eq(psum)
        return m
