"""FP32 sums of a product and an addend that the array's baselines use."""

from dataclasses import dataclass

from amaranth import Cat, Const
from amaranth.lib.wiring import In, Out

from hbfp.fields import check_choice
from hbfp.golden.spec.floats import BF16, FloatFormat

from ..lib.names import parameter
from .arith import Add, add_raw
from .multiply import MULTIPLIERS, bound_product, decide_product, multiply_raw, normal_product, round_product
from .operation import choose_cuts
from .raw import unpack


class SumOfProduct(Add):
    """What units that add a product have in common: an addend that may come as late as the sum needs it.

    Parameters
    ----------
    late : bool
        The addend ``c`` comes :attr:`lead` cycles after ``a`` and ``b``, when the product is there; else with them,
        and registers hold it that long. The result is ``pipeline`` cycles behind ``a`` and ``b`` in any case.
    """

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Add.Parameters):
        late: bool = parameter("late", False)

    def __init__(self, *values, late=False, **named):
        late = late and bool(self.leading(named.get("pipeline", 0)))
        super().__init__(*values, late=late, **named)

    @classmethod
    def leading(cls, pipeline):
        """The cuts of a depth that stand before the sum."""
        before = list(cls.CUTS)[:list(cls.CUTS).index("swap")]
        return [name for name in before if name in choose_cuts(cls.CUTS, pipeline)]

    @property
    def lead(self):
        """Cycles in which the product alone is formed."""
        return len(self.leading(self.params.pipeline))

    def meet(self, pipe, addend):
        """The addend behind as many registers as the product."""
        for name in () if self.params.late else self.leading(self.params.pipeline):
            addend, = pipe.cut(name, addend)
        return addend


class MulAdd(SumOfProduct):
    """Product and sum, each rounded: ``o = round(a * b) + c``; nothing is packed between the two.

    Golden twin: ``add(mul(a, b), c)``.

    Parameters
    ----------
    multiplier : str
        As in :class:`Mul`.
    """
    OPERANDS = ("a", "b", "c")
    SUBNORMALS = ("flush",)
    CUTS = {"partial": 0.15, "product": 0.3, "rounded": 0.5, "swap": 0.58, "align": 0.63, "sum": 0.71,
            "normalise": 0.85, "round": 0.97, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(SumOfProduct.Parameters):
        multiplier: str = parameter("", "plain")

        def __post_init__(self):
            super().__post_init__()
            check_choice("Multiplier", self.multiplier, MULTIPLIERS)

    def datapath(self, m, pipe):
        x, y, z = (self.operand(m, name) for name in self.OPERANDS)
        raw, = pipe.cut("product", multiply_raw(m, pipe, x, y, self.fmt.bias, self.params.multiplier))
        product, = pipe.cut("rounded", round_product(m, self.fmt, *decide_product(m, self.fmt, normal_product(m, raw))))
        z = self.meet(pipe, z)
        return add_raw(m, pipe, self.fmt, product, z, True, self.params.underflow)


class ProductAdd(SumOfProduct):
    """Exact product of two narrow floats plus a wide one, rounded once: ``o = a * b + c``.

    Golden twin: :func:`golden.fp32.fma` of the widened operands.

    Parameters
    ----------
    source : FloatFormat
        Format of ``a`` and ``b``: the exponent of ``fmt``, and at most half its precision.
    """
    SUBNORMALS = ("flush",)
    CUTS = {"product": 0.27, "swap": 0.4, "align": 0.46, "sum": 0.58, "normalise": 0.8, "round": 0.95, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(SumOfProduct.Parameters):
        source: FloatFormat = parameter("", BF16)

        def __post_init__(self):
            super().__post_init__()
            if self.source.exponent != self.fmt.exponent or 2 * self.source.precision > self.fmt.precision:
                raise ValueError(f"Product of {self.source!r} must fit the precision of {self.fmt!r}")

    @classmethod
    def data_ports(cls, params):
        return {"a": In(params.source.width), "b": In(params.source.width), "c": In(params.fmt.width),
                "o": Out(params.fmt.width)}

    def datapath(self, m, pipe):
        fmt, source = self.fmt, self.params.source
        x, y = (unpack(m, source, v, n, True) for v, n in ((self.a, "a"), (self.b, "b")))
        product = bound_product(m, normal_product(m, multiply_raw(m, pipe, x, y, fmt.bias)))
        product.significand = Cat(Const(0, fmt.precision - len(product.significand)), product.significand)
        product, = pipe.cut("product", product)
        return add_raw(m, pipe, fmt, product, self.meet(pipe, self.operand(m, "c")), True, self.params.underflow)
