"""Processing elements, a group at a time."""

from dataclasses import dataclass

from amaranth import Module, Shape, Signal
from amaranth.lib.wiring import In, Out

from ..lib.cell import Cell
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from ..number.kinds import number_of
from ..number.number import Number


class Group(Cell):
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
    west, east : ``In``, ``Out(kr elements)``
        Activations, as the kind of number has them; ``east`` is ``west`` one cycle later.
    swap, swap_east : ``In(1)``, ``Out(1)``
        Load the weights from ``weight``, a cycle ahead of the first activations that use them; ``swap_east`` is one
        cycle later.
    weight : ``In(kr x kc elements)``
        Row by row.
    north : ``In(kc sums)``
    start, start_east : ``In``, ``Out``
        One value for all columns instead of ``north``; ``start_east`` is ``start`` one cycle later.
    south : ``Out(kc sums)``
        ``north + west . weights``, one cycle later; with registers inside the elements ``north`` comes
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
        act = ArrayLayout(number.activation, kr)
        members = {
            "west": In(act), "east": Out(act), "swap": In(1), "swap_east": Out(1),
            "weight": In(ArrayLayout(ArrayLayout(number.element, kc), kr)),
            "south": Out(ArrayLayout(params.south, kc)),
        }
        if params.north is not None:
            members["north"] = In(ArrayLayout(params.north, kc))
        if params.start is not None:
            members |= {"start": In(params.start), "start_east": Out(params.start)}
        return members

    @property
    def latencies(self):
        """``lead``: from activations to the sums from above that belong to them; ``result``: on to the sums below."""
        number = self.params.number
        return {"lead": number.lead, "result": number.step}

    def body(self, platform):
        m, params = Module(), self.params
        (kr, kc), number = params.shape, params.number
        act = Signal.like(self.east, reset_less=True)
        swap = Signal()
        psum = Signal.like(self.south, reset_less=True)
        m.d.sync += [act.eq(self.west), swap.eq(self.swap)]
        weights = number.hold(m, self.swap, self.weight)
        for col in range(kc):
            first = self.north[col] if params.north is not None else self.start if params.start is not None else None
            m.d.sync += psum[col].eq(number.column(
                m, [self.west[row] for row in range(kr)], [weights[row][col] for row in range(kr)], first,
                params.south, f"c{col}"))
        if params.start is not None:
            start = Signal.like(self.start, reset_less=True)
            m.d.sync += start.eq(self.start)
            m.d.comb += self.start_east.eq(start)
        m.d.comb += [self.east.eq(act), self.swap_east.eq(swap), self.south.eq(psum)]
        return m
