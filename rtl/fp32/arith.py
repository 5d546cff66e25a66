"""FP32 add, subtract and multiply."""

from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Const, Mux

from hbfp.checks import check_choice

from ..fixed.prefix import add_chain, add_prefix
from ..fixed.ripple import add_ripple, bits_of
from ..lib.names import parameter
from .inside import as_sum
from .multiply import MULTIPLIERS, decide_product, multiply_raw, normal_product, round_product
from .operation import Operation
from .raw import (
    increment,
    limit_flush,
    named,
    normalise,
    pack,
    round_flush,
    round_gradual,
    round_quick,
    round_up,
    shift_right_sticky,
    unpack,
)

#: Sign of results that are flushed to zero: their own, or always plus.
UNDERFLOWS = ("signed", "positive")


def add_raw(m, pipe, fmt, x, y, flush, underflow="signed", ripple=False, inside=False, quick=False):
    """Sum of two raw operands, rounded once and packed.

    With ``ripple`` it is in the least area: adders are rows of full adders, and where subnormals are flushed flags
    alone say what is zero or infinite, whatever the exponents. ``inside`` leaves the sum in
    :func:`~.inside.sum_layout`. With ``quick`` it is in the least delay.

    The significands have one width, and as many bits above the point: 1, or 2 if ``x`` is a product
    in [1, 4). The operand of smaller exponent is shifted, so one that is zero must not have the
    larger, nor a wide ``x`` that is infinite the smaller.
    """
    width, product = len(x.significand), len(x.significand) > fmt.precision
    head = 2 if product else 1
    wide = len(x.exponent) > fmt.exponent
    difference = named(m, subtract_exponents(m, x.exponent, y.exponent) if ripple else
                       (x.exponent - y.exponent).as_signed(), "difference")
    # Only exponents decide which operand is shifted: a difference that turns out negative is
    # negated without an adder, see below.
    swap = named(m, (difference[-1] | x.zero) & ~y.zero, "swap") if ripple and flush else difference[-1]
    subtract = named(m, x.sign ^ y.sign, "subtract")
    larger = named(m, Mux(swap, y.significand, x.significand), "larger")
    large_exponent = named(m, Mux(swap, y.exponent, x.exponent), "large_exponent")
    large_zero = named(m, Mux(swap, y.zero, x.zero), "large_zero")
    small_zero = named(m, Mux(swap, x.zero, y.zero), "small_zero")
    sign = named(m, Mux(swap, y.sign, x.sign), "sign")
    # |difference| = ~difference + 1 when negative: the one is a shift in the same multiplexer.
    smaller = named(m, Mux(swap, x.significand, Cat(Const(0, 1), y.significand)), "smaller")
    amount = named(m, difference[:-1] ^ swap.replicate(len(difference) - 1), "amount")
    nan = named(m, x.nan | y.nan | x.inf & y.inf & subtract, "any_nan")
    inf = named(m, x.inf | y.inf, "any_inf")
    inf_sign = Mux(y.inf, y.sign, x.sign) if wide or ripple and flush else None
    # The sign of a lone product that underflows beside a zero addend.
    lone = wide and flush and not (ripple and underflow == "positive")
    alone = named(m, ~x.zero & y.zero, "alone") if lone else None
    alone_sign = x.sign if lone else None

    (larger, large_exponent, large_zero, small_zero, sign, smaller, amount, subtract, nan, inf, inf_sign, alone,
     alone_sign) = pipe.cut(
        "swap", larger, large_exponent, large_zero, small_zero, sign, smaller, amount, subtract, nan, inf, inf_sign,
        alone, alone_sign)
    kept = width + 2
    stages = kept.bit_length() if ripple else (kept - 1).bit_length()
    far = named(m, amount[stages:].any(), "far")
    if ripple:    # the longest distance leaves nothing
        gone = named(m, far | small_zero if flush else far, "gone")
        shifted, sticky = shift_right_sticky(m, smaller, amount[:stages] | gone.replicate(stages), kept)
        sticky = named(m, sticky & ~small_zero, "aligned_sticky")
    else:
        shifted, sticky = shift_right_sticky(m, smaller, amount[:stages], kept)
        gone = named(m, far | small_zero if flush else far, "gone")
        shifted = named(m, shifted & ~gone.replicate(kept), "aligned")
        sticky = named(m, Mux(gone, ~small_zero, sticky), "aligned_sticky")
    if quick:
        shifted = named(m, shifted ^ subtract.replicate(kept), "flipped")

    (larger, large_exponent, large_zero, shifted, sticky, sign, subtract, nan, inf, inf_sign, alone,
     alone_sign) = pipe.cut(
        "align", larger, large_exponent, large_zero, shifted, sticky, sign, subtract, nan, inf, inf_sign, alone,
        alone_sign)
    # {carry or sign, significand, guard, round}; the sticky bit below borrows from them.
    if ripple:
        addend = named(m, Cat(shifted, Const(0, 1)) ^ subtract.replicate(kept + 1), "addend")
        borrow = named(m, subtract & ~sticky, "borrow")
        total = named(m, add_ripple(m, [0, 0, *larger, 0], list(addend), "total", borrow)[0], "total")
    elif quick:
        add = add_chain if pipe.chain else add_prefix
        total = named(m, add(m, Cat(Const(0, 2), larger, Const(0, 1)), Cat(shifted, subtract), "sum",
                             subtract & ~sticky)[:kept + 1], "total")
    else:
        total = named(m, (Cat(Const(0, 2), larger) + (Cat(shifted, Const(0, 1)) ^ subtract.replicate(kept + 1))
                          + (subtract & ~sticky))[:kept + 1], "total")

    total, large_exponent, large_zero, sticky, sign, subtract, nan, inf, inf_sign, alone, alone_sign = pipe.cut(
        "sum", total, large_exponent, large_zero, sticky, sign, subtract, nan, inf, inf_sign, alone, alone_sign)
    negative = named(m, total[-1] & subtract, "negative")
    # -total = ~total + 0.111...: with ones shifted in below, the rounder completes the negation.
    exact = named(m, negative & ~sticky, "negative_exact") if product else negative
    magnitude = named(m, Cat(sticky | negative, total ^ negative.replicate(kept + 1)), "magnitude")
    left = partial(pipe.cut, "left")
    beside = left(large_exponent, large_zero, sign, subtract, negative, nan, inf, inf_sign, alone, alone_sign,
                  None if flush else ~magnitude.any())
    unshifted = large_exponent
    large_exponent, large_zero, sign, subtract, negative, nan, inf, inf_sign, alone, alone_sign, empty = beside
    if flush:
        normal = normalise(m, magnitude, fmt.precision + 1, fill=exact, cut=left)
        if ripple:    # less the count, as its complement; what is left to add is known, and joins the rounding
            exponent = add_count(m, large_exponent, normal.count)
        else:
            exponent = named(m, (large_exponent + head - normal.count).as_signed(), "exponent")
        zero = named(m, large_zero | ~normal.value[-1], "zero")
        cancel = named(m, subtract & zero, "cancel")
    else:
        normal = normalise(m, magnitude, fmt.precision + 1, fill=exact,
                           exponent=unshifted + (head - 1) if product else unshifted, ripple=ripple, cut=left)
        exponent = zero = None
        cancel = named(m, subtract & empty, "cancel")
    sign = named(m, (sign ^ negative) & ~cancel, "sum_sign")
    if alone is not None:
        sign = Mux(alone, alone_sign, sign)
    if inf_sign is not None:
        sign = Mux(inf, inf_sign, sign)
    significand, guard = normal.value[1:], normal.value[0]
    up = round_up(m, significand, guard, normal.below, ~guard & normal.ones & left(exact)[0] if product else None)

    significand, up, exponent, lowered, zero, sign, nan, inf = pipe.cut(
        "normalise", significand, up, exponent, normal.exponent, zero, named(m, sign, "sign_out"), nan, inf)
    if not flush:
        raw = round_gradual(m, fmt, sign, lowered, significand, up, inf, nan, ripple)
    elif ripple:
        fraction, carry = increment(m, significand[:-1], up, "rounded", True)
        ones = [head >> n & 1 for n in range(len(exponent))]
        exponent, _ = add_ripple(m, list(exponent), ones, "rounded_exponent", carry)
        raw = limit_flush(m, fmt, sign, exponent, fraction, zero, inf, nan, masked=not inside)
    elif quick:
        raw = round_quick(m, fmt, sign, (exponent, named(m, (exponent + 1).as_signed(), "next_exponent")),
                          significand, up, zero, inf, nan)
    else:
        raw = round_flush(m, fmt, sign, exponent, significand, up, zero, inf, nan)
    raw, = pipe.cut("round", raw)
    return as_sum(fmt, raw) if inside and flush else pack(fmt, raw, underflow)


