"""Products of significands, as ``*`` or from digits: less area than ``*`` under `synth -booth`, more delay."""

from functools import partial

from amaranth import Cat, Const, Mux

from ..fixed.compressor import CompressorTree
from ..fixed.prefix import add_prefix, carry_save, sum_prefix
from ..fixed.ripple import add_ripple, bits_of
from .inside import three_times, unbias
from .raw import Raw, increment, limit_flush, named, round_flush, round_quick, round_up

#: ``plain`` leaves the architecture to the synthesis; ``recoded`` is :func:`multiply_digits`, or with registers
#: :func:`multiply_radix8`.
MULTIPLIERS = ("plain", "recoded")
#: Parts of a plain multiplier that a register cuts in two; their sum is formed behind it. Fewer have fewer registers,
#: where the stages behind are no shorter.
PIECES, FEWER = 4, 2
#: Values that the register holds where there are no parts.
HELD = 3


def multiply_digits(m, a, b, triple=None):
    """Exact product of two values in the least area: two bits of ``b`` at a time choose 0, a, 2 a or 3 a.

    Of unsigned values no row is negative, so none has a sign or a bit that completes a negation; 3 a costs one adder,
    which products with the same ``a`` share: ``triple``, if it is there. The rows go through one tree of full adders.
    With a sign, ``a`` has two more bits, and the top bit of ``b`` takes a row off.
    """
    negative, narrow, width = a.shape().signed, a.as_unsigned(), len(a) + 2
    tree = CompressorTree(m, len(a) + len(b), "product")
    if negative:
        a = named(m, Cat(a, a[-1].replicate(2)), "wide")
    triple = three_times(m, a) if triple is None else triple
    put = tree.add_signed if negative else tree.add_row
    digits = b[:-1] if b.shape().signed else b
    for k in range(0, len(digits), 2):
        digit = digits[k:k + 2]
        if len(digit) == 1:
            row = named(m, narrow & digit.replicate(len(narrow)), f"row{k}")
        else:
            one, two, three = (named(m, value, f"{name}{k}").replicate(width) for name, value in (
                ("one", digit[0] & ~digit[1]), ("two", digit[1] & ~digit[0]), ("three", digit.all())))
            row = named(m, ((one & a) | (two & Cat(Const(0, 1), a)) | (three & triple))[:width], f"row{k}")
        put(k, row, arrival=1)
    if b.shape().signed:
        off = named(m, narrow & b[-1].replicate(len(narrow)), "off")
        if negative:    # -x is ~x + 1
            tree.constant += 1 << len(digits)
            tree.add_signed(len(digits), ~off, arrival=1)
        else:
            tree.subtract(len(digits), off)
    return tree.result()


