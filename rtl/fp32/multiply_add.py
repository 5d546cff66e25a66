"""FP32 sums of a product and an addend that the array's baselines use."""

from dataclasses import dataclass

from amaranth import Cat, Const
from amaranth.lib.wiring import In, Out

from hbfp.checks import check_choice
from hbfp.golden.spec.floats import BF16, FloatFormat

from ..lib.names import parameter
from .arith import Add, add_raw
from .inside import bits_in, prepared, prepared_layout, sum_layout, unpacked_sum
from .multiply import (
    MULTIPLIERS,
    add_exponents,
    bound_product,
    decide_product,
    multiply_raw,
    normal_product,
    round_product,
    round_product_ripple,
)
from .operation import choose_cuts
from .raw import named, unpack


class SumOfProduct(Add):
    """What units that add a product have in common: an addend that may come as late as the sum needs it.

    Parameters
    ----------
    late : bool
        The addend ``c`` comes :attr:`lead` cycles after ``a`` and ``b``, when the product is there; else with them,
        and registers hold it that long. The result is ``pipeline`` cycles behind ``a`` and ``b`` in any case.
    multiplier : str
        As in :class:`Mul`; ``recoded`` without registers has adders that are rows of full adders, too.
    inside : bool
        The operand ``a`` comes in :func:`~.inside.prepared_layout`, and where subnormals are flushed the addend and the
        result are in :func:`~.inside.sum_layout`. In the least area alone (:attr:`ripple`).
    """

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Add.Parameters):
        late: bool = parameter("late", False)
        multiplier: str = parameter("", "plain")
        inside: bool = parameter("inside", False)

        def __post_init__(self):
            super().__post_init__()
            check_choice("Multiplier", self.multiplier, MULTIPLIERS)
            if self.inside and (self.pipeline or self.multiplier != "recoded"):
                raise ValueError("Multiply-adds inside an array need multiplier recoded and pipeline 0")

    @property
    def apart(self):
        """Inside an array a multiply-add is measured by itself: what it could share stands outside of it."""
        return True if self.params.inside else None

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

    @property
    def ripple(self):
        """Whether adders are rows of full adders: where a unit is to be small, and has no register to be quick with."""
        return self.params.multiplier == "recoded" and not self.params.pipeline

    @classmethod
    def data_ports(cls, params):
        source, width = getattr(params, "source", params.fmt), params.fmt.width
        sums = bits_in(sum_layout(params.fmt)) if params.inside and params.subnormals == "flush" else width
        return {"a": In(bits_in(prepared_layout(source)) if params.inside else source.width), "b": In(source.width),
                "c": In(sums), "o": Out(sums)}

    def operands(self, m):
        """Both factors and the addend, taken apart."""
        source, flush, inside = getattr(self.params, "source", self.fmt), self.flush, self.params.inside
        a, b = None if inside else unpack(m, source, self.a, "a", flush), unpack(m, source, self.b, "b", flush)
        for each in (a, b):
            if each is not None:
                each.exponent = rebiased(source, self.fmt, each.exponent)
        return (prepared(source, self.a) if inside else a, b,
                unpacked_sum(self.fmt, self.c) if inside and flush else unpack(m, self.fmt, self.c, "c", flush))

    #: Fewest registers with which the sum is in the least delay.
    QUICK = 1

    def add(self, m, pipe, product, addend):
        """The sum of both, as the result has it."""
        return add_raw(m, pipe, self.fmt, product, self.meet(pipe, addend), self.flush, self.params.underflow,
                       self.ripple, self.params.inside, quick=len(pipe.active) >= self.QUICK)

    def meet(self, pipe, addend):
        """The addend behind as many registers as the product."""
        for name in () if self.params.late else self.leading(self.params.pipeline):
            addend, = pipe.cut(name, addend)
        return addend


def rebiased(source, fmt, exponent):
    """An exponent field of ``source`` as one of a format with more bits, whose bias is larger: its top bit tells the
    new ones between, so that this takes an inverter. That of Inf and NaN is any."""
    more = fmt.exponent - source.exponent
    return Cat(exponent[:-1], (~exponent[-1]).replicate(more), exponent[-1]) if more else exponent


class MulAdd(SumOfProduct):
    """Product and sum, each rounded: ``o = round(a * b) + c``; nothing is packed between the two.

    Golden twin: ``add(mul(a, b), c)``.
    """
    OPERANDS = ("a", "b", "c")
    SUBNORMALS = ("flush",)
    CUTS = {"partial": 0.25, "product": 0.3, "rounded": 0.5, "swap": 0.56, "align": 0.59, "sum": 0.71,
            "normalise": 0.85, "round": 0.97, "output": 1.0}

    def datapath(self, m, pipe):
        fmt, multiplier = self.fmt, self.params.multiplier
        x, y, z = self.operands(m)
        quick = bool(pipe.active)
        raw, = pipe.cut("product", multiply_raw(m, pipe, x, y, fmt.bias, multiplier, self.ripple, quick))
        if self.ripple:
            product = round_product_ripple(m, fmt, x, y, raw)
        else:
            product, = pipe.cut("rounded", round_product(
                m, fmt, *decide_product(m, fmt, normal_product(m, raw)), quick))
        return self.add(m, pipe, product, z)


class ProductAdd(SumOfProduct):
    """Exact product of two narrow floats plus a wide one, rounded once: ``o = a * b + c``.

    Golden twin: :func:`golden.fp32.fma` of the widened operands.

    Parameters
    ----------
    source : FloatFormat
        Format of ``a`` and ``b``: at most the exponent of ``fmt``, and half its precision.
    """
    SUBNORMALS = ("flush",)
    #: A lone register makes it quicker than the cores that it is compared with, anyway.
    QUICK = 2
    CUTS = {"product": 0.27, "swap": 0.4, "align": 0.46, "sum": 0.58, "normalise": 0.8, "round": 0.95, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(SumOfProduct.Parameters):
        source: FloatFormat = parameter("", BF16)

        def __post_init__(self):
            super().__post_init__()
            if self.source.exponent > self.fmt.exponent or 2 * self.source.precision > self.fmt.precision:
                raise ValueError(f"Product of {self.source!r} must fit the precision of {self.fmt!r}")

    def datapath(self, m, pipe):
        fmt = self.fmt
        x, y, z = self.operands(m)
        # So narrow a product gains nothing from digits where it has to be quick.
        raw = multiply_raw(m, pipe, x, y, fmt.bias, self.params.multiplier if self.ripple else "plain", self.ripple)
        product = normal_product(m, raw)
        if self.ripple:
            product.exponent = named(m, add_exponents(m, x, y, fmt.bias, raw.significand[-1]), "product_exponent")
        else:
            product = bound_product(m, product)
        product.significand = Cat(Const(0, fmt.precision - len(product.significand)), product.significand)
        product, = pipe.cut("product", product)
        return self.add(m, pipe, product, z)
