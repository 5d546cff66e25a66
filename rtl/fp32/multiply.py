"""Products of significands, as ``*`` or by radix-8 recoding: less area than ``*`` under `synth -booth`, more delay."""

from amaranth import Cat, Const, Mux

from .raw import Raw, named, round_flush, round_up

#: ``plain`` leaves the architecture to the synthesis; ``recoded`` is :func:`multiply_recoded`.
MULTIPLIERS = ("plain", "recoded")
#: Parts of a plain multiplier that a register cuts in two; their sum is formed behind it.
PIECES = 4


def multiply_recoded(m, a, b, cut=None):
    """Exact product of two unsigned values.

    Three bits of ``b`` at a time, with the bit below them, make a digit -4 to 4, so a third as many rows
    as bits are summed; 3 a costs one adder. A negative row is inverted; its missing one stands in the
    empty places below the next row, and the extension of its sign is a constant.

    ``cut``, if given, is a register for two values: one half of the rows is summed into each, and the two behind it.
    """
    width, whole = len(a) + 2, len(a) + len(b)
    triple = named(m, a + Cat(Const(0, 1), a), "triple")[:width]
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
        return (sum(rows, Const(0, 1)) + constant)[:whole]
    # What the upper rows and the constant leave empty below needs no register.
    half = (digits + 1) // 2
    empty = 3 * (half - 1)
    low = sum(rows[:half], Const(0, 1))[:min(whole, width + 3 * half - 1)]
    high = (sum(rows[half:], Const(0, 1)) + constant)[empty:whole]
    low, high = cut(named(m, low, "low_rows"), named(m, high, "high_rows"))
    return (low + (high << empty))[:whole]


def multiply_raw(m, pipe, x, y, bias, multiplier="plain"):
    """Exact product of two raw operands: biased signed exponent, two bits above the point."""
    sign, exponent = named(m, x.sign ^ y.sign, "product_sign"), (x.exponent + y.exponent - bias).as_signed()
    nan = named(m, x.nan | y.nan | x.inf & y.zero | x.zero & y.inf, "product_nan")
    zero, inf = named(m, x.zero | y.zero, "product_zero"), named(m, x.inf | y.inf, "product_inf")
    if "partial" in pipe.active and multiplier == "recoded":
        product = multiply_recoded(m, x.significand, y.significand, lambda *rows: pipe.cut("partial", *rows))
        sign, exponent, zero, inf, nan = pipe.cut(
            "partial", sign, named(m, exponent, "partial_exponent"), zero, inf, nan)
    elif "partial" in pipe.active:
        size = -(-len(y.significand) // PIECES)
        pieces = [named(m, x.significand * y.significand[k:k + size], f"piece{k}")
                  for k in range(0, len(y.significand), size)]
        pieces, sign, exponent, zero, inf, nan = pipe.cut(
            "partial", pieces, sign, named(m, exponent, "partial_exponent"), zero, inf, nan)
        product = sum((piece << size * k for k, piece in enumerate(pieces)), Const(0, 1))
        product = product[:len(x.significand) + len(y.significand)]
    elif multiplier == "recoded":
        product = multiply_recoded(m, x.significand, y.significand)
    else:
        product = x.significand * y.significand
    return Raw(sign, named(m, exponent, "product_exponent"), named(m, product, "product"), zero, inf, nan)


def normal_product(m, raw):
    """A product of normal numbers with its leading one moved to the top bit."""
    high = raw.significand[-1]
    significand = Mux(high, raw.significand, Cat(Const(0, 1), raw.significand)[:len(raw.significand)])
    return Raw(raw.sign, named(m, (raw.exponent + high).as_signed(), "normal_exponent"),
               named(m, significand, "normal_product"), raw.zero, raw.inf, raw.nan)


def decide_product(m, fmt, raw):
    """Whether a normalised product rounds up; the bits that decide are left out of the result."""
    spare = len(raw.significand) - fmt.precision
    kept = raw.significand[spare:]
    up = round_up(m, kept, raw.significand[spare - 1], raw.significand[:spare - 1].any())
    return Raw(raw.sign, raw.exponent, kept, raw.zero, raw.inf, raw.nan), up


def round_product(m, fmt, raw, up):
    """Round a normalised product, flushing."""
    return round_flush(m, fmt, raw.sign, raw.exponent, raw.significand, up, raw.zero, raw.inf, raw.nan)


def bound_product(m, raw):
    """Give a zero product an exponent below any addend, so that it is the operand that is shifted,
    and an infinite one an exponent above."""
    lowest = -1 << (len(raw.exponent) - 1)
    exponent = Mux(raw.zero, Const(lowest, raw.exponent.shape()),
                   Mux(raw.inf, Const(-1 - lowest, raw.exponent.shape()), raw.exponent))
    return Raw(raw.sign, named(m, exponent, "bounded"), raw.significand, raw.zero, raw.inf, raw.nan)