def multiply_radix8(m, a, b, cut=None, quick=True):
    """Exact product of two unsigned values, for units with registers: less area than ``*``, and as quick.

    With ``quick`` its rows are summed in the least delay, else by `+`.

    Three bits of ``b`` at a time, with the bit below them, make a digit -4 to 4, so a third as many rows
    as bits are summed; 3 a costs one adder. A negative row is inverted; its missing one stands in the
    empty places below the next row, and the extension of its sign is a constant.

    ``cut``, if given, is a register for two values: one half of the rows is summed into each, and the two behind it.
    """
    width, whole = len(a) + 2, len(a) + len(b)
    triple = named(m, a + Cat(Const(0, 1), a) if cut is None else    # which does not decide where no cut follows
                   add_prefix(m, Cat(a, Const(0, 1)), Cat(Const(0, 1), a), "triple_sum"), "triple")[:width]
    multiples = [Cat(a, Const(0, 2)), Cat(Const(0, 1), a, Const(0, 1)), triple, Cat(Const(0, 2), a)]
    digits = len(b) // 3 + 1
    bits = Cat(Const(0, 1), b, Const(0, 3 * digits - len(b)))
    rows, borrowed, constant = [], None, 0
    for k in range(digits):
        digit = bits[3 * k:3 * k + 4]
        negative = named(m, digit[3], f"negative{k}")
        # The magnitude is 2 t2 + t1 + t0, of the inverse if the digit is negative.
        t = named(m, digit[:3] ^ negative.replicate(3), f"recoded{k}")
        odd = named(m, t[0] ^ t[1], f"odd{k}")
        choose = [named(m, value, f"times{n + 1}_{k}") for n, value in enumerate((
            odd & ~t[2], ~odd & (t[0] ^ t[2]), odd & t[2], t.all()))]
        row = Const(0, width)
        for use, multiple in zip(choose, multiples, strict=True):
            row = row | multiple & use.replicate(width)
        row = Cat(named(m, row ^ negative.replicate(width), f"row{k}"), ~negative)
        constant -= 1 << (width + 3 * k)
        if borrowed is not None:
            row = Cat(borrowed, Const(0, 2), row)
        rows.append((row << (3 * (k - 1) if k else 0))[:whole])
        borrowed = negative
    constant = Const(constant % (1 << whole), whole)
    if cut is None:
        return sum_prefix(m, [*rows, constant], whole, "rows") if quick else \
            (sum(rows, Const(0, 1)) + constant)[:whole]
    # What the upper rows and the constant leave empty below needs no register.
    half = (digits + 1) // 2
    empty = 3 * (half - 1)
    low = sum_prefix(m, rows[:half], min(whole, width + 3 * half - 1), "low")
    high = sum_prefix(m, [row[empty:] for row in (*rows[half:], constant)], whole - empty, "high")
    low, high = cut(named(m, low, "low_rows"), named(m, high, "high_rows"))
    return sum_prefix(m, [low, Cat(Const(0, empty), high)], whole, "halves")


