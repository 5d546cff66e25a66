"""Trees of full adders: bits summed by column until each has one."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.names import parameter
from .prefix import add_prefix


class FullAdder(Component):
    """A full adder in the form that costs least in NAND, OR-AND-invert and XOR cells.

    Parameters
    ----------
    inverted : bool
        Which of its bits are complements: ``c`` and ``carry``, or if true ``a``, ``b`` and ``total``.

    Members
    -------
    a, b, c : ``In(1)``
    total, carry : ``Out(1)``
    """
    kind, apart = "full_adder", False

    @dataclass(frozen=True)
    class Parameters:
        inverted: bool = parameter("n")

    @staticmethod
    def ports(params):
        return {"a": In(1), "b": In(1), "c": In(1), "total": Out(1), "carry": Out(1)}

    def body(self, platform):
        m = Module()
        a, b, c = self.a, self.b, self.c
        half = Signal()    # of both complements the same
        m.d.comb += half.eq((a | b) & ~(a & b))
        if self.params.inverted:
            m.d.comb += [self.total.eq(~(~(half & c) & (half | c))), self.carry.eq((~a & ~b) | (half & c))]
        else:
            m.d.comb += [self.total.eq(~(half & ~c) & (half | ~c)), self.carry.eq(~((a | b) & (~half | ~c)))]
        return m


class CompressorTree:
    """Sums bits by column with :class:`FullAdder`, the bits that come first first."""

    def __init__(self, m, width, name="a"):
        self.m, self.width, self.name = m, width, name
        self.columns = [[] for _ in range(width + 1)]
        self.constant = 0
        self._count = 0

    def add(self, place, bit, arrival=0):
        self.columns[min(place, self.width)].append((arrival, self._next(), bit, False))

    def add_row(self, place, value, arrival=0):
        """Add ``value << place``, unsigned."""
        for n, bit in enumerate(value):
            self.add(place + n, bit, arrival)

    def add_signed(self, place, value, arrival=0):
        """Add ``value << place``: its top bit counts negative."""
        for n, bit in enumerate(value):
            if n == len(value) - 1 and place + n < self.width:
                bit = ~bit
                self.constant -= 1 << place + n
            self.add(place + n, bit, arrival)

    def subtract(self, place, value):
        """Take ``value << place`` off, modulo 2^width: its complement is added, and one."""
        self.constant += (1 << place) - (1 << place + len(value))
        for n, bit in enumerate(value):
            self.add(place + n, ~bit)

    def _next(self):
        self._count += 1
        return self._count

    def _signal(self, value, name):
        signal = Signal(name=f"{name}{self._next()}")
        self.m.d.comb += signal.eq(value)
        return signal

    def _adder(self, place, bits):
        """Replace three bits of a column by a sum and a carry."""
        inverted = sum(bit[3] for bit in bits) >= 2
        same = [bit for bit in bits if bit[3] == inverted]
        other = [bit for bit in bits if bit[3] != inverted]
        if other:
            c = other[0][2]
        else:
            other = [same.pop()]
            c = ~other[0][2]
        (ta, _, a, _), (tb, _, b, _) = same
        adder = self.m.submodules[f"{self.name}{self._next()}"] = FullAdder(inverted)
        self.m.d.comb += [adder.a.eq(a), adder.b.eq(b), adder.c.eq(c)]
        time = max(ta + 2, tb + 2, other[0][0] + 1)
        self.columns[place].append((time, self._next(), adder.total, inverted))
        self.columns[place + 1].append((time, self._next(), adder.carry, not inverted))

    def _compress(self, place, most=2):
        """Leave at most so many bits in a column, two or more."""
        column = self.columns[place]
        while len(column) > most:
            column.sort(key=lambda bit: bit[:2])
            bits = column[:3]
            if len({bit[3] for bit in bits}) == 1:
                bits[2] = next((bit for bit in column if bit[3] != bits[0][3]), bits[2])
            for bit in bits:
                column.remove(bit)
            self._adder(place, bits)

    def pairs(self):
        """``(place, bit)`` of the bits that full adders alone leave: one or two of each column."""
        for place in range(self.width):
            self._compress(place)
        return [(place, ~bit[2] if bit[3] else bit[2]) for place in range(self.width) for bit in self.columns[place]]

    def left(self, most=2):
        """The bits that full adders alone leave, the constant included, by place: at most so many, two or more."""
        for place in range(self.width):
            if self.constant >> place & 1:
                self.add(place, Const(1, 1))
        self.constant = 0
        for place in range(self.width):
            self._compress(place, most)
        return [[~bit[2] if bit[3] else bit[2] for bit in self.columns[place]] for place in range(self.width)]

    def quick(self):
        """The bits of the sum, lowest first, from :func:`~.prefix.add_prefix`."""
        columns = self.left()
        rows = [Cat(column[n] if n < len(column) else Const(0, 1) for column in columns) for n in range(2)]
        return add_prefix(self.m, *rows, f"{self.name}_last")[:self.width]

    def result(self):
        """The bits of the sum, lowest first."""
        out = []
        for place in range(self.width):
            self._compress(place)
            column = self.columns[place]
            plain = [~bit[2] if bit[3] else bit[2] for bit in column]
            time = max((bit[0] for bit in column), default=0) + 1
            one = self.constant >> place & 1
            if len(plain) == 2:
                a, b = plain
                total, carry = (~(a ^ b), a | b) if one else (a ^ b, a & b)
                self.columns[place + 1].append((time, self._next(), self._signal(carry, "carry"), False))
            elif plain:
                total = ~plain[0] if one else plain[0]
                if one:
                    self.columns[place + 1].append((time, self._next(), plain[0], False))
            else:
                total = Const(one, 1)
            out.append(self._signal(total, "bit"))
        return Cat(out)
