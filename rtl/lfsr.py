"""Random bits for stochastic rounding; the stream is defined in docs/numerics.md, section 6."""

from amaranth import Module, Signal
from amaranth.lib.wiring import In, Out

from .cell import Cell

#: Odd constant that spreads the lanes' starts: 2^32 divided by the golden ratio.
SPREAD = 0x9E3779B9
MASK = 0xFFFFFFFF


def lane_start(seed, lane):
    """State of a lane's generator before its first step."""
    return (seed ^ ((lane + 1) * SPREAD & MASK)) or 1


class Xorshift32(Cell):
    """xorshift32 (13, 17, 5).

    Members
    -------
    step : ``In(1)``
        Go on to ``o``.
    load, start : ``In(1)``, ``In(32)``
        Set the state; 0 counts as 1.
    o : ``Out(32)``
        The state after the next step.
    """
    kind = "xorshift32"

    def __init__(self, lane):
        self.lane = lane
        super().__init__({"step": In(1), "load": In(1), "start": In(32), "o": Out(32)}, l=lane)

    def body(self, platform):
        m = Module()
        state = Signal(32, init=lane_start(1, self.lane))
        first, second = Signal(32), Signal(32)
        m.d.comb += [first.eq(state ^ (state << 13)), second.eq(first ^ (first >> 17)),
                     self.o.eq(second ^ (second << 5))]
        start = Signal(32)
        m.d.comb += start.eq(self.start ^ ((self.lane + 1) * SPREAD & MASK))
        with m.If(self.step):
            m.d.sync += state.eq(self.o)
        with m.If(self.load):
            m.d.sync += state.eq(start | (start == 0))
        return m
