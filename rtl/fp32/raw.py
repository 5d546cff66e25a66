"""Pieces that every FP32 operation shares: unpack, shifters, the rounder, pack."""

from amaranth import Cat, Const, Mux

from hbfp.golden.spec.floats import FP32

from ..fixed.ripple import add_ripple, bits_of
from ..lib.signals import named


def is_nan(value, fmt=FP32):
    """Whether a pattern is a NaN, quiet or signalling."""
    return value[fmt.fraction:fmt.width - 1].all() & value[:fmt.fraction].any()


class Raw:
    """An operand taken apart: (-1)^sign * significand * 2^exponent, plus what overrides it.

    ``exponent`` is biased, that of a leading one in the top bit of ``significand``. ``unbiased`` and ``triple``, three
    times the significand, are there where they were made beforehand (rtl/fp32/inside.py).
    """

    def __init__(self, sign, exponent, significand, zero, inf, nan, unbiased=None, triple=None):
        self.sign, self.exponent, self.significand = sign, exponent, significand
        self.zero, self.inf, self.nan = zero, inf, nan
        self.unbiased, self.triple = unbiased, triple

    def map(self, function):
        """The same with ``function`` applied to every part."""
        return Raw(*(function(part) for part in (self.sign, self.exponent, self.significand,
                                                 self.zero, self.inf, self.nan)))


class Fields:
    """Sign, exponent field and fraction of one operand, with the tests that operations need."""

    def __init__(self, m, fmt, value, name):
        self.fraction = value[:fmt.fraction]
        self.exponent = value[fmt.fraction:fmt.width - 1]
        self.sign = value[fmt.width - 1]
        self.nonzero_exponent = named(m, self.exponent.any(), f"{name}_nonzero_exponent")
        self.top = named(m, self.exponent.all(), f"{name}_top")
        self.nonzero_fraction = named(m, self.fraction.any(), f"{name}_nonzero_fraction")

    @property
    def nan(self):
        """Any NaN, quiet or signalling."""
        return self.top & self.nonzero_fraction

    @property
    def inf(self):
        """Either infinity."""
        return self.top & ~self.nonzero_fraction


def unpack(m, fmt, value, name, flush):
    """Take a bit pattern apart.

    With ``flush`` the hidden one is constant and ``zero`` decides; without, a subnormal has exponent
    1 and no hidden one, and its significand is not normalised.
    """
    f = Fields(m, fmt, value, name)
    hidden, exponent = f.nonzero_exponent, f.exponent
    if flush:
        significand, zero = Cat(f.fraction, Const(1, 1)), ~hidden
    else:
        significand, zero = Cat(f.fraction, hidden), ~(hidden | f.nonzero_fraction)
        exponent = Cat(exponent[0] | ~hidden, exponent[1:])
    return Raw(f.sign, exponent, significand, named(m, zero, f"{name}_zero"), named(m, f.inf, f"{name}_inf"),
               named(m, f.nan, f"{name}_nan"))


def shift_right_sticky(m, value, amount, kept):
    """Logical right shift of ``value``, extended below to ``kept`` bits; lost ones go to a sticky bit.

    Parameters
    ----------
    value : Value
        Number to shift; its top bit is the top bit of the result.
    amount : Value
        Unsigned distance; every bit costs one stage.
    kept : int
        Bits of the result.

    Returns
    -------
    (Signal, Signal)
        Shifted value, ``kept`` bits, and whether a one was shifted out.
    """
    value = Cat(Const(0, kept - len(value)), value) if kept > len(value) else value
    lost = []
    for stage in range(len(amount)):
        step, value = 1 << stage, named(m, value, f"right{stage}")
        lost.append(amount[stage] & value[:step].any())
        value = Mux(amount[stage], value >> step if step < kept else Const(0, kept), value)[:kept]
    return named(m, value, "shifted"), named(m, Cat(lost).any(), "sticky")


class Normal:
    """What :func:`normalise` gives: the top bits, the tests of all below, and count or exponent."""

    def __init__(self, value, below, ones, count, exponent):
        self.value, self.below, self.ones, self.count, self.exponent = value, below, ones, count, exponent

    def map(self, function):
        """The same with ``function`` applied to every part."""
        return Normal(*(function(part) for part in (self.value, self.below, self.ones, self.count, self.exponent)))


