"""Formats by name: HBFP of any width and block, MSFP, which is HBFP of certain sizes, and all other numbers."""

import re
from math import isqrt

from hbfp.format import MANTISSA_RANGE, HBFPFormat

from ..spec.numbers import ALIASES, NUMBERS, OF_TENSOR, Number, find

#: A format of one operand.
Operand = HBFPFormat | Number
_HBFP = re.compile(r"h?bfp(?P<width>\d{1,2})(?:_(?P<row>1x)?(?P<elements>\d{1,7}))?(?:_e(?P<exponent>\d{1,2}))?"
                   r"(?P<noisy>-sr)?")
_MSFP = re.compile(r"msfp(1[2-6])")
#: Bits of an MSFP's shared exponent, and elements that share it: "Pushing the Limits of Narrow Precision Inferencing at
#: Cloud Scale with Microsoft Floating Point", NeurIPS 2020. The rest of its name's bits are sign and mantissa.
MSFP_EXPONENT, MSFP_BLOCK = 8, 16


def rule() -> str:
    """What a name must be, in words."""
    low, high = MANTISSA_RANGE
    return (f"must be hbfpW ({low} to {high} bits; _1xN behind it for N elements in a row, _N for as many in a square "
            f"tile, then _eE for E bits of exponent, then -sr for stochastic rounding), msfp12 to msfp16, "
            f"{', '.join([*ALIASES, *NUMBERS])}")


def read(name: str) -> Operand:
    """The format of a name, in any case; ``ValueError`` if it is none."""
    low = name.lower()
    if number := find(low):
        return number
    if found := _MSFP.fullmatch(low):
        return HBFPFormat(mantissa=int(found[1]) - MSFP_EXPONENT, exponent=MSFP_EXPONENT, block=(1, MSFP_BLOCK))
    found = _HBFP.fullmatch(low)
    if not found or not MANTISSA_RANGE[0] <= int(found["width"]) <= MANTISSA_RANGE[1]:
        raise ValueError(f"Name of a format {rule()}, not {name!r}")
    return HBFPFormat(mantissa=int(found["width"]), **_options(found, name))


def block(elements: int, row: bool) -> tuple[int, int] | None:
    """The block of so many elements, in a row or in a square tile; None if they are no square."""
    side = isqrt(elements)
    return (1, elements) if row else (side, side) if side * side == elements else None


def _options(found, name):
    """What a name of HBFP says beside its width."""
    options = {}
    if found["elements"]:
        options["block"] = block(int(found["elements"]), bool(found["row"]))
        if options["block"] is None:
            raise ValueError(f"Name of a format {rule()}, not {name!r}: {found['elements']} elements are no square "
                             "tile")
    if found["exponent"]:
        options["exponent"] = int(found["exponent"])
    if found["noisy"]:
        options["rounding"] = "stochastic"
    return options


def words(fmt: Operand) -> str:
    """A format as tables show it."""
    if isinstance(fmt, Number):
        return str(fmt)
    return f"hbfp{fmt.mantissa} {fmt.block}" + ("" if fmt.rounding == "rne" else f" {fmt.rounding}")


def bits(fmt: Operand) -> float:
    """Bits a value with its share of a block's exponent or scale."""
    if isinstance(fmt, Number):
        return fmt.bits
    rows, columns = fmt.block
    return fmt.mantissa + fmt.exponent / (rows * columns)


def of_tensors(fmt: Operand) -> bool:
    """Whether a format has a scale for all of a tensor, which may be fixed."""
    return isinstance(fmt, Number) and fmt.scope in OF_TENSOR


def table() -> str:
    """All numbers as a table in Markdown, for docs/formats.md."""
    rows = ["| name | element | scale | bits a value | where it is written | hardware here |", "|---" * 6 + "|",
            "| `hbfpW` | integer of W bits | a block: a power of two | W and a share | [numerics](numerics.md) | all |"]
    known = {number: alias for alias, number in ALIASES.items()}
    for name, number in NUMBERS.items():
        names = f"`{name}`" + (f", `{known[name]}`" if name in known else "")
        rows.append(f"| {names} | {number.element} | {number.scale} | {number.bits:g} | {number.source} | "
                    f"{number.hardware or 'none'} |")
    return "\n".join(rows)