def subtract_exponents(m, x, y):
    """Signed difference of two exponents, one bit wider, by a row of full adders."""
    width = max(len(x), len(y))
    total, carry = add_ripple(m, bits_of(x, width + 1), [~bit if not isinstance(bit, int) else 1 - bit
                                                         for bit in bits_of(y, width + 1)], "difference", 1)
    return total.as_signed()


def add_count(m, exponent, count):
    """``exponent - count``, one bit wider than the exponent, by a row of full adders."""
    width = len(exponent) + (1 if exponent.shape().signed else 2)
    total, _ = add_ripple(m, bits_of(exponent, width), [~bit if not isinstance(bit, int) else 1
                                                        for bit in bits_of(count, width)], "less_count", 1)
    return named(m, total, "exponent")


class Add(Operation):
    """Sum ``o = a + b``. Golden twin: :func:`golden.fp32.add`.

    Parameters
    ----------
    underflow : str
        With ``flush``: ``positive`` makes every zero result +0, as accumulation across blocks
        wants; ``signed`` keeps the sign.
    """
    CUTS = {"swap": 0.12, "align": 0.23, "sum": 0.43, "left": 0.58, "normalise": 0.7, "round": 0.96, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Operation.Parameters):
        underflow: str = parameter("", "signed")

        def __post_init__(self):
            super().__post_init__()
            check_choice("Underflow", self.underflow, UNDERFLOWS)
            if self.underflow == "positive" and self.subnormals == "gradual":
                raise ValueError("Underflow positive needs subnormals flush, not gradual")

    def operand(self, m, name):
        return unpack(m, self.fmt, getattr(self, name), name, self.flush)

    def datapath(self, m, pipe):
        return add_raw(m, pipe, self.fmt, self.operand(m, "a"), self.operand(m, "b"), self.flush,
                       self.params.underflow, quick=bool(pipe.active))


