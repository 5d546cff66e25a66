"""FP32 comparison, minimum, maximum, select, absolute value, negation."""

from amaranth import Cat, Const, Mux
from amaranth.lib.wiring import In, Out

from .operation import Operation
from .raw import is_nan, named


class Operand:
    """Sign and magnitude of a pattern, flushed if the mode says so, and its tests."""

    def __init__(self, m, fmt, value, name, flush):
        exponent, fraction = value[fmt.fraction:fmt.width - 1], value[:fmt.fraction]
        if flush:
            fraction = fraction & exponent.any().replicate(fmt.fraction)
        self.sign = value[-1]
        self.magnitude = named(m, Cat(fraction, exponent), f"{name}_magnitude")
        self.nan = named(m, is_nan(Cat(fraction, exponent), fmt), f"{name}_nan")

    @property
    def bits(self):
        return Cat(self.magnitude, self.sign)


def canonical(fmt, nan, bits):
    """``bits``, or the one NaN."""
    return Mux(nan, Const(fmt.nan, fmt.width), bits)


class Compare(Operation):
    """Relation of ``a`` to ``b``; golden twin: :func:`golden.fp32.compare`.

    Members
    -------
    o : ``Out(4)``
        One bit is set: 0 less, 1 equal, 2 greater, 3 unordered (an operand is NaN). Zeros are equal.
    """

    @classmethod
    def data_ports(cls, params):
        return super().data_ports(params) | {"o": Out(4)}

    def datapath(self, m, pipe):
        x, y = (Operand(m, self.fmt, v, n, self.flush) for v, n in ((self.a, "a"), (self.b, "b")))
        below = named(m, x.magnitude < y.magnitude, "below")
        same = named(m, x.magnitude == y.magnitude, "same")
        zeros = ~(x.magnitude.any() | y.magnitude.any())
        unordered = named(m, x.nan | y.nan, "unordered")
        equal = named(m, same & (x.sign == y.sign) | zeros, "equal")
        # Of two signs the negative is less; of two negatives the larger magnitude.
        less = named(m, Mux(x.sign == y.sign, below ^ x.sign, x.sign) & ~equal, "less")
        return Cat(less & ~unordered, equal & ~unordered, ~(less | equal | unordered), unordered)


class Minimum(Operation):
    """754-2019 minimum: NaN if either is NaN, -0 below +0. Golden twin: :func:`golden.fp32.min`."""
    LARGER = False

    def datapath(self, m, pipe):
        x, y = (Operand(m, self.fmt, v, n, self.flush) for v, n in ((self.a, "a"), (self.b, "b")))
        less = Mux(x.sign == y.sign, (x.magnitude < y.magnitude) ^ x.sign, x.sign)
        pick = named(m, less ^ self.LARGER, "pick")
        return canonical(self.fmt, x.nan | y.nan, Mux(pick, x.bits, y.bits))


class Maximum(Minimum):
    """754-2019 maximum: NaN if either is NaN, -0 below +0. Golden twin: :func:`golden.fp32.max`."""
    LARGER = True


class Select(Operation):
    """``o = a`` if ``condition`` else ``b``; bits move unchanged. Golden twin: :func:`golden.fp32.select`.

    Members
    -------
    condition : ``In(1)``
    """

    @classmethod
    def data_ports(cls, params):
        return {"condition": In(1)} | super().data_ports(params)

    def datapath(self, m, pipe):
        return Mux(self.condition, self.a, self.b)


class Absolute(Operation):
    """``o = |a|``. Golden twin: :func:`golden.fp32.abs`."""
    OPERANDS = ("a",)

    def datapath(self, m, pipe):
        x = Operand(m, self.fmt, self.a, "a", self.flush)
        return canonical(self.fmt, x.nan, Cat(x.magnitude, Const(0, 1)))


class Negate(Operation):
    """``o = -a``. Golden twin: :func:`golden.fp32.neg`."""
    OPERANDS = ("a",)

    def datapath(self, m, pipe):
        x = Operand(m, self.fmt, self.a, "a", self.flush)
        return canonical(self.fmt, x.nan, Cat(x.magnitude, ~x.sign))
