"""FP32: product and sum rounded, or both at once."""

from dataclasses import dataclass

from ..fp32.fma import Fma
from ..fp32.multiply_add import MulAdd
from ..lib.names import parameter
from .accumulation import RULES
from .float import Float


@dataclass(frozen=True)
class Fp32(Float):
    """FP32, product and sum each rounded; subnormals are zero, and zero is +0."""
    NAME = "fp32"
    UNIT = MulAdd

    multiplier: str = parameter("", "plain")

    @classmethod
    def of(cls, design):
        return cls(pipeline=design.pipeline, multiplier=design.multiplier)

    def unit(self):
        return self.UNIT(pipeline=self.pipeline, multiplier=self.multiplier, late=True, enable=False,
                         **RULES[self.SUBNORMALS])


@dataclass(frozen=True)
class Fused(Fp32):
    """FP32 as IEEE 754 has it, subnormals included: product and sum rounded once."""
    NAME = "fma"
    UNIT, SUBNORMALS = Fma, "gradual"
