"""Lean FP32 add, subtract and multiply: subnormals flushed, round to nearest even."""

from amaranth import Cat, Const, Mux
from amaranth.lib.wiring import In, Out

from golden.spec.floats import BF16, FP32
from golden.spec.format import check_choice

from .raw import Fields, Operation, named, normalise, shift_right_sticky

#: Sign of results that are flushed to zero: their own, or always plus.
UNDERFLOWS = ("signed", "positive")


class Raw:
    """An operand taken apart: value = (-1)^sign * significand * 2^exponent, significand in [1, 2)."""

    def __init__(self, sign, exponent, significand, zero, inf, nan):
        self.sign, self.exponent, self.significand = sign, exponent, significand
        self.zero, self.inf, self.nan = zero, inf, nan


def unpack_flush(m, fmt, value, name):
    """Fields of a number, subnormals read as zero; the hidden one is constant."""
    f = Fields(m, fmt, value, name)
    return Raw(f.sign, f.exponent, Cat(f.fraction, Const(1, 1)), ~f.nonzero_exponent, f.inf, f.nan)


def add_flush(m, pipe, fmt, x, y, underflow="signed"):
    """Sum of two raw operands, rounded once and packed.

    A zero operand must have the smaller exponent (or be marked), an infinite ``x`` the larger.
    """
    p = fmt.precision
    # Only exponents decide which operand is shifted: a negative difference of equal exponents is
    # exact, and its negation costs no adder, see below.
    difference = named(m, (x.exponent - y.exponent).as_signed(), "difference")
    swap = difference[-1]
    subtract = named(m, x.sign ^ y.sign, "subtract")
    large = named(m, Mux(swap, y.significand, x.significand), "large")
    large_exponent = named(m, Mux(swap, y.exponent, x.exponent), "large_exponent")
    large_zero = named(m, Mux(swap, y.zero, x.zero), "large_zero")
    small_zero = named(m, Mux(swap, x.zero, y.zero), "small_zero")
    by, alone, flip = swap, Const(0, 1), Const(1, 1)
    if len(x.exponent) > len(y.exponent):
        # An exact product may lie above an infinite addend or below a zero one; the infinity's
        # sign counts, and so does that of a product which underflows alone.
        by = swap & ~y.zero | y.inf
        alone, flip = y.zero & ~x.zero | y.inf, ~y.inf
    sign = named(m, Mux(by, y.sign, x.sign), "sign")
    # |difference| = ~difference + 1 when negative: the one is a shift in the same multiplexer.
    small = named(m, Mux(swap, x.significand, Cat(Const(0, 1), y.significand)), "small")
    amount = named(m, difference[:-1] ^ swap.replicate(len(difference) - 1), "amount")
    stages = (p + 1).bit_length()
    far = named(m, amount[stages:].any(), "far")
    nan = named(m, x.nan | y.nan | x.inf & y.inf & subtract, "any_nan")
    inf = named(m, x.inf | y.inf, "any_inf")

    shifted, sticky = shift_right_sticky(m, small, amount[:stages], p + 2)
    gone = named(m, far | small_zero, "gone")
    shifted = named(m, shifted & ~gone.replicate(p + 2), "aligned")
    sticky = named(m, Mux(gone, ~small_zero, sticky), "aligned_sticky")
    # {carry or sign, significand, guard, round}; the sticky bit below borrows from them.
    total = named(m, (Cat(Const(0, 2), large) + (Cat(shifted, Const(0, 1)) ^ subtract.replicate(p + 3))
                      + (subtract & ~sticky))[:p + 3], "total")
    negative = named(m, total[-1] & subtract, "negative")
    # -total = ~total + 1: ones shifted in below make the rounder add that one.
    magnitude = named(m, Cat(sticky | negative, total ^ negative.replicate(p + 3)), "magnitude")
    normal, count = normalise(m, magnitude, fill=negative)
    exponent = named(m, (large_exponent + 1 - count).as_signed(), "exponent")
    zero = named(m, large_zero | ~normal[-1], "zero")
    sign = named(m, (sign ^ negative & flip) & ~(subtract & zero & ~alone), "result_sign")
    return pack(fmt, round_flush(m, fmt, sign, exponent, normal, zero, inf, nan), underflow)


def multiply_exact(m, fmt, x, y):
    """Product of two raw operands: (biased signed exponent, normalised significand)."""
    product = named(m, x.significand * y.significand, "product")
    high = product[-1]
    normal = named(m, Mux(high, product, Cat(Const(0, 1), product)[:len(product)]), "product_normal")
    return named(m, (x.exponent + y.exponent - fmt.bias + high).as_signed(), "product_exponent"), normal


def multiply_special(m, x, y):
    """Sign, zero, Inf and NaN of a product."""
    nan = x.nan | y.nan | x.inf & y.zero | x.zero & y.inf
    return x.sign ^ y.sign, x.zero | y.zero, x.inf | y.inf, nan


