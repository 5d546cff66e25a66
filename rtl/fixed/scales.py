"""Shared exponents where block sums meet them."""

from dataclasses import dataclass

from ..lib.names import parameter


def scale_offset(design, wide=0):
    """What is taken off the exponent of X once, so that a block sum times 2^Es is its value; ``wide`` operands are."""
    narrow, more = design.format.magnitude, design.widest.magnitude - design.format.magnitude
    return 2 * narrow + wide * more + (design.guard if design.accumulate == "aligned" else 0)


@dataclass(frozen=True)
class Scales:
    """Widths of the exponents of a pair of blocks, and of their sum.

    Parameters
    ----------
    row, column : int
        Bits of the exponent of X, less :func:`scale_offset` and plus what is added for good, and of that of W.
    """
    row: int = parameter("x")
    column: int = parameter("w")

    @classmethod
    def of(cls, design, ahead=0):
        """The widths of a design with blocks; ``ahead`` is added to the exponents of X."""
        low, high = design.format.exponent_range
        low -= scale_offset(design, wide=2)
        row = max((~low - ahead).bit_length() if ahead < -low else 0, (high + ahead).bit_length()) + 1
        return cls(row, design.format.exponent)

    @property
    def sum(self):
        """Bits of Es = Ea + Ew, with the offset taken off."""
        return self.row + 1
