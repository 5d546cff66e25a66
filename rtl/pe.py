"""Processing elements, a group at a time."""

from amaranth import Module, Signal
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .lanes import act_shape, lane_shape, psum_shape
from .layout import ArrayLayout
from .mac import mac_chain


class Group(Cell):
    """kr x kc weight-stationary elements without registers between them, as a rule.

    Each of its columns is one dot product with the activations, added to the partial sum from above. Integer sums
    are exact: widths grow with the terms above. Every element has one weight register; the weight that it loads is
    used from the next cycle on. Golden twin: :func:`golden.matmul.mantissa_dot`.

    Parameters
    ----------
    design : golden.spec.config.Design
    above : int
        Terms summed by the groups above in the same segment. At 0 there is no ``north``, or, with recoded
        activations, it is the one correction that every column starts from, and goes on east.

    Members
    -------
    west, east : ``In``, ``Out(kr lanes)``
        Activations, recoded or not; ``east`` is ``west`` one cycle later.
    swap, swap_east : ``In(1)``, ``Out(1)``
        Load the weights from ``weight``, a cycle ahead of the first activations that use them; ``swap_east`` is one
        cycle later.
    weight : ``In(kr x kc lanes)``
        Row by row.
    north : ``In(kc sums)``
    start, start_east : ``In``, ``Out``
        The correction instead of ``north``; ``start_east`` is ``start`` one cycle later.
    south : ``Out(kc sums)``
        ``north + west . weights``, one cycle later; with registers inside the elements ``north`` comes
        :func:`rtl.mac.lead` cycles after ``west`` and the sum :func:`rtl.mac.step` cycles after ``north``.
    """
    kind = "group"

    def __init__(self, design, above):
        self.design, self.above = design, above
        kr, kc = design.group
        act, first = ArrayLayout(act_shape(design), kr), psum_shape(design, above)
        members = {
            "west": In(act), "east": Out(act), "swap": In(1), "swap_east": Out(1),
            "weight": In(ArrayLayout(ArrayLayout(lane_shape(design), kc), kr)),
            "south": Out(ArrayLayout(psum_shape(design, above + kr), kc)),
        }
        if above:
            members["north"] = In(ArrayLayout(first, kc))
        elif first is not None:
            members |= {"start": In(first), "start_east": Out(first)}
        super().__init__(members, **self.parameters(design, above))

    @staticmethod
    def parameters(design, above):
        """What tells one group's module from another's: kind of number, shape, widths of the sums in and out."""
        kr, kc = design.group
        first, last = psum_shape(design, above), psum_shape(design, above + kr)
        north = 0 if first is None else first.width if above else f"c{first.width}"
        return {design.arithmetic: design.lane_width, **({"": "recoded"} if design.recoded else {}),
                **({"p": design.pipeline} if design.pipeline else {}), "g": f"{kr}x{kc}", "n": north, "s": last.width}

    def body(self, platform):
        m = Module()
        kr, kc = self.design.group
        act = Signal.like(self.east, reset_less=True)
        swap = Signal()
        weights = Signal.like(self.weight, reset_less=True)
        psum = Signal.like(self.south, reset_less=True)
        m.d.sync += [act.eq(self.west), swap.eq(self.swap)]
        if self.design.recoded:    # kept as complements: to hold a bit then costs an AND-OR-invert and no inverter
            complements = Signal(weights.as_value().shape(), reset_less=True)
            m.d.comb += weights.eq(~complements)
            with m.If(self.swap):
                m.d.sync += complements.eq(~self.weight.as_value())
        else:
            with m.If(self.swap):
                m.d.sync += weights.eq(self.weight)
        for col in range(kc):
            first = self.north[col] if self.above else self.start if self.design.recoded else None
            m.d.sync += psum[col].eq(mac_chain(
                m, self.design, [self.west[row] for row in range(kr)], [weights[row][col] for row in range(kr)],
                first, psum_shape(self.design, self.above + kr), f"c{col}"))
        if self.design.recoded and not self.above:
            start = Signal.like(self.start, reset_less=True)
            m.d.sync += start.eq(self.start)
            m.d.comb += self.start_east.eq(start)
        m.d.comb += [self.east.eq(act), self.swap_east.eq(swap), self.south.eq(psum)]
        return m