def round_flush(m, fmt, sign, exponent, significand, zero, inf, nan):
    """The shared rounder of lean operations: nearest even, overflow to Inf, underflow to zero.

    Parameters
    ----------
    exponent : Value
        Biased exponent, signed, of the leading one.
    significand : Value
        Normalised: top bit is the leading one; every bit below the precision counts as exact.

    Returns
    -------
    Raw
        With ``exponent`` all zeros or all ones where the number is zero or special; the fraction
        is not masked there.
    """
    p = fmt.precision
    spare = len(significand) - p
    guard, below = significand[spare - 1], significand[:spare - 1].any()
    up = named(m, guard & (below | significand[spare]), "up")
    packed = named(m, Cat(significand[spare:-1], exponent) + up, "packed")[:fmt.fraction + len(exponent)]
    rounded = named(m, packed[fmt.fraction:], "rounded_exponent")
    under = named(m, zero | rounded[-1] | ~rounded.any(), "under")
    over = named(m, inf | ~under & (rounded[:-1] >= fmt.top), "over")
    force = named(m, over | nan, "force")
    field = rounded[:fmt.exponent] & ~under.replicate(fmt.exponent) | force.replicate(fmt.exponent)
    return Raw(sign, named(m, field, "field"), Cat(packed[:fmt.fraction], Const(1, 1)), under, force, nan)


def pack(fmt, raw, underflow="signed"):
    """Bit pattern of what :func:`round_flush` gives."""
    fraction = raw.significand[:fmt.fraction] & ~(raw.zero | raw.inf).replicate(fmt.fraction)
    fraction = Cat(fraction[:-1], fraction[-1] | raw.nan)
    keep = ~raw.nan if underflow == "signed" else ~(raw.nan | raw.zero & ~raw.inf)
    return Cat(fraction, raw.exponent, raw.sign & keep)


class Add(Operation):
    """Sum ``o = a + b``. Golden twin: :func:`golden.fp32.add`.

    Parameters
    ----------
    underflow : str
        ``positive`` makes every zero result +0, as accumulation across blocks wants.
    """

    def __init__(self, fmt=FP32, *, subnormals=None, pipeline=0, underflow="signed", ports=None):
        check_choice("Underflow", underflow, UNDERFLOWS)
        self.underflow = underflow
        super().__init__(fmt, subnormals=subnormals, pipeline=pipeline, ports=ports)

    def datapath(self, m, pipe):
        x, y = (unpack_flush(m, self.fmt, v, n) for v, n in ((self.a, "a"), (self.b, "b")))
        m.d.comb += self.o.eq(add_flush(m, pipe, self.fmt, x, y, self.underflow))


class Mul(Operation):
    """Product ``o = a * b``. Golden twin: :func:`golden.fp32.mul`."""

    def datapath(self, m, pipe):
        x, y = (unpack_flush(m, self.fmt, v, n) for v, n in ((self.a, "a"), (self.b, "b")))
        sign, *special = multiply_special(m, x, y)
        m.d.comb += self.o.eq(pack(self.fmt, round_flush(m, self.fmt, sign, *multiply_exact(m, self.fmt, x, y),
                                                         *special)))


class MulAdd(Add):
    """Product and sum, each rounded: ``o = round(a * b) + c``; no fields between the two.

    Golden twin: ``add(mul(a, b), c)``.
    """
    OPERANDS = ("a", "b", "c")

    def datapath(self, m, pipe):
        fmt = self.fmt
        x, y, z = (unpack_flush(m, fmt, v, n) for v, n in ((self.a, "a"), (self.b, "b"), (self.c, "c")))
        sign, *special = multiply_special(m, x, y)
        product = round_flush(m, fmt, sign, *multiply_exact(m, fmt, x, y), *special)
        m.d.comb += self.o.eq(add_flush(m, pipe, fmt, product, z, self.underflow))


class ProductAdd(Add):
    """Exact product of two narrow floats plus a wide one, rounded once: ``o = a * b + c``.

    Golden twin: :func:`golden.fp32.fma` of the widened operands.

    Parameters
    ----------
    source : FloatFormat
        Format of ``a`` and ``b``: the exponent of ``fmt``, and at most half its precision.
    """

    def __init__(self, source=BF16, fmt=FP32, **options):
        if source.exponent != fmt.exponent or 2 * source.precision > fmt.precision:
            raise ValueError(f"Product of {source!r} must fit the precision of {fmt!r}")
        self.source = source
        super().__init__(fmt, ports={"a": In(source.width), "b": In(source.width),
                                     "c": In(fmt.width), "o": Out(fmt.width)}, **options)

    def datapath(self, m, pipe):
        fmt, source = self.fmt, self.source
        x, y = (unpack_flush(m, source, v, n) for v, n in ((self.a, "a"), (self.b, "b")))
        sign, zero, inf, nan = multiply_special(m, x, y)
        exponent, normal = multiply_exact(m, source, x, y)
        # Zero lies below any addend, so that it is the operand that is shifted; Inf lies above.
        lowest = -1 << (len(exponent) - 1)
        exponent = Mux(zero, Const(lowest, exponent.shape()),
                       Mux(inf, Const(-1 - lowest, exponent.shape()), exponent))
        normal = Cat(Const(0, fmt.precision - len(normal)), normal)
        product = Raw(sign, exponent, normal, named(m, zero, "product_zero"), inf, nan)
        z = unpack_flush(m, fmt, self.c, "c")
        m.d.comb += self.o.eq(add_flush(m, pipe, fmt, product, z, self.underflow))
