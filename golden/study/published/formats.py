"""Formats by the names that published tables have, ``hbfp8_576``, ``hbfp4_64+6``, ``2:4-hbfp6_64``, and all others."""

import re
from dataclasses import dataclass

from hbfp.format import HBFPFormat

from ...formats.names import block
from ...spec.numbers import ALIASES, NUMBERS, Number, find

#: What a name must be, in words.
RULE = ("must be fp32, hbfpW_N (N elements in a square tile) or hbfpW_1xN (in a row), with +BOOST behind for the "
        f"Boosters' recipe, or one of {', '.join([*ALIASES, *NUMBERS])}, and N:M- before or -N:M behind to sparsify "
        "first or last")
_HBFP = re.compile(r"hbfp([0-9]{1,2})_(1x)?([0-9]{1,7})(?:\+([0-9]{1,2}))?")
_SPARSE = re.compile(r"(?:([0-9]{1,4}:[0-9]{1,4})(?:-|$))?(.*?)(?:(?:^|-)([0-9]{1,4}:[0-9]{1,4}))?")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format by name.

    Parameters
    ----------
    name : str
        As the table has it.
    fmt : HBFPFormat, Number or None
        Of all products; None is FP32.
    boost : int
        Mantissa width of the last epoch and of the first and last layer; 0: the same as of the others.
    sparsity : str
        N:M of weights, or "".
    order : str
        As of :func:`golden.nn.sparsify`.
    """
    name: str
    fmt: HBFPFormat | Number | None = None
    boost: int = 0
    sparsity: str = ""
    order: str = "sparsify-quantise"

    @classmethod
    def of(cls, name: str) -> "Format":
        """The format of a name; ValueError if it is none."""
        found = _SPARSE.fullmatch(name)
        first, number, last = found.groups() if found else (None, name, None)
        sparsity = first or last or ""
        if first and last or (sparsity and number == "fp32") or not (sparsity or number):
            raise ValueError(RULE)
        order = "quantise-sparsify" if last and number else "sparsify-quantise"
        if number in ("", "fp32"):
            return cls(name=name, sparsity=sparsity)
        if other := find(number):
            return cls(name=name, fmt=other, sparsity=sparsity, order=order)
        found = _HBFP.fullmatch(number)
        elements = block(int(found[3]), bool(found[2])) if found else None
        if not found or elements is None:
            raise ValueError(RULE)
        fmt = HBFPFormat(mantissa=int(found[1]), block=elements)
        return cls(name=name, fmt=fmt, boost=int(found[4] or 0), sparsity=sparsity, order=order)
