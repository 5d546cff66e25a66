"""FP32 fused multiply-add."""

from amaranth import Cat, Const, Mux

from .multiply import add_exponents, bound_product, multiply_raw
from .multiply_add import MulAdd
from .raw import named


class Fma(MulAdd):
    """Product and sum rounded once: ``o = a * b + c``. Golden twin: :func:`golden.fp32.fma`.

    The addend is widened to the exact product and the two meet in the adder of :class:`~.arith.Add`;
    a window of twice the precision and two bits is enough, see docs/design/02-fp32-arithmetic.md.
    """
    SUBNORMALS = ("gradual", "flush")
    CUTS = {"partial": 0.2, "product": 0.35, "swap": 0.45, "align": 0.5, "sum": 0.63, "normalise": 0.85,
            "round": 0.97, "output": 1.0}

    def datapath(self, m, pipe):
        fmt = self.fmt
        x, y, z = self.operands(m)
        raw = multiply_raw(m, pipe, x, y, fmt.bias, self.params.multiplier, self.ripple, bool(pipe.active))
        if self.ripple:
            raw.exponent = named(m, add_exponents(m, x, y, fmt.bias), "product_exponent")
        product = bound_product(m, raw)
        z.significand = Cat(Const(0, fmt.precision - 1), z.significand, Const(0, 1))
        if self.flush and not self.ripple:
            lowest = Const(-1 << (fmt.exponent + 1), product.exponent.shape())
            z.exponent = named(m, Mux(z.zero, lowest, z.exponent), "addend_exponent")
        product, = pipe.cut("product", product)
        return self.add(m, pipe, product, z)
