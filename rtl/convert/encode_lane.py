"""One FP32 to one mantissa: how far below the block's largest exponent, align, round.

Figures: ``docs/decisions/0104-converter.md``.
"""

from dataclasses import dataclass, replace
from functools import partial

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from hbfp.format import HBFPFormat

from ..lib.component import Component
from ..lib.names import parameter
from ..lib.skew import delay

FIELD, FRACTION = 8, 23    # bits of an FP32 exponent field and fraction
SIGNIFICAND = FRACTION + 1


def element_format(fmt):
    """What one element's conversion depends on: the format with all else as usual, so that equal parts are one."""
    noise = fmt.noise_bits if fmt.rounding == "stochastic" else HBFPFormat.noise_bits
    return replace(fmt, block=HBFPFormat.block, noise_bits=noise)


def lane_format(fmt):
    """The same for a lane, with exponents of at most nine bits, which hold all that FP32 has."""
    return replace(element_format(fmt), exponent=min(fmt.exponent, 9))


def largest_field(m, values, cut=None):
    """Largest exponent field of FP32 numbers, bit by bit from the top: who lacks a bit that another has is out.

    ``cut``, if given, is called before bit ``n`` from the top with ``n`` and all values that go on, and gives them
    back, behind a register or not.
    """
    left, largest = [Const(1, 1)] * len(values), []
    fields = [value[FRACTION:FRACTION + FIELD] for value in values]
    for place, k in enumerate(reversed(range(FRACTION, FRACTION + FIELD))):
        if cut and place:
            count = len(values)
            later = cut(place, [*left, *[field[:FIELD - place] for field in fields], *largest])
            left, fields, largest = later[:count], later[count:2 * count], later[2 * count:]
        ones = [Signal(name=f"one{k}_{n}") for n in range(len(values))]
        bit = Signal(name=f"largest{k}")
        m.d.comb += [one.eq(still & field[k - FRACTION]) for one, still, field in zip(ones, left, fields, strict=True)]
        m.d.comb += bit.eq(Cat(ones).any())
        largest.insert(0, bit)
        stay = [Signal(name=f"left{k}_{n}") for n in range(len(values))]
        m.d.comb += [now.eq(one | (still & ~bit)) for now, one, still in zip(stay, ones, left, strict=True)]
        left = stay
    return Cat(largest)


