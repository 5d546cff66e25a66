"""FP32: product and sum rounded, or both at once."""

from dataclasses import dataclass

from ..fp32.fma import Fma
from ..fp32.multiply_add import MulAdd
from .float import Float


@dataclass(frozen=True)
class Fp32(Float):
    """FP32, product and sum each rounded; subnormals are zero, and zero is +0."""
    NAME = "fp32"
    UNIT = MulAdd


@dataclass(frozen=True)
class Fused(Fp32):
    """FP32 as IEEE 754 has it, subnormals included: product and sum rounded once."""
    NAME = "fma"
    UNIT, SUBNORMALS = Fma, "gradual"
