"""Addresses of the vector unit's rows in V: slots, which move from iteration to iteration, and words of a row."""

from amaranth import Module, Mux, Signal

from .layouts import ADDRESS_BITS

#: Bits of a number of words on a line; 0 stands for 2^8.
INNER_BITS = 8


class Slot:
    """Where the rows of a slot begin; plain logic inside a component.

    Parameters
    ----------
    m : Module
    name : str
    base, stride0, stride1 : Value
        The first row, and how far the inner and the outer loop move it.
    start, inner, outer : Value
        In this cycle: begin, the inner loop goes on, the outer loop goes on and the inner one begins anew.

    Attributes
    ----------
    here : Signal
        The first row in the current iteration.
    """

    def __init__(self, m: Module, name, base, stride0, stride1, start, inner, outer):
        self.here, line = (Signal(ADDRESS_BITS, name=f"{name}_{part}", reset_less=True) for part in ("here", "line"))
        following = Signal(ADDRESS_BITS, name=f"{name}_next")
        m.d.comb += following.eq(Mux(outer, line + stride1, self.here + stride0))
        with m.If(inner | outer):
            m.d.sync += self.here.eq(following)
        with m.If(outer):
            m.d.sync += line.eq(following)
        with m.If(start):
            m.d.sync += [self.here.eq(base), line.eq(base)]


class Row:
    """Addresses of the words of a row, ``inner`` to a line; plain logic inside a component.

    Parameters
    ----------
    m : Module
    name : str
    start, first : Value
        In this cycle: begin with the address ``first``, which is :attr:`address` in the same cycle.
    inner, step : Value
        Words of a line, and how far lines are apart.
    advance : Value
        Go on to the next word.
    last_word : Value

    Attributes
    ----------
    address, last : Signal
        Address of the current word, and whether it is the row's last.
    """

    def __init__(self, m: Module, name, start, first, inner, step, advance, last_word):
        self.address, line = (Signal(ADDRESS_BITS, name=f"{name}_{part}") for part in ("address", "line"))
        place, word = Signal(INNER_BITS, name=f"{name}_place"), Signal(INNER_BITS, name=f"{name}_word")
        kept = [Signal.like(each, name=f"{each.name}_kept", reset_less=True)
                for each in (self.address, line, place, word)]
        self.last, wraps = Signal(name=f"{name}_last"), Signal(name=f"{name}_wraps")
        following = Signal(ADDRESS_BITS, name=f"{name}_next")
        m.d.comb += [each.eq(Mux(start, begin, before)) for each, begin, before in zip(
            (self.address, line, place, word), (first, first, 0, 0), kept, strict=True)]
        m.d.comb += [self.last.eq(word == last_word), wraps.eq((place + 1)[:INNER_BITS] == inner),
                     following.eq(Mux(wraps, line + step, self.address + 1))]
        m.d.sync += [before.eq(each) for before, each in zip(kept, (self.address, line, place, word), strict=True)]
        with m.If(advance):
            m.d.sync += [kept[0].eq(following), kept[1].eq(Mux(wraps, following, line)),
                         kept[2].eq(Mux(wraps, 0, place + 1)), kept[3].eq(word + 1)]
