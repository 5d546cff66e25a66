"""Floats of 16 bits with FP32 sums."""

from dataclasses import dataclass

from hbfp.golden.spec.floats import BF16, FP16

from ..fp32.multiply_add import ProductAdd
from .float import Float


@dataclass(frozen=True)
class Bf16(Float):
    """BF16: exact products added to FP32 sums, rounded once; subnormals are zero, and zero is +0."""
    NAME = "bf16"
    FORMAT = BF16
    UNIT = ProductAdd


@dataclass(frozen=True)
class Fp16(Bf16):
    """FP16, likewise."""
    NAME = "fp16"
    FORMAT = FP16

    def unit(self):
        return super().unit(source=FP16)
