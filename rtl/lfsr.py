"""Random bits for stochastic rounding; the stream is defined in docs/numerics.md, section 6."""

from amaranth import Module, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.noise import LANE_STEP, RESET, TRIPLES

from .cell import Cell

MASK = 0xFFFFFFFF


def lane_offset(lane):
    """What sets a lane's start apart from the others'."""
    return (lane + 1) * LANE_STEP & MASK


class Xorshift32(Cell):
    """One lane's xorshift32 generator: exclusive ors with shifts of its own.

    After a reset it stands where the seed 1 puts it.

    Parameters
    ----------
    lane : int
        From 0.

    Members
    -------
    step : ``In(1)``
        Go on to ``o``.
    load, start : ``In(1)``, ``In(32)``
        Start again from a seed that the host has mixed (:func:`golden.noise.mix`).
    o : ``Out(32)``
        The state after the next step.
    """
    kind = "xorshift32"

    def __init__(self, lane):
        self.lane = lane
        super().__init__({"step": In(1), "load": In(1), "start": In(32), "o": Out(32)}, l=lane)

    def body(self, platform):
        m = Module()
        a, b, c = TRIPLES[self.lane % len(TRIPLES)]
        offset = lane_offset(self.lane)
        state = Signal(32, init=(RESET ^ offset) or 1)
        first, second = Signal(32), Signal(32)
        m.d.comb += [first.eq(state ^ (state << a)), second.eq(first ^ (first >> b)),
                     self.o.eq(second ^ (second << c))]
        start = Signal(32)
        m.d.comb += start.eq(self.start ^ offset)
        with m.If(self.step):
            m.d.sync += state.eq(self.o)
        with m.If(self.load):
            m.d.sync += state.eq(start | (start == 0))    # a state of 0 would stay 0
        return m
