"""Which elements a pass of the vector unit drops, by their place in their tensor."""

from amaranth import Cat, Signal

from hbfp.golden.spec.vector import BELOW_BITS, KEY_BITS, PLACE_BITS, STEP_BITS, Kind

from ..convert.numbers import Numbers, place_bits


class Dropping:
    """Plain logic inside the vector unit: key and place, numbers of the beat that issues next, and its comparisons.

    The state of a beat's numbers is there in the cycle in which it issues: it is drawn as the pass is taken, and for
    each next beat as the one before issues. So comparisons have a cycle of their own, and operands none of them.

    Parameters
    ----------
    m : Module
    unit : golden.spec.vector.VectorUnit
    seed : Value
        The part of the key from outside.
    word, payload : View, Value
        The word that is offered, and its bits.
    sets, begins, moves : Value
        The word is taken, and sets key or place; it is taken, and is a pass; a beat of a pass issues.

    Attributes
    ----------
    gone : Signal
        A bit for each lane: it is dropped, of the beat that has issued last.
    """

    def __init__(self, m, unit, seed, word, payload, sets, begins, moves):
        bits = place_bits(unit.lanes)
        key, below = Signal(KEY_BITS, reset_less=True), Signal(BELOW_BITS, reset_less=True)
        place, step, at = (Signal(bits, name=name, reset_less=True) for name in ("place", "place_step", "place_at"))
        self.gone = Signal(unit.lanes, name="dropped", reset_less=True)
        m.submodules.numbers = numbers = Numbers(unit.lanes, shared=True)
        m.d.comb += [numbers.key.eq(key ^ seed), numbers.en.eq(begins | moves), numbers.word.eq(at + 1)]
        with m.If(sets & (word.kind == Kind.KEY)):
            m.d.sync += Cat(key, below).eq(payload)
        with m.If(sets & (word.kind == Kind.PLACE)):
            m.d.sync += [place.eq(payload[:PLACE_BITS]), step.eq(payload[PLACE_BITS:PLACE_BITS + STEP_BITS])]
        with m.If(begins):
            m.d.comb += numbers.word.eq(place)
            with m.If(word.drop):
                m.d.sync += place.eq(place + step)
        with m.If(begins | moves):
            m.d.sync += at.eq(numbers.word)
        with m.If(moves):
            m.d.sync += self.gone.eq(Cat(Cat(numbers.common, number) < below for number in numbers.o))
