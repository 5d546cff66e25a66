"""Integers, or the mantissas of blocks: products and sums are exact."""

from dataclasses import dataclass

from amaranth import Signal, signed

from hbfp.format import HBFPFormat

from ..lib.names import parameter
from .accumulation import IntegerSum
from .number import Number


@dataclass(frozen=True)
class Integer(Number):
    """Signed integers of ``width`` bits, symmetric about zero; the synthesis chooses multipliers and adders."""
    width: int = parameter("int")

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
        m.d.comb += total.eq(sum(products, 0 if north is None else north))
        return total
