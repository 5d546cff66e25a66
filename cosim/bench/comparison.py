"""Bits against bits: what was compared, what differed, and where first."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hbfp.golden.bfp import Blocks


class WrongBits(AssertionError):
    """A result differs from the golden one; any other failure of a test is another fault."""


@dataclass
class Comparison:
    """Running totals of a comparison.

    Attributes
    ----------
    compared, mismatches : int
        Numbers: elements of arrays; mantissas, exponents and flags of blocks.
    first : list of str
        Where differences were found first, one line for each tensor that differs.
    """
    compared: int = 0
    mismatches: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str, got: Any, want: Any) -> None:
        """Compare two arrays, or two :class:`Blocks`, of the same shape; floats by their bits.

        Raises
        ------
        ValueError
            If the shapes differ.
        """
        if isinstance(want, Blocks):
            for part in ("mantissa", "exponent", "invalid"):
                self.add(f"{name} {part}", getattr(got, part), getattr(want, part))
            return
        got, want = np.ascontiguousarray(got), np.ascontiguousarray(want)
        if got.shape != want.shape:
            raise ValueError(f"{name}: shapes {got.shape} and {want.shape} differ")
        if want.dtype == np.float32:
            got, want = got.view(np.uint32), want.view(np.uint32)
        wrong = np.argwhere(got != want)
        self.compared += want.size
        self.mismatches += len(wrong)
        if len(wrong):
            where = tuple(int(i) for i in wrong[0])
            form = "x" if want.dtype == np.uint32 else "d"
            self.first.append(f"{name}: {len(wrong)} of {want.size} differ, first at {where}: "
                              f"{int(got[where]):{form}} instead of {int(want[where]):{form}}")

    def __iadd__(self, other):
        self.compared += other.compared
        self.mismatches += other.mismatches
        self.first += other.first
        return self
