"""Recoded integers to be held in registers: two lines of a digit -1, 0, 1, 2 in place of three.

A register costs more than what makes the three lines of two: 9 bits of an 8-bit integer in place of 12.
"""

from amaranth import Cat

from .booth import digit_kinds, digits_of


def packed_width(width):
    """Bits of a packed code."""
    return sum(3 if kind == "booth" else 2 for kind in digit_kinds(width))


def packed(code, width):
    """The code of :class:`rtl.fixed.booth.BoothRecoder`, packed."""
    bits = []
    for kind, lines in digits_of(code, width):
        if kind == "low":
            one, minus, two = lines
            lines = [one | minus, minus | two]
        bits += lines
    return Cat(bits)


def unpacked(bits, width):
    """The code of which :func:`packed` gives ``bits``."""
    lines, place = [], 0
    for kind in digit_kinds(width):
        if kind == "low":
            odd, other = bits[place], bits[place + 1]
            lines += [odd & ~other, odd & other, other & ~odd]
        else:
            lines += [bits[place + n] for n in range(3 if kind == "booth" else 2)]
        place += 3 if kind == "booth" else 2
    return Cat(lines)
