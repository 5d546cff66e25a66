"""What is compared: a format by name, boosted in the last epoch, sparse or calibrated, and what its hardware costs."""

import re
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hbfp.figures import figure
from hbfp.format import HBFPFormat

from ...formats import names
from ...nn import Formats
from ...spec.numbers import Number

_SPARSE = re.compile(r"\d{1,3}:\d{1,3}|\d{1,2}%")
#: Ending of a name -> how far fixed scales reach.
_REACH = {"static": "largest", "clipped": "error"}
#: What a name may have beside that of a format.
RULE = ("+NAME behind it for another format in the last epoch and in the first and last layer, or +B for so many bits "
        "of HBFP, :w=NAME or :g=NAME for another format of weights or gradients, -static or -clipped for scales of "
        "inputs that are fixed beforehand, N:M- or P%- before it to prune before converting, or the same behind it to "
        "prune what was converted")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One column of the comparison.

    Parameters
    ----------
    name : str
        As it was given.
    formats : Formats or None
        Of all products; None is FP32, in torch's own sums.
    boosted : Formats or None
        Of the last epoch and of the first and last layer; None: the same as of the others.
    sparsity : str
        N:M of the weights along K, or P% of each weight tensor; "" is dense.
    after : bool
        Whether converted weights are pruned, not FP32 ones.
    reach : str
        How far the fixed scales of inputs reach, as of :func:`golden.nn.calibrate`; "" fixes none.
    """
    name: str
    formats: Formats | None
    boosted: Formats | None = None
    sparsity: str = ""
    after: bool = False
    reach: str = ""

    @classmethod
    def of(cls, name: str) -> "Choice":
        """The choice of a name; ValueError with one line if it is none."""
        sparsity, rest, after = "", name, False
        head, dash, tail = name.partition("-")
        if dash and _SPARSE.fullmatch(head):
            sparsity, rest = head, tail
        elif "-" in name and _SPARSE.fullmatch(name.rpartition("-")[2]):
            rest, _, sparsity = name.rpartition("-")
            after = True
        if rest.lower() == "fp32":
            return cls(name=name, formats=None, sparsity=sparsity, after=after)
        base, plus, more = rest.partition("+")
        short, dash, ending = base.rpartition("-")
        reach = _REACH.get(ending, "") if dash else ""
        try:
            formats = _formats(short if reach else base)
            if reach and not names.of_tensors(formats.x):
                raise ValueError(f"a scale can be fixed that all of a tensor has, and {short} has none")
            boosted = None if not plus else formats.with_mantissa(int(more)) if more.isdecimal() else _formats(more)
        except (TypeError, ValueError) as error:
            raise ValueError(f"format {name}: {error}{f'; with {RULE}' * ('Name of' in str(error))}") from error
        return cls(name=name, formats=formats, boosted=boosted, sparsity=sparsity, after=after, reach=reach)

    def bits(self, post: bool = False) -> float:
        """Bits a value, with its share of what a block shares: the mean of inputs, weights and gradients, of which
        ``post`` has none."""
        if self.formats is None:
            return 32.0
        return fmean(map(names.bits, self.formats.roles[:2 if post else 3]))

    def measured(self, what: str) -> float | None:
        """A figure of the core that multiplies so, of :data:`FIGURES`; None where none was measured."""
        key = self._core()
        file, groups = FIGURES[what]
        for group in groups if key else ():
            try:
                return float(figure(f"{file}.{group}.{key}.core"))
            except LookupError:
                continue
        return None

    def _core(self) -> str | None:
        """The name that figures have for the core of all three products, if it has one."""
        if self.boosted or self.sparsity:                  # fixed scales take no other elements
            return None
        if self.formats is None:
            return "fp32"
        x, w, g = self.formats.roles
        if not x == w == g:
            return None
        if isinstance(x, Number):
            return {"int8": "int8", "bf16": "bf16"}.get(x.name)
        if x != HBFPFormat(mantissa=x.mantissa):            # other blocks, exponents and roundings have other cores
            return None
        sums = self.formats.accumulate
        return f"hbfp{x.mantissa}" + (f"_{sums}" if sums != "fp32" else "")

    def json(self, post: bool) -> dict[str, Any]:
        """What a report has of it."""
        return {"name": self.name, "bits": self.bits(post), "area": self.measured("area"),
                "energy": self.measured("energy")}


def _formats(name):
    """Formats of a name, with those of roles behind it."""
    name, *parts = name.split(":")
    roles = dict(part.partition("=")[::2] for part in parts)
    if odd := next((part for part in parts if part.partition("=")[0] not in ("w", "g")), None):
        raise ValueError(f"Name of a format must have w=NAME or g=NAME behind a colon, not {odd!r}")
    return Formats.of(name, **roles)


#: What was measured of cores of 32 x 32: the file of figures, and where in it; NAND2-equivalents and fJ a
#: multiply-accumulate.
FIGURES = {"area": ("area", ("cores", "floats", "integers")), "energy": ("energy", ("cores",))}
