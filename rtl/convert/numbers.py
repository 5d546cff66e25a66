"""Numbers of elements by their place, for stochastic rounding and dropout; the rule: docs/numerics.md, section 6."""

from dataclasses import dataclass

from amaranth import Array, Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.noise import GROUP, LANE_STEP, NUMBER, ROUNDS, SHARED, STRIDE, TAPS, TURNS

from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter


def place_bits(lanes):
    """Bits of the number of a word of so many lanes: places have 32."""
    return 32 - (lanes - 1).bit_length()


class Numbers(Component):
    """The numbers of all lanes of a word. All lanes share the rounds, whose state is a register; the numbers are sums
    of three of its bits each.

    Parameters
    ----------
    lanes : int
        Elements of a word, a power of two up to 32.
    shared : bool
        Whether there is the number that all elements of a group share.

    Members
    -------
    en, key, word : ``In(1)``, ``In(32)``, ``In(place_bits(lanes))``
        Draw for this word, in this cycle.
    o : ``Out(ArrayLayout(8, lanes))``
        The numbers of the word that came last, from the next cycle on.
    common : ``Out(8)``
        With ``shared``, that of its group.
    """
    kind, area, apart = "numbers", "converter", True

    @dataclass(frozen=True)
    class Parameters:
        lanes: int = parameter("l")
        shared: bool = parameter("sh", False, rare=True)

        @classmethod
        def of(cls, design):
            """Those of a design's rows."""
            return cls(design.rows)

    @staticmethod
    def ports(params):
        return {"en": In(1), "key": In(32), "word": In(place_bits(params.lanes)),
                "o": Out(ArrayLayout(NUMBER, params.lanes)), **({"common": Out(NUMBER)} if params.shared else {})}

    @property
    def latencies(self):
        """``result``: from a word to its numbers."""
        return {"result": 1}

    def body(self, platform):
        m, lanes = Module(), self.params.lanes
        size = (GROUP // lanes - 1).bit_length()    # bits that say which part of a group a word is
        state = Signal(64, name="state", reset_less=True)
        x, y = Signal(32, name="x"), Signal(32, name="y")
        m.d.comb += [x.eq(self.key), y.eq(self.word[size:])]
        a, b, c = TURNS
        for number in range(ROUNDS):
            mixed = Signal(32, name=f"round{number}")
            m.d.comb += mixed.eq(y ^ (x.rotate_left(a) & x.rotate_left(b)) ^ x.rotate_left(c) ^ LANE_STEP)
            x, y = mixed, x
        with m.If(self.en):
            m.d.sync += state.eq(Cat(y, x))
        turned = state
        if size:    # lane 0 of each part stands where that of the first does
            part = Signal(size, name="part", reset_less=True)
            with m.If(self.en):
                m.d.sync += part.eq(self.word[:size])
            turned = Signal(64, name="turned")
            m.d.comb += turned.eq(Array(state.rotate_right(STRIDE * lanes * n) for n in range(GROUP // lanes))[part])
        for lane in range(lanes):
            m.d.comb += self.o[lane].eq(self._number(turned, STRIDE * lane))
        if self.params.shared:
            m.d.comb += self.common.eq(self._number(state, SHARED))
        return m

    def _number(self, state, further):
        return Cat(self._sum(state, taps, further) for taps in reversed(TAPS))

    @staticmethod
    def _sum(state, taps, further):
        one, two, three = (state[(tap + further) % len(state)] for tap in taps)
        return one ^ two ^ three
