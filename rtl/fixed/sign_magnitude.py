"""Integer dot products of signs and magnitudes: no two's complement before the sum, no recoding.

A full adder is self-dual: with all inputs complemented, both outputs are. So the bits of a product of magnitudes are
added up without their sign until no column has more than two of them, and only what is left is complemented where
the product is negative. Complements of all bits of a product P of two m-bit magnitudes make (2^m - 1)^2 - P: the
negative products are counted, and their number times that constant is taken off once for the whole sum.
Figures: ``docs/decisions/0104-converter.md``.
"""

from dataclasses import dataclass

from amaranth import Cat, Module, Signal, signed
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from .compressor import CompressorTree


class SignMagnitudeDot(Component):
    """Exact ``o = sum of a * b`` of numbers that are given as sign and magnitude, combinational.

    Golden twin: :func:`golden.matmul.mantissa_dot`.

    Parameters
    ----------
    bits : int
        Bits of a magnitude.
    terms : int
        Products.

    Members
    -------
    a_negative, b_negative : ``In(terms)``
        Signs; that of a zero may be either.
    a, b : ``In(terms x bits)``
        Magnitudes.
    o : ``Out(signed)``
    """
    kind, area, apart = "sign_magnitude_dot", "elements", True

    @dataclass(frozen=True)
    class Parameters:
        bits: int = parameter("b")
        terms: int = parameter("t")

    @staticmethod
    def ports(params):
        numbers = ArrayLayout(params.bits, params.terms)
        width = (params.terms * (2 ** params.bits - 1) ** 2).bit_length() + 1
        return {"a_negative": In(params.terms), "a": In(numbers), "b_negative": In(params.terms), "b": In(numbers),
                "o": Out(signed(width))}

    def body(self, platform):
        m = Module()
        bits, terms = self.params.bits, self.params.terms
        negative = Signal(terms)
        m.d.comb += negative.eq(self.a_negative ^ self.b_negative)
        total, count = CompressorTree(m, len(self.o), "sum"), CompressorTree(m, terms.bit_length(), "count")
        for n in range(terms):
            product = CompressorTree(m, 2 * bits, f"product{n}")
            for k in range(bits):
                for j in range(bits):
                    product.add(k + j, self.a[n][k] & self.b[n][j])
            for place, bit in product.pairs():
                total.add(place, bit ^ negative[n], arrival=3)
            count.add(0, negative[n])
        number = count.result()
        # -(2^m - 1)^2 = -2^2m + 2^(m + 1) - 1
        total.subtract(2 * bits, number)
        total.subtract(0, number)
        for n, bit in enumerate(number):
            total.add(bits + 1 + n, bit, arrival=2 * n)
        m.d.comb += self.o.eq(Cat(total.result()))
        return m
