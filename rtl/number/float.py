"""Floats: a multiply-add an element, one below the other."""

from dataclasses import dataclass

from amaranth import Const, unsigned

from hbfp.golden.spec.floats import FP32

from ..fp32.inside import PackSum, Prepare, bits_in, sum_layout
from ..lib.names import parameter
from .accumulation import RULES, FloatSum
from .number import Number, hold_complements


@dataclass(frozen=True)
class Float(Number):
    """Floats with FP32 sums; a subclass names the multiply-add and its rules.

    Parameters
    ----------
    pipeline : int
        Registers inside each multiply-add.
    multiplier : str
        One of :data:`rtl.fp32.multiply.MULTIPLIERS`.
    chain : bool
        Whether adders are carry chains.
    """
    pipeline: int = parameter("p", 0)
    multiplier: str = parameter("", "plain")
    chain: bool = parameter("chain", False, rare=True)

    #: Format of an element.
    FORMAT = FP32
    #: The multiply-add, a :class:`rtl.fp32.multiply_add.SumOfProduct`.
    UNIT = None
    #: Whether subnormals are kept, as IEEE 754 has it, or are zero.
    SUBNORMALS = "flush"

    @classmethod
    def of(cls, design):
        """The numbers of a design."""
        return cls(pipeline=design.pipeline, multiplier=design.multiplier, chain=design.on_fpga)

    @property
    def lead(self):
        return len(self.UNIT.leading(self.pipeline))

    @property
    def step(self):
        return 1 + self.pipeline - self.lead

    @property
    def element(self):
        return unsigned(self.FORMAT.width)

    @property
    def small(self):
        """Whether elements are in the least area: what an activation decides alone is made once a row of a group."""
        return self.multiplier == "recoded" and not self.pipeline

    @property
    def chained(self):
        """Whether sums that go on down a column are not packed."""
        return self.small and self.SUBNORMALS == "flush"

    def sum(self, terms, height):
        return unsigned(bits_in(sum_layout(FP32)) if self.chained and terms < height else 32)

    def prepare(self, m, acts):
        if not self.small:
            return acts
        found = []
        for row, act in enumerate(acts):
            m.submodules[f"prepare{row}"] = unit = Prepare(self.FORMAT, self.SUBNORMALS)
            m.d.comb += unit.i.eq(act)
            found.append(unit.o)
        return found

    def hold(self, m, load, weight):
        return hold_complements(m, load, weight) if self.small else super().hold(m, load, weight)

    def accumulation(self, design):
        """An adder with as many registers as an element has in its sum, one at least if it has any."""
        return FloatSum(self.SUBNORMALS, max(self.step - 1, 1) if self.pipeline else 0, design.on_fpga)

    def unit(self, **more):
        """The multiply-add of an element, which may have parameters of its own."""
        return self.UNIT(pipeline=self.pipeline, multiplier=self.multiplier, late=True, inside=self.small, enable=False,
                         chain=self.chain, **RULES[self.SUBNORMALS], **more)

    def column(self, m, acts, weights, north, south, name):
        zero = Const(1 << sum_layout(FP32)["zero"].offset if self.chained else 0, 40)
        for n, (act, weight) in enumerate(zip(acts, weights, strict=True)):
            m.submodules[f"{name}_{n}"] = mac = self.unit()
            m.d.comb += [mac.a.eq(act), mac.b.eq(weight), mac.c.eq(zero if north is None else north)]
            north = mac.o
        if self.chained and south.width == 32:
            m.submodules[f"{name}_pack"] = unit = PackSum(FP32)
            m.d.comb += unit.i.eq(north)
            north = unit.o
        return north