def increment(m, value, up, name, ripple):
    """``value + up`` in the width of ``value``, and the carry out; ``up`` is one bit."""
    if ripple:
        return add_ripple(m, bits_of(value, len(value)), [0] * len(value), name, up)
    total = named(m, value + up, name)
    return total[:len(value)], total[len(value)]


def normalise(m, value, keep=None, *, fill=None, exponent=None, stages=None, ripple=False, cut=None):
    """Left shift until the top bit is one, testing and shifting by halves of the width.

    Each stage that finds its top bits empty yields one bit of the leading zero count, so no
    separate counter is needed. Bits that can no longer reach the ``keep`` top ones leave the
    shifter early and are only tested.

    Parameters
    ----------
    value : Value
        Number to normalise. All zeros stay zero, with the largest count.
    keep : int, optional
        Bits of the result; all unless given.
    fill : Value, optional
        One bit that enters from below.
    exponent : Value, optional
        Unsigned; the shift stops where it would pass zero, and it is lowered by the shift.
    stages : int, optional
        Bits of the shift distance, if the width does not set them.
    ripple : bool
        Whether adders are rows of full adders.
    cut : callable, optional
        What stands before the last shifts, at most by 7: it takes values and returns those behind a register, if any.
    """
    stages = (len(value) - 1).bit_length() if stages is None else stages
    keep = len(value) if keep is None else keep
    fill = Const(0, 1) if fill is None else fill
    count, below, ones = [], [], []
    for stage in reversed(range(stages)):
        step, value = 1 << stage, named(m, value, f"left{stage}")
        if cut is not None and stage == min(2, stages - 1):
            value, fill, exponent, count, below, ones = cut(value, fill, exponent, count, below, ones)
            count, below, ones = list(count), list(below), list(ones)
        move = ~value[-step:].any()
        if exponent is not None:
            exponent = named(m, exponent, f"exponent{stage}")
            move = move & exponent[stage:].any()
        move = named(m, move, f"move{stage}")
        if exponent is not None:
            high = exponent[stage:]
            lowered = add_ripple(m, high, [1] * len(high), f"lower{stage}", ~move)[0] if ripple else \
                (high - move)[:len(high)]
            exponent = Cat(exponent[:stage], lowered)
        value = Mux(move, Cat(fill.replicate(step), value)[:len(value)], value)
        count.insert(0, move)
        spare = len(value) - (keep + step - 1)
        if spare > 0:
            value = named(m, value, f"moved{stage}")
            below.append(value[:spare].any())
            ones.append(value[:spare].all())
            value = value[spare:]
    if len(value) < keep:
        value = Cat(fill.replicate(keep - len(value)), value)
    return Normal(named(m, value, "normal"), named(m, Cat(below).any(), "below"), named(m, Cat(ones).all(), "ones"),
                  Cat(count), None if exponent is None else named(m, exponent, "lowered"))


def round_up(m, significand, guard, below, tie=None):
    """Whether nearest even adds one.

    Parameters
    ----------
    significand, guard, below : Value
        Bits that are kept, the next bit, and whether any bit follows.
    tie : Value, optional
        A tie that the bits do not show.
    """
    up = guard & (below | significand[0])
    return named(m, up if tie is None else up | tie & significand[0], "up")


def round_flush(m, fmt, sign, exponent, significand, up, zero, inf, nan):
    """Round a number whose top bit is one; overflow to Inf, underflow to zero.

    Parameters
    ----------
    exponent : Value
        Biased exponent, signed, of the leading one.
    significand, up : Value
        ``fmt.precision`` bits, and what :func:`round_up` decided.

    Returns
    -------
    Raw
        See :func:`limit_flush`.
    """
    joined = named(m, Cat(significand[:-1], exponent) + up, "joined")[:fmt.fraction + len(exponent)]
    return limit_flush(m, fmt, sign, joined[fmt.fraction:], joined[:fmt.fraction], zero, inf, nan)


def limits(m, fmt, exponent, prefix=""):
    """Whether a number with this exponent, biased and in two's complement, is below or above those of the format."""
    least = named(m, exponent[-1] | ~exponent.any(), f"{prefix}least")
    most = named(m, ~exponent[-1] & (exponent[fmt.exponent:-1].any() | exponent[:fmt.exponent].all()), f"{prefix}most")
    return least, most


