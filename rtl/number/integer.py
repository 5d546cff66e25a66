"""Integers, or the mantissas of blocks: products and sums are exact."""

from dataclasses import dataclass

from amaranth import Signal, signed

from hbfp.format import HBFPFormat

from ..lib.names import parameter
from ..lib.signals import named
from ..lib.skew import delay
from .accumulation import IntegerSum
from .number import Number


@dataclass(frozen=True)
class Integer(Number):
    """Signed integers of ``width`` bits, symmetric about zero; the synthesis chooses multipliers and adders.

    Parameters
    ----------
    width : int
    lead : int
        Registers between the products of a column and the sum from above, 0 or 1: here behind each product.
    """
    width: int = parameter("int")
    lead: int = parameter("l", 0, rare=True)

    @property
    def element(self):
        return signed(self.width)

    def sum(self, terms, height):
        return signed(HBFPFormat(mantissa=self.width).sum_width(terms))

    def accumulation(self, design):
        return IntegerSum(design.accumulator_width, design.sided)

    def column(self, m, acts, weights, north, south, name):
        total = Signal(south, name=f"{name}_total")
        products = [act * weight for act, weight in zip(acts, weights, strict=True)]
        products = [delay(m, named(m, product, f"{name}_product{n}"), self.lead, f"{name}_product{n}")
                    for n, product in enumerate(products)] if self.lead else products
        m.d.comb += total.eq(sum(products, 0 if north is None else north))
        return total
