"""Number formats: what an HBFP block is, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from . import describe
from .declared import BLOCKS, INTEGERS, SYSTEMS
from .fields import Pair, choice, declare, whole
from .values import refuse

#: Rounding rules of FP32 -> HBFP; see docs/numerics.md, section 2.
ROUNDINGS = ("rne", "stochastic", "truncate")
#: What happens to FP32 numbers whose exponent field is 0.
SUBNORMALS = ("flush", "gradual")
#: Widths that a mantissa (sign included) and a shared exponent may have, in bits.
MANTISSA_RANGE = (2, 16)
EXPONENT_RANGE = (5, 16)
#: Longest side of a block, in elements; 576 is the longest in the published work.
BLOCK_LIMIT = 1024


@dataclass(frozen=True, kw_only=True)
class BlockShape(Pair):
    """A :class:`~hbfp.fields.Pair` of a block: ``(1, B)`` or ``(t, t)``."""
    shape: str = " (1, B) or (t, t)"

    def check(self, value: Sequence[int]) -> tuple[int, int]:
        """The value as a tuple, or ValueError."""
        sides = super().check(value)
        if sides[0] not in (1, sides[1]):
            raise ValueError(f"{self.title} must be{self.shape}, not {sides!r}")
        return sides

    def read(self, name: str, value: str | Sequence[int]) -> tuple[int, int]:
        """The value from text or a file's data, or OptionError."""
        sides = super().read(name, value)
        if sides[0] not in (1, sides[1]):
            raise refuse(name, self.spelled(sides), "must be 1,B or t,t")
        return sides


@dataclass(frozen=True, kw_only=True)
class HBFPFormat:
    """Signed mantissas that share one exponent: value = M * 2^(E - m), m = mantissa - 1.

    Parameters
    ----------
    mantissa : int
        Mantissa width in bits, sign included; ``hbfp8`` is 8.
    exponent : int
        Width of the shared signed exponent in bits.
    block : tuple of int
        Elements that share an exponent: ``(1, B)`` is B along the reduction dimension K,
        ``(t, t)`` a square tile.
    rounding : str
        ``rne``, ``stochastic`` or ``truncate``.
    noise_bits : int
        Fraction bits kept below the cut by ``stochastic``.
    subnormals : str
        ``flush`` counts FP32 subnormals as zero, ``gradual`` keeps them.

    Raises
    ------
    ValueError
        If a value is out of range; the message names it and what is valid.
    """
    mantissa: int = whole(
        8, *MANTISSA_RANGE, title="Mantissa width", unit=" bits", text="mantissa bits, sign included",
        tag="m", place=1, always=True, where="of_mantissas", serves=(BLOCKS, INTEGERS, *SYSTEMS))
    exponent: int = whole(
        10, *EXPONENT_RANGE, title="Exponent width", unit=" bits", text="bits of the shared exponent",
        tag="e", place=2, always=True, where="blocked", serves=(BLOCKS, *SYSTEMS))
    block: tuple[int, int] = declare(BlockShape(
        low=1, high=BLOCK_LIMIT, title="Block", unit=" elements",
        text="1,B for B elements along K, or t,t for square tiles",
        usual="1,32 where that fits the rows, else 1,rows", tag="b", place=3, always=True, where="blocked",
        serves=(BLOCKS, *SYSTEMS)), (1, 32))
    rounding: str = choice(
        "rne", ROUNDINGS, title="Rounding", text="rounding of the conversion from FP32",
        tag="", place=8, where="blocked", serves=(BLOCKS, *SYSTEMS))
    noise_bits: int = whole(
        8, 1, 24, title="Noise width", unit=" bits", text="random bits of a stochastic rounding",
        tag="n", place=9, where="blocked", serves=(BLOCKS,))
    subnormals: str = choice(
        "flush", SUBNORMALS, title="Subnormals", text="FP32 subnormals in the conversion",
        tag="s", place=10, where="blocked", serves=(BLOCKS,))

    def __post_init__(self):
        describe.check(self)

    @property
    def magnitude(self) -> int:
        """Magnitude bits m of a mantissa."""
        return self.mantissa - 1

    @property
    def limit(self) -> int:
        """Largest mantissa magnitude; symmetric, so negation never overflows."""
        return 2 ** self.magnitude - 1

    @property
    def terms(self) -> int:
        """Elements along K that share an exponent pair: the terms of one exact sum."""
        return self.block[1]

    @property
    def square(self) -> bool:
        """Whether blocks are two-dimensional tiles."""
        return self.block[0] > 1

    @property
    def exponent_range(self) -> tuple[int, int]:
        """Lowest and highest shared exponent that the field holds."""
        return -2 ** (self.exponent - 1), 2 ** (self.exponent - 1) - 1

    def sum_width(self, terms: int | None = None, other: Self | None = None) -> int:
        """Bits of a two's complement integer that holds any sum of ``terms`` products, by default those of a block.

        The products are with mantissas of ``other``, by default of the same format.
        """
        return ((self.terms if terms is None else terms) * self.limit * (other or self).limit).bit_length() + 1
