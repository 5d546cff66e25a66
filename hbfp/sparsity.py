"""Sparse weights: which N of every M a core can have."""

from collections.abc import Sequence
from dataclasses import dataclass

from .fields import Pair
from .values import refuse

#: Every term: no sparse weights.
DENSE = (1, 1)
#: Terms that are kept, of a group of how many.
SHAPES = (DENSE, (1, 2), (1, 4), (2, 4), (4, 8))


@dataclass(frozen=True, kw_only=True)
class Sparsity(Pair):
    """A :class:`~hbfp.fields.Pair` of :data:`SHAPES`."""

    METAVAR = "N,M"
    #: What is valid, in words.
    valid = ", ".join("{},{}".format(*shape) for shape in SHAPES[1:])

    def check(self, value: Sequence[int]) -> tuple[int, int]:
        """The value as a tuple, or ValueError."""
        shape = super().check(value)
        if shape not in SHAPES:
            raise ValueError(f"{self.title} must be one of {self.valid}, or 1,1 for none, not {value!r}")
        return shape

    def read(self, name: str, value: str | Sequence[int]) -> tuple[int, int]:
        """The value from text or a file's data, or OptionError."""
        shape = super().read(name, value)
        if shape not in SHAPES:
            raise refuse(name, self.spelled(shape), f"must be one of {self.valid}, or 1,1 for none")
        return shape
