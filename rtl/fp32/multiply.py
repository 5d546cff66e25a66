"""Unsigned multiplier by radix-8 recoding: less area than `*` under `synth -booth`, more delay."""

from amaranth import Cat, Const

from .raw import named

#: ``plain`` leaves the architecture to the synthesis; ``recoded`` is :func:`multiply_recoded`.
MULTIPLIERS = ("plain", "recoded")


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
