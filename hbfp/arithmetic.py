"""Kinds of number that the elements of an array compute with: what a description has to know of each."""

from dataclasses import dataclass

from .declared import BLOCKS, FLOATS, INTEGERS, SCALED


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """One kind of number; its logic is in rtl/number, its values are in golden.

    Parameters
    ----------
    name : str
        What a design calls it.
    title : str
        What tables print beside HBFP.
    bits : int, optional
        Bits of an operand element; None for integers of the mantissa's width.
    registers : int
        Most registers inside each FP32 unit: the cuts of the multiply-add, in rtl/fp32; with shared exponents, the
        levels in rtl/lib/stages.py.
    blocked : bool
        Whether operands carry shared exponents.
    sums : int
        Bits of the integers that sums of all tiles along K are, where they leave as FP32; 0: they are no such integers.
    """
    name: str
    title: str
    bits: int | None = None
    registers: int = 0
    blocked: bool = False
    sums: int = 0

    @property
    def exact(self) -> bool:
        """Whether products and their sums are exact integers."""
        return self.bits is None or self.sums > 0

    @property
    def use(self) -> str:
        """What a core of it is, of :data:`hbfp.declared.CORES`."""
        if self.exact:
            return BLOCKS if self.blocked else SCALED if self.sums else INTEGERS
        return FLOATS

    @property
    def float_results(self) -> bool:
        """Whether results are FP32, not integers."""
        return self.blocked or not self.exact or self.sums > 0


#: Name -> kind of number.
KINDS = {kind.name: kind for kind in (
    Arithmetic(name="hbfp", title="HBFP", registers=7, blocked=True),
    Arithmetic(name="fp32", title="lean FP32", bits=32, registers=8),
    Arithmetic(name="fma", title="IEEE FP32 FMA", bits=32, registers=7),
    Arithmetic(name="bf16", title="BF16 x BF16 + FP32", bits=16, registers=6),
    Arithmetic(name="fp16", title="FP16 x FP16 + FP32", bits=16, registers=6),
    Arithmetic(name="int8", title="INT8 x INT8 + INT32", bits=8, sums=32),
    Arithmetic(name="int", title="integer of the same width"),
)}