class Sub(Add):
    """Difference ``o = a - b``. Golden twin: :func:`golden.fp32.sub`."""

    def datapath(self, m, pipe):
        y = self.operand(m, "b")
        y.sign = ~y.sign
        return add_raw(m, pipe, self.fmt, self.operand(m, "a"), y, self.flush, self.params.underflow,
                       quick=bool(pipe.active))


class Mul(Operation):
    """Product ``o = a * b``. Golden twin: :func:`golden.fp32.mul`.

    Parameters
    ----------
    multiplier : str
        ``plain`` is `*`; ``recoded`` takes less area and more delay.
    """
    CUTS = {"partial": 0.3, "product": 0.5, "normalise": 0.63, "round": 0.95, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Operation.Parameters):
        multiplier: str = parameter("", "plain")

        def __post_init__(self):
            super().__post_init__()
            check_choice("Multiplier", self.multiplier, MULTIPLIERS)

    def datapath(self, m, pipe):
        fmt, flush = self.fmt, self.flush
        x, y = (unpack(m, fmt, v, n, flush) for v, n in ((self.a, "a"), (self.b, "b")))
        raw, = pipe.cut("product", multiply_raw(m, pipe, x, y, fmt.bias, self.params.multiplier,
                                                   quick=bool(pipe.active)))
        if flush:
            raw, up = pipe.cut("normalise", *decide_product(m, fmt, normal_product(m, raw)))
            raw = round_product(m, fmt, raw, up, quick=bool(pipe.active))
        else:
            # Zeros above the product let one left shift serve subnormal operands and results.
            room = fmt.precision + 1
            base = named(m, raw.exponent + room, "base")
            base = named(m, base[:-1] & ~base[-1].replicate(len(base) - 1), "base_clamped")
            normal = normalise(m, Cat(raw.significand, Const(0, room)), fmt.precision + 1, exponent=base,
                               stages=(room + fmt.precision).bit_length())
            up = round_up(m, normal.value[1:], normal.value[0], normal.below)
            significand, base, up, sign, inf, nan = pipe.cut(
                "normalise", normal.value[1:], normal.exponent, up, raw.sign, raw.inf, raw.nan)
            raw = round_gradual(m, fmt, sign, base, significand, up, inf, nan)
        raw, = pipe.cut("round", raw)
        return pack(fmt, raw)
