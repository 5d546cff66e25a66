"""Floats: a multiply-add an element, one below the other."""

from dataclasses import dataclass

from amaranth import unsigned

from ..lib.names import parameter
from .accumulation import RULES, FloatSum
from .number import Number


@dataclass(frozen=True)
class Float(Number):
    """Floats with FP32 sums; a subclass names the multiply-add and its rules.

    Parameters
    ----------
    pipeline : int
        Registers inside each multiply-add.
    """
    pipeline: int = parameter("p", 0)

    #: Bits of an element.
    WIDTH = 32
    #: The multiply-add, a :class:`rtl.fp32.multiply_add.SumOfProduct`.
    UNIT = None
    #: Whether subnormals are kept, as IEEE 754 has it, or are zero.
    SUBNORMALS = "flush"

    @classmethod
    def of(cls, design):
        """The numbers of a design."""
        return cls(pipeline=design.pipeline)

    @property
    def lead(self):
        return len(self.UNIT.leading(self.pipeline))

    @property
    def step(self):
        return 1 + self.pipeline - self.lead

    @property
    def element(self):
        return unsigned(self.WIDTH)

    def sum(self, terms, height):
        return unsigned(32)

    def accumulation(self, design):
        """An adder with as many registers as an element has in its sum, one at least if it has any."""
        return FloatSum(self.SUBNORMALS, max(self.step - 1, 1) if self.pipeline else 0)

    def unit(self):
        """The multiply-add of an element."""
        return self.UNIT(pipeline=self.pipeline, late=True, enable=False, **RULES[self.SUBNORMALS])

    def column(self, m, acts, weights, north, south, name):
        for n, (act, weight) in enumerate(zip(acts, weights, strict=True)):
            m.submodules[f"{name}_{n}"] = mac = self.unit()
            m.d.comb += [mac.a.eq(act), mac.b.eq(weight), mac.c.eq(0 if north is None else north)]
            north = mac.o
        return north
