"""Processing elements, a group at a time."""

from amaranth import Module, Signal
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .lanes import lane_shape, psum_shape
from .layout import ArrayLayout
from .mac import mac_chain


class Group(Cell):
    """kr x kc weight-stationary elements without registers between them.

    Each of its columns is one dot product with the activations, added to the partial sum from above. Integer sums
    are exact: widths grow with the terms above. Every element has one weight register; the weight that it loads is
    used from the next cycle on. Golden twin: :func:`golden.matmul.mantissa_dot`.

    Parameters
    ----------
    design : golden.spec.config.Design
    above : int
        Terms summed by the groups above in the same segment; 0 leaves out ``north`` and its adder.

    Members
    -------
    west, east : ``In``, ``Out(kr lanes)``
        Activations; ``east`` is ``west`` one cycle later.
    swap, swap_east : ``In(1)``, ``Out(1)``
        Load the weights from ``weight``, a cycle ahead of the first activations that use them; ``swap_east`` is one
        cycle later.
    weight : ``In(kr x kc lanes)``
        Row by row.
    north : ``In(kc sums)``
    south : ``Out(kc sums)``
        ``north + west . weights``, one cycle later.
    """
    kind = "group"

    def __init__(self, design, above):
        self.design, self.above = design, above
        kr, kc = design.group
        lane, below = lane_shape(design), above + kr
        members = {
            "west": In(ArrayLayout(lane, kr)), "east": Out(ArrayLayout(lane, kr)),
            "swap": In(1), "swap_east": Out(1),
            "weight": In(ArrayLayout(ArrayLayout(lane, kc), kr)),
            "south": Out(ArrayLayout(psum_shape(design, below), kc)),
        }
        if above:
            members["north"] = In(ArrayLayout(psum_shape(design, above), kc))
        super().__init__(members, **self.parameters(design, above))

    @staticmethod
    def parameters(design, above):
        """What tells one group's module from another's: kind of number, shape, widths of the sums in and out."""
        kr, kc = design.group
        return {design.arithmetic: design.lane_width, "g": f"{kr}x{kc}",
                "n": design.psum_width(above) if above else 0, "s": design.psum_width(above + kr)}

    def body(self, platform):
        m = Module()
        kr, kc = self.design.group
        act = Signal.like(self.east, reset_less=True)
        swap = Signal()
        weights = Signal.like(self.weight, reset_less=True)
        psum = Signal.like(self.south, reset_less=True)
        m.d.sync += [act.eq(self.west), swap.eq(self.swap)]
        with m.If(self.swap):
            m.d.sync += weights.eq(self.weight)
        for col in range(kc):
            m.d.sync += psum[col].eq(mac_chain(
                m, self.design, [self.west[row] for row in range(kr)], [weights[row][col] for row in range(kr)],
                self.north[col] if self.above else None, self.above + kr, f"c{col}"))
        m.d.comb += [self.east.eq(act), self.swap_east.eq(swap), self.south.eq(psum)]
        return m
