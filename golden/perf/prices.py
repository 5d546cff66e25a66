"""The price book: areas, energies and bytes, each with its unit and where it comes from.

What is published or assumed stands in ``prices.json`` of the figures (:mod:`hbfp.figures`), what this project measured
in ``area.json``. Models of cost are dataclasses of :func:`price`; a TOML file may replace what they take.
"""

import tomllib
from dataclasses import dataclass, fields, replace
from dataclasses import field as _field
from pathlib import Path
from typing import Any

from hbfp.figures import figure

#: Source of what nobody measured or published.
ASSUMED = "assumed"


@dataclass(frozen=True)
class Price:
    """An entry of the book."""
    value: Any
    unit: str
    source: str


#: Name -> entry, for everything that is published or assumed.
BOOK = {name: Price(**entry) for part in figure("prices").values() for name, entry in part.items()}
#: Number -> bytes of an element.
BYTES = {name: BOOK[f"{name}_bytes"].value for name in ("hbfp8", "hbfp6", "hbfp4", "int8", "bf16")}


def _area(address: str) -> float:
    return float(figure(f"area.{address}"))


#: Measured by this project, whole cores of 32 x 32 with blocks of 32, NAND2-equivalents a MAC; BF16 and FP32 in their
#: smallest groups, 8 x 8.
NAND2 = {**{name: _area(f"cores.{name}.core") for name in ("hbfp8", "hbfp6", "hbfp4")},
         "int8": _area("integers.int8.core"), "bf16": _area("floats.bf16.core")}
FP32_CORE = _area("floats.fp32.core")
#: Of :data:`NAND2`, what the elements take.
ELEMENTS = {name: _area(f"cores.{name}.element") for name in ("hbfp8", "hbfp6", "hbfp4")}
#: The core for HBFP4 that takes HBFP6 as two digits.
WIDE_CORE = _area("cores.hbfp4_wide6.core")


def price(name: str) -> Any:
    """A field of a model of cost: an entry of the book, with its unit and source."""
    entry = BOOK[name]
    return _field(default=entry.value, metadata={"unit": entry.unit, "source": entry.source})


def override(constants: Any, sources: dict[str, str], path: Path) -> tuple[Any, dict[str, str]]:
    """A dataclass of constants with values from a TOML file in place of some: (constants, name -> source).

    Raises
    ------
    ValueError
        If the file is not TOML, names another constant, or a value is no positive number.
    """
    with open(path, "rb") as file:
        try:
            values = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: is not TOML ({error})") from None
    known = {field.name: field.type for field in fields(constants)}
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{path}: unknown constant {name!r}; valid are {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            raise ValueError(f"{path}: {name} must be a number above 0 and below 1e12, not {value!r}")
        if known[name] is int and not isinstance(value, int):
            raise ValueError(f"{path}: {name} must be a whole number, not {value!r}")
    return replace(constants, **values), sources | dict.fromkeys(values, str(path))


def sources(constants: Any) -> dict[str, str]:
    """Name -> source of each field of a model of cost."""
    return {field.name: field.metadata["source"] for field in fields(constants)}


def as_dict(constants: Any, sources: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Name -> value, unit and source, for people and machines."""
    return {field.name: {"value": getattr(constants, field.name), "unit": field.metadata["unit"],
                         "source": sources[field.name]} for field in fields(constants)}
