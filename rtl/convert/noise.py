"""Random bits for stochastic rounding; the stream is defined in docs/numerics.md, section 6."""

from dataclasses import dataclass

from amaranth import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.noise import LANE_STEP, RESET, TRIPLES

from ..lib.component import Component
from ..lib.names import parameter

MASK = 0xFFFFFFFF


def lane_offset(lane):
    """What sets a lane's start apart from the others'."""
    return (lane + 1) * LANE_STEP & MASK


def clears(m, seed, lanes):
    """For each lane, whether a mixed seed would leave its state at 0; lanes share comparisons of four bits."""
    hits = []
    for k in range(0, 32, 4):
        wanted = sorted({lane_offset(lane) >> k & 15 for lane in range(lanes)})
        hit = {value: Signal(name=f"seed{k}_is_{value}") for value in wanted}
        m.d.comb += [hit[value].eq(seed[k:k + 4] == value) for value in wanted]
        hits.append(hit)
    return [Cat(hit[lane_offset(lane) >> 4 * n & 15] for n, hit in enumerate(hits)).all() for lane in range(lanes)]


class Xorshift32(Component):
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
    load, seed : ``In(1)``, ``In(32)``
        Start again from a seed that the host has mixed (:func:`golden.noise.mix`).
    clear : ``In(1)``
        That the seed leaves 0 here, see :func:`clears`; 1 is loaded instead, as a state of 0 would stay 0.
    o : ``Out(32)``
        The state after the next step.
    """
    kind, area, apart = "xorshift32", "converter", True
    blocked = True

    @dataclass(frozen=True)
    class Parameters:
        lane: int = parameter("l")

        @classmethod
        def of(cls, design):
            """The generator of a converter's first lane."""
            return cls(0)

    @staticmethod
    def ports(params):
        return {"step": In(1), "load": In(1), "seed": In(32), "clear": In(1), "o": Out(32)}

    def body(self, platform):
        m, lane = Module(), self.params.lane
        a, b, c = TRIPLES[lane % len(TRIPLES)]
        offset = lane_offset(lane)
        state = Signal(32, init=(RESET ^ offset) or 1)
        first = Signal(32)
        second = Signal(32)
        m.d.comb += [first.eq(state ^ (state << a)), second.eq(first ^ (first >> b)),
                     self.o.eq(second ^ (second << c))]
        with m.If(self.step):
            m.d.sync += state.eq(self.o)
        with m.If(self.load):
            m.d.sync += state.eq(self.seed ^ offset | self.clear)
        return m