def larger_field(m, values):
    """The same in pairs, by comparisons: shorter where these are carry chains."""
    fields = [value[FRACTION:FRACTION + FIELD] for value in values]
    while len(fields) > 1:
        pairs = [Signal(FIELD, name=f"larger{len(fields)}_{n}") for n in range(len(fields) // 2)]
        m.d.comb += [pair.eq(Mux(one > other, one, other))
                     for pair, one, other in zip(pairs, fields[::2], fields[1::2], strict=False)]
        fields = pairs + fields[2 * len(pairs):]
    return fields[0]


def _kept(fmt):
    """Bits below the integer that rounding looks at: guard (and sticky), or as many as the noise has."""
    return {"rne": 1, "truncate": 0, "stochastic": fmt.noise_bits}[fmt.rounding]


def _stages(fmt):
    """Bits of the distance below the largest exponent that count; an element further away is zero."""
    return (fmt.magnitude + _kept(fmt) - 1).bit_length()


def clamped_field(m, fmt, field):
    """The shared exponent plus 126, given the largest field: clamped where the exponent is narrow."""
    low, high = (edge + 126 for edge in fmt.exponent_range)
    top = Signal(FIELD)
    m.d.comb += top.eq(field)
    if low > 0:
        with m.If(field < low):
            m.d.comb += top.eq(low)
    if high < 2 ** FIELD - 1:
        with m.If(field > high):
            m.d.comb += top.eq(high)
    return top


def least_field(m, fmt, top):
    """The smallest exponent field that an element of a block may have without being zero, for all of its lanes."""
    reach, low = 2 ** _stages(fmt) - 1, int(fmt.subnormals == "flush")
    least = Signal(FIELD)
    m.d.comb += least.eq(Mux(top > reach + low, top - reach, low))
    return least


def _finish(m, magnitude, up, negative):
    """``magnitude + up``, negated if ``negative`` (None: never); nothing overflows.

    ``-(v + up) = ~v + ~up``. With its carries complemented, the negative sum flips the same bits of ``v`` as the
    positive one: one chain of majorities is increment and negation.
    """
    result, flip = [], up
    for n, bit in enumerate(magnitude):
        result.append(bit ^ flip)
        carry = Signal(name=f"flip{n}")
        m.d.comb += carry.eq((bit & flip) | (negative & (bit | flip)) if negative is not None else bit & flip)
        flip = carry
    return Cat(result) if negative is None else Cat(result, flip)


class EncodeLane(Component):
    """One FP32 to one mantissa, given the block's exponent field; combinational.

    Parameters
    ----------
    format : HBFPFormat
        Its block is of no account.
    sign : bool
        Whether the mantissa is signed, or a magnitude.
    narrow : int
        Mantissa bits, sign included, while ``wide`` is low; 0 if mantissas always have those of the format.
    choice : bool
        Of stochastic rounding: whether an element may be rounded to nearest, too.
    registers : int
        Between the alignment and the rounding, 0 or 1: with one the mantissa is a cycle late.

    Members
    -------
    i : ``In(32)``
        FP32 bits.
    top : ``In``
        Shared exponent E, plus 126.
    least : ``In``
        :func:`least_field` of ``top``, or of ``base``.
    base, wide : ``In``, ``In(1)``
        Only with ``narrow``: the field of which elements lie below, ``top``, or for narrow mantissas as much more as
        they have fewer bits; whether mantissas have all bits of the format.
    noise : ``In(noise_bits)``
        Only if rounding is stochastic.
    nearest : ``In(1)``
        Only with ``choice``: round to nearest, ties to even.
    o : ``Out(signed mantissa)``
        Without its sign, as ``Out(magnitude bits)``, where ``sign`` is false.
    """
    kind, area, apart = "encode_lane", "converter", True
    blocked = True

    @dataclass(frozen=True)
    class Parameters:
        format: HBFPFormat = parameter("")
        sign: bool = parameter("magnitude", True)
        narrow: int = parameter("n", 0)
        choice: bool = parameter("choice", False)
        registers: int = parameter("r", 0, rare=True)

        def __post_init__(self):
            object.__setattr__(self, "format", lane_format(self.format))

        @classmethod
        def of(cls, design):
            """A lane of a design's converter."""
            return cls(design.widest, narrow=design.format.mantissa if design.wide else 0)

    @staticmethod
    def ports(params):
        fmt = params.format
        members = {"i": In(32), "top": In(FIELD), "least": In(FIELD),
                   "o": Out(signed(fmt.mantissa) if params.sign else fmt.magnitude)}
        if params.narrow:
            members |= {"base": In(FIELD + 1), "wide": In(1)}
        if fmt.rounding == "stochastic":
            members["noise"] = In(fmt.noise_bits)
            if params.choice:
                members["nearest"] = In(1)
        return members

    def body(self, platform):
        m = Module()
        fmt = self.params.format
        bits = fmt.magnitude
        later = partial(delay, m, cycles=self.params.registers)
        word, sticky = (later(value, name=name) for value, name in zip(
            self._aligned(m), ("word", "sticky"), strict=True))
        negative = later(self.i[-1], name="negative")
        wide = later(self.wide, name="wide_late") if self.params.narrow else None
        kept = _kept(fmt)
        if fmt.rounding == "stochastic":
            total = Signal(len(word) + 1)
            noise = later(self.noise, name="noise_late")
            nearest = later(self.nearest, name="nearest_late") if self.params.choice else None
            m.d.comb += total.eq(word + (Mux(nearest, 1 << kept - 1, noise) if self.params.choice else noise))
            magnitude, up = total[kept:], Const(0, 1)
            if self.params.choice:    # a half has become a whole one with nothing below it
                odd = Signal()
                m.d.comb += odd.eq(magnitude[0] & ~(nearest & ~sticky & ~total[:kept].any()))
                magnitude = Cat(odd, magnitude[1:])
        else:
            magnitude = word[kept:]
            up = Signal()
            # The largest magnitude is not rounded up: it would overflow.
            m.d.comb += up.eq((word[0] & (sticky | magnitude[0]) & ~self._full(magnitude, wide)) if kept else 0)
        if fmt.rounding == "stochastic" or fmt.exponent < 9:
            # A carry, or a clamped exponent that leaves the element above it: saturated.
            over = Signal()
            limited = Signal(bits)
            above = self.i[FRACTION:FRACTION + FIELD] > self.top if fmt.exponent < 9 else Const(0, 1)
            m.d.comb += [over.eq(self._beyond(magnitude, wide) | later(above, name="above")),
                         limited.eq(self._allowed(magnitude[:bits] | over.replicate(bits), wide))]
            if kept == 1:
                rest, up = up, Signal(name="up_limited")
                m.d.comb += up.eq(rest & ~over)
            magnitude = limited
        m.d.comb += self.o.eq(_finish(m, magnitude, up, negative if self.params.sign else None))
        return m

    # What narrow mantissas change: they leave the high bits of a magnitude zero.

    def _full(self, magnitude, wide):
        """Whether a magnitude is the largest."""
        narrow = self.params.narrow - 1
        if narrow < 0:
            return magnitude.all()
        return magnitude[:narrow].all() & (magnitude[narrow:].all() | ~wide)

    def _beyond(self, magnitude, wide):
        """Whether a magnitude is larger than the largest."""
        bits, narrow = self.params.format.magnitude, self.params.narrow - 1
        more = magnitude[bits:].any()
        return more if narrow < 0 else more | magnitude[narrow:].any() & ~wide

    def _allowed(self, magnitude, wide):
        """A magnitude without the bits that it may not have."""
        narrow = self.params.narrow - 1
        if narrow < 0:
            return magnitude
        return Cat(magnitude[:narrow], magnitude[narrow:] & wide.replicate(len(magnitude) - narrow))

    def _aligned(self, m):
        """The significand moved right by its distance: integer bits, those that rounding looks at, and a sticky bit."""
        fmt = self.params.format
        bits = fmt.magnitude
        field, fraction = self.i[FRACTION:FRACTION + FIELD], self.i[:FRACTION]
        significand = Cat(fraction, Const(1, 1))
        if fmt.subnormals == "gradual":    # no hidden one, and the weight of field 1: a place further left
            normal = Signal()
            whole = Signal(SIGNIFICAND)
            m.d.comb += [normal.eq(field.any()), whole.eq(Mux(normal, significand, Cat(Const(0, 1), fraction)))]
            significand = whole
        kept = _kept(fmt)
        shown = min(kept, SIGNIFICAND - bits)
        lowest = significand[:SIGNIFICAND - bits - shown]
        word = Signal(bits + kept)
        m.d.comb += word.eq(Cat(Const(0, kept - shown), significand[SIGNIFICAND - bits - shown:]))

        # Low bits of the distance are enough: `near` says that the others are zero.
        stages = _stages(fmt)
        near = Signal()
        m.d.comb += near.eq(field >= self.least)
        if not stages:    # only elements of the largest exponent count, and nothing below them is looked at
            return word & near.replicate(len(word)), Const(0, 1)
        distance = Signal(stages)
        lost = [lowest.any()]
        m.d.comb += distance.eq((self.base if self.params.narrow else self.top)[:stages] - field[:stages])
        for stage in reversed(range(stages)):
            step, moved, away = 1 << stage, Signal(len(word), name=f"shift{stage}"), distance[stage]
            stay, go = Signal(name=f"stay{stage}"), Signal(name=f"go{stage}")
            # What is not near falls out of the first, longest shift.
            m.d.comb += [stay.eq(~away & (near if stage == stages - 1 else 1)),
                         go.eq(away & (near if stage == stages - 1 else 1)),
                         moved.eq((word & stay.replicate(len(word))) | (word >> step & go.replicate(len(word))))]
            lost.append(away & word[:step].any())
            word = moved
        return word, Cat(lost).any()
