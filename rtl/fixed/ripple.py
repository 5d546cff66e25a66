"""Adders of full adders in a row: the least area, and the most delay."""

from amaranth import Cat, Signal

from .compressor import FullAdder


def bits_of(value, width):
    """``width`` bits of a value, lowest first: the sign is repeated above a signed one, and 0 above an unsigned one."""
    top = value[-1] if value.shape().signed else 0
    return [value[n] if n < len(value) else top for n in range(width)]


def add_ripple(m, a, b, name, carry=0):
    """``a + b + carry`` of two unsigned numbers of one length.

    Parameters
    ----------
    m : Module
    a, b : sequence
        Bits, lowest first; those that are constant as the integers 0 and 1.
    name : str
        Prefix of names, unique in ``m``.
    carry : Value or int
        One bit.

    Returns
    -------
    (Value, Value)
        The sum, without the last carry, and that carry.
    """
    total, chain = [], carry if isinstance(carry, int) else ~carry    # the complement of a carry, unless it is constant
    for n, pair in enumerate(zip(a, b, strict=True)):
        known = [bit for bit in (*pair, chain) if isinstance(bit, int)]
        unknown = [bit for bit in pair if not isinstance(bit, int)]
        if isinstance(chain, int):
            bit, after = _half(unknown, sum(known))
        elif len(unknown) == 2:
            m.submodules[f"{name}_adder{n}"] = adder = FullAdder(False)
            m.d.comb += [adder.a.eq(unknown[0]), adder.b.eq(unknown[1]), adder.c.eq(chain)]
            bit, after = adder.total, adder.carry
        else:
            bit, after = _half([*unknown, ~chain], sum(known))
        if not isinstance(after, int):
            chain = Signal(name=f"{name}_carry{n}")
            m.d.comb += chain.eq(after)
        else:
            chain = after
        total.append(bit)
    return Cat(total), chain if isinstance(chain, int) else ~chain


def _half(bits, known):
    """Sum bit of up to two bits and 0 to 2 known ones, and the carry: its complement, or an integer if it is known."""
    if not bits:
        return known & 1, known >> 1
    if len(bits) == 1:
        (x,) = bits
        return (~x, ~x) if known == 1 else (x, known >> 1)
    x, y = bits
    return (~(x ^ y), ~(x | y)) if known else (x ^ y, ~(x & y))
