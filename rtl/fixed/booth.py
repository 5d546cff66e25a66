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

from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from .compressor import CompressorTree

#: Bits of each place that a register holds in a column of a group, in place of the sum of its products.
HELD = 3


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


def digits_of(code, width):
    """The (kind, lines) of each digit of a code."""
    place = 0
    for kind in digit_kinds(width):
        lines = 2 if kind == "ternary" else 3
        yield kind, [code[place + n] for n in range(lines)]
        place += lines


def _negative(kind):
    """Which line of a digit is negative."""
    return 2 if kind == "booth" else 1


def negative_lines(code, width):
    """The negative line of each digit."""
    return [lines[_negative(kind)] for kind, lines in digits_of(code, width)]


def only_negative(code, width):
    """A code with its negative lines alone."""
    return Cat(line if n == _negative(kind) else Const(0, 1)
               for kind, lines in digits_of(code, width) for n, line in enumerate(lines))


class BoothRecoder(Component):
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
    kind, area, apart = "booth_recoder", "skew", True

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


class BoothDot(Component):
    """A column of a group: ``south = north + sum of act * weight - corrections``, combinational, or products a cycle
    before ``north``.

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
    head : Shape, optional
        Shape of a correction beside ``north``.
    quick : bool
        Whether the last carries are a parallel prefix: less delay and more area.
    lead : int
        1 puts a register where the fewest bits cross: products, and ``head``, then come a cycle before ``north``. Only
        ``quick`` ones.

    Members
    -------
    code : ``In(terms codes)``
        From :class:`BoothRecoder`.
    weight : ``In(terms x signed(width))``
    north, head, south : ``In``, ``In``, ``Out``
    """
    kind, area, apart = "booth_dot", "elements", False

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("m")
        terms: int = parameter("t")
        north: Shape | None = parameter("n")
        south: Shape = parameter("s")
        head: Shape | None = parameter("h", None)
        quick: bool = parameter("quick", False)
        lead: int = parameter("l", 0)

    @staticmethod
    def ports(params):
        members = {"code": In(ArrayLayout(unsigned(code_width(params.width)), params.terms)),
                   "weight": In(ArrayLayout(signed(params.width), params.terms)), "south": Out(params.south)}
        return members | {name: In(shape) for name in ("north", "head")
                          if (shape := getattr(params, name)) is not None}

    def body(self, platform):
        m, params = Module(), self.params
        width = params.width
        tree = CompressorTree(m, len(self.south))
        for name in ("head",) if params.lead else ("north", "head"):
            if getattr(params, name) is not None:
                self._enter(tree, getattr(self, name))
        for term in range(params.terms):
            weight = self.weight[term]
            for k, (kind, lines) in enumerate(digits_of(self.code[term], width)):
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
        if params.lead:
            tree = self._hold(m, tree)
        m.d.comb += self.south.eq(tree.quick() if params.quick else tree.result())
        return m

    @staticmethod
    def _enter(tree, value):
        """Add a sum or a correction."""
        if value.shape().signed:
            tree.add_signed(0, value)
        else:
            for place, bit in enumerate(value):
                tree.add(place, bit)

    def _hold(self, m, tree):
        """A tree of what is left of another one a cycle later, and of ``north``."""
        after = CompressorTree(m, tree.width, "b")
        for place, bits in enumerate(tree.left(HELD)):
            held = Signal(len(bits), name=f"held{place}", reset_less=True)
            m.d.sync += held.eq(Cat(bits))
            for bit in held:
                after.add(place, bit)
        if self.params.north is not None:
            self._enter(after, self.north)
        return after


class Correction(Component):
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
        tree = CompressorTree(m, len(self.o))
        for term in range(params.terms):
            for k, bit in enumerate(negative_lines(self.code[term], params.width)):
                tree.add(2 * k, bit)
        m.d.comb += self.o.eq(tree.result())
        return m
