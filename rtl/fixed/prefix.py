"""Adders whose carries are a parallel prefix: the least delay, where `+` takes twice as long under the recipes here."""

from amaranth import Cat, Const, Value

from ..lib.signals import named


def add_prefix(m, a, b, name, carry=0):
    """``a + b + carry`` of two unsigned values of one length, and a bit more, by Kogge and Stone.

    Parameters
    ----------
    m : Module
    a, b : Value
    name : str
        Prefix of names, unique in ``m``.
    carry : Value or int
        One bit.
    """
    differ = named(m, a ^ b, f"{name}_differ")
    # Bit n of `carries` is the carry into place n, as far as places from n - step on decide it; `passes`: they pass it.
    carries, passes = (named(m, value, f"{name}_{what}") for what, value in (
        ("carries", Cat(Value.cast(carry)[:1], a & b)), ("passes", Cat(Const(0, 1), differ))))
    step = 1
    while step < len(carries):
        before, passed = (Cat(Const(0, step), value)[:len(carries)] for value in (carries, passes))
        carries, passes = (named(m, value, f"{name}_{what}{step}") for what, value in (
            ("carries", carries | passes & before), ("passes", passes & passed)))
        step *= 2
    return Cat(differ ^ carries[:-1], carries[-1])


def add_chain(m, a, b, name, carry=0):
    """The same by ``+``, which an FPGA has a carry chain for."""
    return named(m, Cat(Const(1, 1), a) + Cat(Value.cast(carry)[:1], b), f"{name}_chain")[1:]


def carry_save(m, values, width, name, most=2):
    """``most`` values that have the same sum, but for what is above ``width`` bits: full adders make two of three."""
    values = [named(m, Cat(value, Const(0, width))[:width], f"{name}_{n}") for n, value in enumerate(values)]
    while len(values) > most:
        a, b, c, *values = values
        n = f"{name}_{len(values)}"
        differ = named(m, a ^ b, f"{n}_differ")
        values += [named(m, differ ^ c, f"{n}_sum"),
                   named(m, Cat(Const(0, 1), a & b | differ & c)[:width], f"{n}_carry")]
    return values


def sum_prefix(m, values, width, name):
    """The lowest ``width`` bits of the sum of unsigned values, by full adders until :func:`add_prefix` is left."""
    values = carry_save(m, values, width, name)
    return add_prefix(m, *values, name)[:width] if len(values) > 1 else values[0]
