"""Integers, or the mantissas of blocks: products and sums are exact."""

from dataclasses import dataclass

from amaranth import Signal, signed

from hbfp.format import HBFPFormat

from ..lib.names import parameter
from .accumulation import IntegerSum
from .number import Number


@dataclass(frozen=True)
class Integer(Number):
    """Signed integers of ``width`` bits, symmetric about zero; the synthesis chooses multipliers and adders.

    ``kept``: whether a register is behind each product.
    """
    width: int = parameter("int")
    kept: bool = parameter("p", False, rare=True)

    @property
    def lead(self):
        return int(self.kept)

    @property
    def element(self):
        return signed(self.width)

    def sum(self, terms, height):
        return signed(HBFPFormat(mantissa=self.width).sum_width(terms))

    def accumulation(self, design):
        return IntegerSum(design.accumulator_width)

    def column(self, m, acts, weights, north, south, name):
        total = Signal(south, name=f"{name}_total")
        products = [act * weight for act, weight in zip(acts, weights, strict=True)]
        if self.kept:
            for n, product in enumerate(products):
                products[n] = Signal.like(product, name=f"{name}_product{n}", reset_less=True)
                m.d.sync += products[n].eq(product)
        m.d.comb += total.eq(sum(products, 0 if north is None else north))
        return total
