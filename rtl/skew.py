"""Delays at the array's edge."""

from amaranth import Module, Shape, Signal
from amaranth.lib.wiring import In, Out

from .cell import Cell


def delay(m, value, cycles, name, reset_less=True):
    """``value`` as it was ``cycles`` ago."""
    for stage in range(cycles):
        later = Signal.like(value, name=f"{name}_{stage + 1}", reset_less=reset_less)
        m.d.sync += later.eq(value)
        value = later
    return value


class Skew(Cell):
    """Triangular delay: lane ``i`` leaves ``i * step + first`` cycles after it enters.

    Parameters
    ----------
    shape : shape-like
        One lane.
    lanes : int
    first : int
        Delay of lane 0, in cycles.
    reset_less : bool
        Whether the registers keep their content on reset.
    step : int
        How much later than its neighbour a lane leaves.

    Members
    -------
    i, o : ``In(shape).array(lanes)``, ``Out(shape).array(lanes)``
    """
    kind = "skew"

    def __init__(self, shape, lanes, first=0, reset_less=True, step=1):
        self.lanes, self.first, self.step, self.reset_less = lanes, first, step, reset_less
        super().__init__({"i": In(shape).array(lanes), "o": Out(shape).array(lanes)},
                         w=Shape.cast(shape).width, n=lanes, f=first, **({} if reset_less else {"r": 1}),
                         **({"s": step} if step > 1 else {}))

    def body(self, platform):
        m = Module()
        for lane in range(self.lanes):
            cycles = lane * self.step + self.first
            m.d.comb += self.o[lane].eq(delay(m, self.i[lane], cycles, f"lane{lane}", self.reset_less))
        return m
