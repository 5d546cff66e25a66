"""Number formats: what an HBFP block is, as data."""

from dataclasses import dataclass

#: Rounding rules of FP32 -> HBFP; see docs/numerics.md, section 2.
ROUNDINGS = ("rne", "stochastic", "truncate")
#: What happens to FP32 numbers whose exponent field is 0.
SUBNORMALS = ("flush", "gradual")
#: Widths that a mantissa (sign included) and a shared exponent may have, in bits.
MANTISSA_RANGE = (2, 16)
EXPONENT_RANGE = (5, 16)
#: Longest side of a block, in elements; 576 is the longest in the published work.
BLOCK_LIMIT = 1024


def check_range(what, value, low, high, unit=""):
    """Raise ``ValueError`` with one line if ``value`` is not an int in ``low..high``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what} must be {low} to {high}{unit}, not {value!r}")


def check_choice(what, value, choices):
    """Raise ``ValueError`` with one line if ``value`` is none of ``choices``."""
    if value not in choices:
        raise ValueError(f"{what} must be one of {', '.join(choices)}, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class HBFPFormat:
    """Signed mantissas that share one exponent: value = M * 2^(E - m), m = mantissa - 1.

    Parameters
    ----------
    mantissa : int
        Mantissa width in bits, sign included, 2 to 16. ``hbfp8`` is 8.
    exponent : int
        Width of the shared signed exponent in bits, 5 to 16.
    block : tuple of int
        Elements that share an exponent: ``(1, B)`` is B along the reduction dimension K,
        ``(t, t)`` a square tile.
    rounding : str
        ``rne``, ``stochastic`` or ``truncate``.
    noise_bits : int
        Fraction bits kept below the cut by ``stochastic``, 1 to 24.
    subnormals : str
        ``flush`` counts FP32 subnormals as zero, ``gradual`` keeps them.

    Raises
    ------
    ValueError
        If a value is out of range; the message names it and what is valid.
    """
    mantissa: int = 8
    exponent: int = 10
    block: tuple[int, int] = (1, 32)
    rounding: str = "rne"
    noise_bits: int = 8
    subnormals: str = "flush"

    def __post_init__(self):
        check_range("Mantissa width", self.mantissa, *MANTISSA_RANGE, " bits")
        check_range("Exponent width", self.exponent, *EXPONENT_RANGE, " bits")
        check_range("Noise width", self.noise_bits, 1, 24, " bits")
        check_choice("Rounding", self.rounding, ROUNDINGS)
        check_choice("Subnormals", self.subnormals, SUBNORMALS)
        if not isinstance(self.block, (tuple, list)) or len(self.block) != 2:
            raise ValueError(f"Block must be a pair (1, B) or (t, t), not {self.block!r}")
        object.__setattr__(self, "block", tuple(self.block))
        for side in self.block:
            check_range("Block side", side, 1, BLOCK_LIMIT, " elements")
        if self.block[0] not in (1, self.block[1]):
            raise ValueError(f"Block must be (1, B) or (t, t), not {self.block!r}")

    @property
    def magnitude(self):
        """Magnitude bits m of a mantissa."""
        return self.mantissa - 1

    @property
    def limit(self):
        """Largest mantissa magnitude; symmetric, so negation never overflows."""
        return 2 ** self.magnitude - 1

    @property
    def terms(self):
        """Elements along K that share an exponent pair: the terms of one exact sum."""
        return self.block[1]

    @property
    def square(self):
        """Whether blocks are two-dimensional tiles."""
        return self.block[0] > 1

    @property
    def exponent_range(self):
        """Lowest and highest shared exponent that the field holds."""
        return -2 ** (self.exponent - 1), 2 ** (self.exponent - 1) - 1

    def sum_width(self, terms, other=None):
        """Bits of a two's complement integer that holds any sum of ``terms`` products, with mantissas of ``other``."""
        return (terms * self.limit * (other or self).limit).bit_length() + 1