def round_quick(m, fmt, sign, exponents, significand, up, zero, inf, nan):
    """:func:`round_flush` in the least delay: both exponents are judged while the rounding decides between them.

    Parameters
    ----------
    exponents : tuple of Value
        Biased exponent, signed, of the leading one, and the next one.
    """
    carry = named(m, up & significand[:-1].all(), "round_carry")
    fraction = named(m, significand[:-1] + up, "rounded")[:fmt.fraction]
    judged = []
    for name, exponent in zip(("same", "next"), exponents, strict=True):
        judged.append(Cat(exponent[:fmt.exponent], *limits(m, fmt, exponent, f"{name}_")))
    chosen = named(m, Mux(carry, *reversed(judged)), "chosen")
    under = named(m, zero | chosen[-2], "under")
    all_ones = named(m, inf | nan | ~zero & chosen[-1], "all_ones")
    field = chosen[:fmt.exponent] & ~under.replicate(fmt.exponent) | all_ones.replicate(fmt.exponent)
    return Raw(sign, named(m, field, "field"), Cat(fraction, Const(1, 1)), under, all_ones, nan)


def limit_flush(m, fmt, sign, exponent, fraction, zero, inf, nan, masked=True):
    """A rounded number with its limits: overflow to Inf, underflow to zero.

    Parameters
    ----------
    exponent : Value
        Biased exponent, in two's complement.
    fraction : Value
        ``fmt.fraction`` bits.
    masked : bool
        False leaves the exponent as it is where the number is zero or special: flags alone say so.

    Returns
    -------
    Raw
        With ``exponent`` all zeros or all ones where the number is zero or special; the fraction
        is not masked there.
    """
    rounded = named(m, exponent, "rounded_exponent")
    under = named(m, zero | rounded[-1] | ~rounded.any(), "under")
    over = named(m, inf | ~under & (rounded[:-1] >= fmt.top), "over")
    all_ones = named(m, over | nan, "all_ones")
    field = rounded[:fmt.exponent]
    if masked:
        field = field & ~under.replicate(fmt.exponent) | all_ones.replicate(fmt.exponent)
    return Raw(sign, named(m, field, "field"), Cat(fraction, Const(1, 1)), under, all_ones, nan)


def round_gradual(m, fmt, sign, base, significand, up, inf, nan, ripple=False):
    """Round a number that is normalised as far as its exponent allows.

    Parameters
    ----------
    base : Value
        Unsigned; exponent field less one. Where the top bit of ``significand`` is zero the number is
        zero or subnormal, whatever ``base``.

    Returns
    -------
    Raw
        As :func:`round_flush`, but a subnormal is not zero: only specials mask the fraction.
    """
    kept = base & significand[-1].replicate(len(base))
    if ripple:
        fraction, carry = increment(m, significand[:-1], up, "rounded", True)
        # Where the top bit is zero so is what is kept of the exponent: the two add up to one bit and a carry.
        exponent, last = add_ripple(m, bits_of(kept, len(base)), [significand[-1], *[0] * (len(base) - 1)],
                                    "rounded_exponent", carry)
        rounded, field = Cat(fraction, Const(0, 1)), named(m, Cat(exponent, last), "rounded_exponent")
    else:
        rounded = named(m, significand + up, "rounded")
        field = named(m, kept + rounded[fmt.fraction:], "rounded_exponent")
    over = named(m, field >= fmt.top, "over")
    all_ones = named(m, over | inf | nan, "all_ones")
    return Raw(sign, named(m, field[:fmt.exponent] | all_ones.replicate(fmt.exponent), "field"),
               rounded[:fmt.precision], Const(0, 1), all_ones, nan)


def pack(fmt, raw, underflow="signed"):
    """Bit pattern of what a rounder gives."""
    fraction = raw.significand[:fmt.fraction] & ~(raw.zero | raw.inf).replicate(fmt.fraction)
    fraction = Cat(fraction[:-1], fraction[-1] | raw.nan)
    keep = ~raw.nan if underflow == "signed" else ~(raw.nan | raw.zero & ~raw.inf)
    return Cat(fraction, raw.exponent, raw.sign & keep)
