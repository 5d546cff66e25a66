"""Memories that know when a bit of theirs has turned round."""

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value

from .banked import stored


def with_parity(word: Value, granules: int = 1) -> Value:
    """A word whose granules each have one bit more, on top, with which they have an odd number of ones.

    Odd, so that a granule of zeros alone, such as a memory without power gives, is wrong.
    """
    size = len(word) // granules
    parts = [word[n * size:(n + 1) * size] for n in range(granules)]
    return Cat(Cat(part, ~part.xor()) for part in parts)


class Guarded:
    """A memory with a bit of parity for each granule; plain logic inside a component.

    Its attributes are the members of a :class:`~rtl.lib.memory.Ram` of two ports, and ``broken``. What it gives is
    looked at in every cycle from the first read since reset on, so that a bit which turns round at the memory's output
    is seen, too. A single bit of a granule is always seen, as every odd number of them is.

    Parameters
    ----------
    m : Module
    name : str
    words, width, granules, banks : int
        As of :func:`~rtl.lib.banked.stored`.
    readers : Value
        A bit for each that reads: whose read ``r_en`` is.
    clears, place : Value, optional
        While ``clears`` is high, zeros are written to word ``place``, modulo the words there are: a memory whose words
        may be read before anyone writes them must be cleared first.

    Attributes
    ----------
    broken : Signal
        A bit for each that reads: what it has read last is not what was written; two cycles after the read at the
        earliest, one after the data.
    """

    def __init__(self, m: Module, name: str, words: int, width: int, granules: int = 1, banks: int = 0, *,
                 readers: Value, clears: Value | None = None, place: Value | None = None) -> None:
        ram = stored(m, name, words, width + granules, granules, banks)
        self.w_en, self.w_data = Signal(granules, name=f"{name}_enables"), Signal(width, name=f"{name}_given")
        self.r_en, self.r_data = Signal(name=f"{name}_asked"), Signal(width, name=f"{name}_found")
        self.w_addr, self.r_addr = (Signal.like(each, name=f"{name}_{way}")
                                    for way, each in (("to", ram.w_addr), ("from", ram.r_addr)))
        self.broken = Signal(len(readers), name=f"{name}_broken")
        enables, to, given = self.w_en, self.w_addr, self.w_data
        if clears is not None:
            enables, to = enables | clears.replicate(granules), Mux(clears, place[:len(to)], to)
            given &= ~clears.replicate(width)
        m.d.comb += [ram.w_en.eq(enables), ram.w_addr.eq(to), ram.w_data.eq(with_parity(given, granules)),
                     ram.r_en.eq(self.r_en), ram.r_addr.eq(self.r_addr),
                     self.r_data.eq(Cat(part[:-1] for part in self._parts(ram.r_data)))]
        # Of each bank by itself: what comes behind the choice of a bank is late.
        wrong = []
        for number, (reads, found) in enumerate(getattr(ram, "banks", [(self.r_en, ram.r_data)])):
            last = Signal(len(readers), name=f"{name}_reader{number}")
            with m.If(reads):
                m.d.sync += last.eq(readers)
            wrong.append(Mux(Cat(part.xor() for part in self._parts(found)).all(), 0, last))
        m.d.sync += self.broken.eq(reduce(or_, wrong))

    def _parts(self, word):
        """The granules of a word, with their parity."""
        size = len(word) // len(self.w_en)
        return [word[n * size:(n + 1) * size] for n in range(len(self.w_en))]
