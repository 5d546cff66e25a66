"""Integers whose activations travel as radix-4 digits: least area."""

from dataclasses import dataclass

from amaranth import Cat, unsigned

from ..fixed.booth import BoothDot, BoothRecoder, Correction, biased_shape, code_width, correction_shape, only_negative
from ..lib.names import parameter
from ..lib.skew import delay
from .integer import Integer
from .number import hold_complements


@dataclass(frozen=True)
class Recoded(Integer):
    """Integers as of :class:`Integer`, bit by bit: activations recoded once a row, one tree of full adders a column.

    The first sums of a column lack the corrections of the terms below: see :mod:`rtl.fixed.booth`. ``quick`` ones take
    less delay and more area.
    """
    width: int = parameter("recoded")
    quick: bool = parameter("quick", False)

    @property
    def activation(self):
        return unsigned(code_width(self.width))

    def sum(self, terms, height):
        return biased_shape(self.width, terms, height - terms) if terms < height else super().sum(terms, height)

    def start(self, height):
        return correction_shape(self.width, height)

    def enter(self, m, acts):
        codes = []
        for row, act in enumerate(acts):
            m.submodules[f"recode{row}"] = recode = BoothRecoder(self.width)
            m.d.comb += recode.i.eq(act)
            codes.append(recode.o)
        return codes

    def starts(self, m, segment, acts):
        m.submodules[f"correction{segment}"] = correction = Correction(self.width, len(acts))
        m.d.comb += correction.code.eq(
            Cat(acts) if not self.lead else
            delay(m, Cat(only_negative(act, self.width) for act in acts), self.lead, f"negative{segment}"))
        return correction.o

    def hold(self, m, load, weight):
        return hold_complements(m, load, weight)

    def column(self, m, acts, weights, north, south, name):
        m.submodules[name] = dot = BoothDot(self.width, len(acts), north.shape(), south, quick=self.quick,
                                             lead=self.lead)
        m.d.comb += [dot.code.eq(Cat(acts)), dot.weight.eq(Cat(weights)), dot.north.eq(north)]
        return dot.south