def multiply_pieces(m, a, b, pipe, quick):
    """Exact product of two unsigned values: those of ``a`` with parts of ``b`` before the register ``partial``, and
    their sum behind it; in the least delay if ``quick``.
    """
    count = FEWER if (quick and "round" not in pipe.active) or pipe.chain else PIECES
    size, width = -(-len(b) // count), len(a) + len(b)
    places = range(0, len(b), size)
    if quick and not pipe.chain:
        parts = [sum_prefix(m, [Cat(Const(0, n), a & bit.replicate(len(a))) for n, bit in enumerate(b[k:k + size])],
                            len(a) + size, f"piece{k}") for k in places]
    else:
        parts = [a * b[k:k + size] for k in places]
    parts, = pipe.cut("partial", [named(m, part, f"piece{k}") for k, part in zip(places, parts, strict=True)])
    if quick and not pipe.chain:
        return sum_prefix(m, [Cat(Const(0, k), part) for k, part in zip(places, parts, strict=True)], width, "pieces")
    return sum((part << k for k, part in zip(places, parts, strict=True)), Const(0, 1))[:width]


def multiply_rows(m, a, b, pipe):
    """Exact product of two unsigned values in the least delay: the register ``partial`` holds what full adders leave of
    the products of ``a`` with each bit of ``b``.
    """
    width = len(a) + len(b)
    rows = carry_save(m, [Cat(Const(0, n), a & bit.replicate(len(a))) for n, bit in enumerate(b)], width, "rows", HELD)
    rows, = pipe.cut("partial", rows)
    return sum_prefix(m, rows, width, "left")


def add_exponents(m, x, y, bias, carry=0):
    """Exponent of a product of two raw operands, and ``carry``, signed, by rows of full adders."""
    low = unbias(m, x.exponent, bias) if x.unbiased is None else x.unbiased
    width = len(y.exponent) + 2
    total, _ = add_ripple(m, bits_of(low, width), bits_of(y.exponent, width), "add_exponents", carry)
    return total.as_signed()


def multiply_raw(m, pipe, x, y, bias, multiplier="plain", ripple=False, quick=False):
    """Exact product of two raw operands: biased signed exponent, two bits above the point.

    With ``ripple`` the exponent is left out: :func:`add_exponents` takes what the rounding adds to it, too. ``quick``
    makes the parts of a plain multiplier, and their sum, in the least delay.
    """
    sign = named(m, x.sign ^ y.sign, "product_sign")
    exponent = None if ripple else (x.exponent + y.exponent - bias).as_signed()
    nan = named(m, x.nan | y.nan | x.inf & y.zero | x.zero & y.inf, "product_nan")
    zero, inf = named(m, x.zero | y.zero, "product_zero"), named(m, x.inf | y.inf, "product_inf")
    if "partial" in pipe.active:
        if multiplier == "recoded":
            product = multiply_radix8(m, x.significand, y.significand, partial(pipe.cut, "partial"))
        else:
            rows = quick and "output" in pipe.active and not pipe.chain
            product = multiply_rows(m, x.significand, y.significand, pipe) if rows else \
                multiply_pieces(m, x.significand, y.significand, pipe, quick)
        sign, exponent, zero, inf, nan = pipe.cut(
            "partial", sign, named(m, exponent, "partial_exponent"), zero, inf, nan)
    elif multiplier == "recoded":
        # With a lone register the sum of the rows is worth less than what a quick one takes.
        product = multiply_radix8(m, x.significand, y.significand, quick=len(pipe.active) > 1) if pipe.active else \
            multiply_digits(m, x.significand, y.significand, x.triple)
    else:
        product = x.significand * y.significand
    exponent = None if exponent is None else named(m, exponent, "product_exponent")
    return Raw(sign, exponent, named(m, product, "product"), zero, inf, nan)


def normal_product(m, raw):
    """A product of normal numbers with its leading one moved to the top bit; its exponent is left out if it was."""
    high = raw.significand[-1]
    significand = Mux(high, raw.significand, Cat(Const(0, 1), raw.significand)[:len(raw.significand)])
    exponent = None if raw.exponent is None else named(m, (raw.exponent + high).as_signed(), "normal_exponent")
    return Raw(raw.sign, exponent,
               named(m, significand, "normal_product"), raw.zero, raw.inf, raw.nan)


def decide_product(m, fmt, raw):
    """Whether a normalised product rounds up; the bits that decide are left out of the result."""
    spare = len(raw.significand) - fmt.precision
    kept = raw.significand[spare:]
    up = round_up(m, kept, raw.significand[spare - 1], raw.significand[:spare - 1].any())
    return Raw(raw.sign, raw.exponent, kept, raw.zero, raw.inf, raw.nan), up


def round_product(m, fmt, raw, up, quick=False):
    """Round a normalised product, flushing; in the least delay with ``quick``."""
    if quick:
        following = named(m, (raw.exponent + 1).as_signed(), "next_exponent")
        return round_quick(m, fmt, raw.sign, (raw.exponent, following), raw.significand, up, raw.zero, raw.inf, raw.nan)
    return round_flush(m, fmt, raw.sign, raw.exponent, raw.significand, up, raw.zero, raw.inf, raw.nan)


def round_product_ripple(m, fmt, x, y, raw):
    """What :func:`round_product` gives of a product ``raw`` of two operands, in the least area; only flags say that it
    is zero or infinite.

    A product of which the leading one is in the upper place does not round up to the next power of two: so at most one
    of the two adds to the exponent, as the carry of the sum of exponents.
    """
    kept, up = decide_product(m, fmt, normal_product(m, raw))
    fraction, carry = increment(m, kept.significand[:-1], up, "product_rounded", True)
    exponent = add_exponents(m, x, y, fmt.bias, named(m, raw.significand[-1] | carry, "product_carry"))
    return limit_flush(m, fmt, raw.sign, exponent, fraction, raw.zero, raw.inf, raw.nan, masked=False)


def bound_product(m, raw):
    """Give a zero product an exponent below any addend, so that it is the operand that is shifted,
    and an infinite one an exponent above."""
    lowest = -1 << (len(raw.exponent) - 1)
    exponent = Mux(raw.zero, Const(lowest, raw.exponent.shape()),
                   Mux(raw.inf, Const(-1 - lowest, raw.exponent.shape()), raw.exponent))
    return Raw(raw.sign, named(m, exponent, "bounded"), raw.significand, raw.zero, raw.inf, raw.nan)
