"""Integer dot products in the least area: recoded activations, rows of partial products, one tree of full adders.

An activation is recoded once per row of the array, where it enters, into radix-4 digits -1, 0, 1, 2 (the top one
-2 .. 2, or -1 .. 1 for odd widths) that travel one-hot. A digit then costs an AND-OR per bit and element, and no
encoder. A negative digit takes the complement of the weight; the ones that complete these negations depend on the
activations alone, so they are counted once per row of X (:class:`Correction`) and enter at the top of the columns.
Figures: ``docs/decisions/0101-dot-product.md``.
"""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Shape, Signal, signed, unsigned
from amaranth.lib.wiring import In, Out

from ..lib.cell import Cell
from ..lib.layout import ArrayLayout
from ..lib.names import parameter


def digit_kinds(width):
    """Radix-4 digits of a symmetric ``width``-bit integer, lowest first: ``low``, then ``booth`` or ``ternary``."""
    top = "ternary" if width % 2 or width == 2 else "booth"
    return ["low"] * ((width + 1) // 2 - 1) + [top]


def code_width(width):
    """Bits of a recoded activation."""
    return sum(2 if kind == "ternary" else 3 for kind in digit_kinds(width))


def correction_shape(width, terms):
    """The sum that negative digits of ``terms`` activations leave out: at most one at each digit."""
    return unsigned((terms * sum(4 ** k for k in range(len(digit_kinds(width))))).bit_length())


def biased_shape(width, terms, rest):
    """A partial sum of ``terms`` exact products and the corrections of ``rest`` more."""
    limit = 2 ** (width - 1) - 1
    most = terms * limit ** 2 + rest * sum(4 ** k for k in range(len(digit_kinds(width))))
    return signed(most.bit_length() + 1)


def _digits(code, width):
    """The (kind, lines) of each digit of a code."""
    place = 0
    for kind in digit_kinds(width):
        lines = 2 if kind == "ternary" else 3
        yield kind, [code[place + n] for n in range(lines)]
        place += lines


def _negative(code, width):
    """The negative line of each digit."""
    return [lines[2 if kind == "booth" else 1] for kind, lines in _digits(code, width)]


class Recode(Cell):
    """One activation to its code.

    Parameters
    ----------
    width : int
        Bits of the activation, 2 to 16.

    Members
    -------
    i : ``In(signed(width))``
        Never -2^(width - 1).
    o : ``Out(code_width)``
        Per digit: one, minus, two (``low``); one, two, negative (``booth``); one, minus (``ternary``).
    """
    kind, area, apart = "recode", "skew", True

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("m")

    @staticmethod
    def ports(params):
        return {"i": In(signed(params.width)), "o": Out(code_width(params.width))}

    def body(self, platform):
        m, width = Module(), self.params.width
        lines, carry = [], Const(0, 1)
        for k, kind in enumerate(digit_kinds(width)):
            low, high = self.i[2 * k], self.i[min(2 * k + 1, width - 1)]
            if kind == "low":
                odd, next_carry = Signal(name=f"odd{k}"), Signal(name=f"carry{k}")
                m.d.comb += [odd.eq(low ^ carry), next_carry.eq(high & (low | carry))]
                lines += [odd & ~high, odd & high, ~odd & (high ^ (low & carry))]
                carry = next_carry
            elif kind == "booth":
                lines += [low ^ carry, (~high & low & carry) | (high & ~low & ~carry), high & ~(low & carry)]
            elif width == 2:    # -1 is 11 and 1 is 01
                lines += [low & ~high, high]
            else:
                lines += [~low & carry, low & ~carry]
        m.d.comb += self.o.eq(Cat(lines))
        return m


class Adder(Cell):
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
    kind, apart = "adder", False

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


class Tree:
    """Sums bits by column with :class:`Adder`, the bits that come first first."""

    def __init__(self, m, width, name="a"):
        self.m, self.width, self.name = m, width, name
        self.columns = [[] for _ in range(width + 1)]
        self.constant = 0
        self._count = 0

    def add(self, place, bit, arrival=0):
        self.columns[min(place, self.width)].append((arrival, self._next(), bit, False))

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
        adder = self.m.submodules[f"{self.name}{self._next()}"] = Adder(inverted)
        self.m.d.comb += [adder.a.eq(a), adder.b.eq(b), adder.c.eq(c)]
        time = max(ta + 2, tb + 2, other[0][0] + 1)
        self.columns[place].append((time, self._next(), adder.total, inverted))
        self.columns[place + 1].append((time, self._next(), adder.carry, not inverted))

    def _compress(self, place):
        """Leave at most two bits in a column."""
        column = self.columns[place]
        while len(column) >= 3:
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


class Dot(Cell):
    """A column of a group: ``south = north + sum of act * weight - corrections``, combinational.

    Golden twin: :func:`golden.matmul.mantissa_dot`, once the :class:`Correction` of the same codes is added.

    Parameters
    ----------
    width : int
        Bits of an operand, 2 to 16.
    terms : int
        Products.
    north : Shape or None
        Sum from above, unsigned if it is a correction; None leaves it out.
    south : Shape
        Wide enough for every sum; exact modulo 2^width otherwise.

    Members
    -------
    code : ``In(terms codes)``
        From :class:`Recode`.
    weight : ``In(terms x signed(width))``
    north, south : ``In``, ``Out``
    """
    kind, area, apart = "dot", "elements", False

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("m")
        terms: int = parameter("t")
        north: Shape | None = parameter("n")
        south: Shape = parameter("s")

    @staticmethod
    def ports(params):
        members = {"code": In(ArrayLayout(unsigned(code_width(params.width)), params.terms)),
                   "weight": In(ArrayLayout(signed(params.width), params.terms)), "south": Out(params.south)}
        if params.north is not None:
            members["north"] = In(params.north)
        return members

    def body(self, platform):
        m, params = Module(), self.params
        width = params.width
        tree = Tree(m, len(self.south))
        if params.north is not None:
            if params.north.signed:
                tree.add_signed(0, self.north)
            else:
                for place, bit in enumerate(self.north):
                    tree.add(place, bit)
        for term in range(params.terms):
            weight = self.weight[term]
            for k, (kind, lines) in enumerate(_digits(self.code[term], width)):
                bits = width if kind == "ternary" else width + 1
                once = Cat(weight, weight[-1])[:bits]
                twice = Cat(Const(0, 1), weight)[:bits]
                row = Signal(bits, name=f"row{term}_{k}")
                if kind == "low":
                    one, minus, two = (line.replicate(bits) for line in lines)
                    m.d.comb += row.eq((one & once) | (minus & ~once) | (two & twice))
                elif kind == "booth":
                    one, two, negative = (line.replicate(bits) for line in lines)
                    m.d.comb += row.eq((one & (once ^ negative)) | (two & (twice ^ negative)))
                else:
                    one, minus = (line.replicate(bits) for line in lines)
                    m.d.comb += row.eq((one & once) | (minus & ~once))
                tree.add_signed(2 * k, row, arrival=1)
        m.d.comb += self.south.eq(tree.result())
        return m


class Correction(Cell):
    """What the negative digits of a row of X leave out of every column, combinational.

    Parameters
    ----------
    width : int
        Bits of an activation.
    terms : int
        Activations: the rows of a segment.

    Members
    -------
    code : ``In(terms codes)``
    o : ``Out(correction_shape)``
    """
    kind, area, apart = "correction", "skew", True

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("m")
        terms: int = parameter("t")

    @staticmethod
    def ports(params):
        return {"code": In(ArrayLayout(unsigned(code_width(params.width)), params.terms)),
                "o": Out(correction_shape(params.width, params.terms))}

    def body(self, platform):
        m, params = Module(), self.params
        tree = Tree(m, len(self.o))
        for term in range(params.terms):
            for k, bit in enumerate(_negative(self.code[term], params.width)):
                tree.add(2 * k, bit)
        m.d.comb += self.o.eq(tree.result())
        return m
