"""Delays at the array's edge."""

from dataclasses import dataclass

from amaranth import Module, Shape, Signal
from amaranth.lib.wiring import In, Out

from .component import Component
from .names import parameter


def delay(m, value, cycles, name, reset_less=True):
    """``value`` as it was ``cycles`` ago."""
    for stage in range(cycles):
        later = Signal.like(value, name=f"{name}_{stage + 1}", reset_less=reset_less)
        m.d.sync += later.eq(value)
        value = later
    return value


class Skew(Component):
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
    kind, area, apart = "skew", "skew", True

    @dataclass(frozen=True)
    class Parameters:
        shape: Shape = parameter("w")
        lanes: int = parameter("n")
        first: int = parameter("f", 0)
        reset_less: bool = parameter("reset", True)
        step: int = parameter("s", 1)

        def __post_init__(self):
            object.__setattr__(self, "shape", Shape.cast(self.shape))

    @staticmethod
    def ports(params):
        return {"i": In(params.shape).array(params.lanes), "o": Out(params.shape).array(params.lanes)}

    def body(self, platform):
        m, params = Module(), self.params
        for lane in range(params.lanes):
            cycles = lane * params.step + params.first
            m.d.comb += self.o[lane].eq(delay(m, self.i[lane], cycles, f"lane{lane}", params.reset_less))
        return m
