"""Formats by the names that published tables have: ``hbfp8_576``, ``hbfp4_64+6``, ``2:4-hbfp6_64``."""

import re
from dataclasses import dataclass
from math import isqrt

from hbfp.format import HBFPFormat

#: What a name must be, in words.
RULE = ("must be fp32, hbfpW_N (N elements in a square tile) or hbfpW_1xN (in a row), with +BOOST behind for the "
        "Boosters' recipe, and N:M- before or -N:M behind to sparsify first or last")
_HBFP = re.compile(r"hbfp([0-9]{1,2})_(1x)?([0-9]{1,7})(?:\+([0-9]{1,2}))?")
_SPARSE = re.compile(r"[0-9]{1,4}:[0-9]{1,4}")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format by name.

    Parameters
    ----------
    name : str
        As the table has it.
    fmt : HBFPFormat or None
        Of all products; None is FP32.
    boost : int
        Mantissa width of the last epoch and of the first and last layer; 0: the same as of the others.
    sparsity : str
        N:M of weights, or "".
    order : str
        As of :func:`golden.nn.sparsify`.
    """
    name: str
    fmt: HBFPFormat | None = None
    boost: int = 0
    sparsity: str = ""
    order: str = "sparsify-quantise"

    @classmethod
    def of(cls, name: str) -> "Format":
        """The format of a name; ValueError if it is none."""
        parts = name.split("-")
        sparse = [part for part in parts if _SPARSE.fullmatch(part)]
        numbers = [part for part in parts if part not in sparse]
        if len(sparse) > 1 or len(numbers) > 1 or (sparse and numbers == ["fp32"]):
            raise ValueError(RULE)
        order = "quantise-sparsify" if sparse and numbers and parts[-1] == sparse[0] else "sparsify-quantise"
        sparsity = "".join(sparse)
        if not numbers or numbers == ["fp32"]:
            return cls(name=name, sparsity=sparsity)
        found = _HBFP.fullmatch(numbers[0])
        elements = int(found[3]) if found else 0
        side = isqrt(elements)
        if not found or not (found[2] or side * side == elements):
            raise ValueError(RULE)
        fmt = HBFPFormat(mantissa=int(found[1]), block=(1, elements) if found[2] else (side, side))
        return cls(name=name, fmt=fmt, boost=int(found[4] or 0), sparsity=sparsity, order=order)
