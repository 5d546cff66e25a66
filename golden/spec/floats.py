"""IEEE 754 binary formats, as data: widths and the bit patterns that follow from them."""

from dataclasses import dataclass

from hbfp.checks import check_range

#: Widths that keep every intermediate of the golden model inside 64 bits.
EXPONENT_RANGE = (2, 8)
FRACTION_RANGE = (1, 23)


@dataclass(frozen=True)
class FloatFormat:
    """Sign, biased exponent, fraction with a hidden one; the top exponent field is Inf and NaN.

    Parameters
    ----------
    exponent : int
        Bits of the exponent field, 2 to 8.
    fraction : int
        Bits of the fraction field, 1 to 23.

    Raises
    ------
    ValueError
        If a width is out of range.
    """
    exponent: int = 8
    fraction: int = 23

    def __post_init__(self):
        check_range("Float exponent width", self.exponent, *EXPONENT_RANGE, " bits")
        check_range("Float fraction width", self.fraction, *FRACTION_RANGE, " bits")

    @property
    def width(self) -> int:
        """Bits of the whole pattern."""
        return 1 + self.exponent + self.fraction

    @property
    def precision(self) -> int:
        """Bits of a significand, hidden one included."""
        return self.fraction + 1

    @property
    def bias(self) -> int:
        """Exponent field of 1.0."""
        return 2 ** (self.exponent - 1) - 1

    @property
    def top(self) -> int:
        """Exponent field of Inf and NaN."""
        return 2 ** self.exponent - 1

    @property
    def inf(self) -> int:
        """Bit pattern of +Inf."""
        return self.top << self.fraction

    @property
    def nan(self) -> int:
        """Bit pattern of the one NaN that operations give: quiet, positive, no payload."""
        return self.inf | 1 << (self.fraction - 1)


FP32 = FloatFormat(8, 23)
BF16 = FloatFormat(8, 7)
FP16 = FloatFormat(5, 10)
