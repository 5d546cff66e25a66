"""Constants of the analytic design space: each with its value, its unit and where it comes from."""

import tomllib
from dataclasses import dataclass, fields, replace
from dataclasses import field as _field
from pathlib import Path
from typing import Any

#: Sources. What is assumed is nobody's measurement.
ASSUMED = "assumed"
MODEL = "MICRO 2021 accelerator for inference and training, analytic model (28 nm)"


def constant(value: Any, unit: str, source: str) -> Any:
    """A field of constants, with its unit and where its value comes from."""
    return _field(default=value, metadata={"unit": unit, "source": source})


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What area, power and cycles are made of; ``sources`` has the origin of those that depend on the number."""
    mac_pj: float = constant(0.4, "pJ a multiply-accumulate at 1 GHz", MODEL)
    mac_um2: float = constant(478.0, "um2 a multiply-accumulate element", MODEL)
    element_bytes: float = constant(1.0, "bytes an operand", "mantissa bits / 8")
    activation_pj: float = constant(2.7, "pJ a byte read from an SRAM bank of 256 kB", MODEL)
    weight_pj: float = constant(4.0, "pJ a byte read from an SRAM bank of 512 kB", MODEL + "; 2.7 to 4.1")
    array_columns: int = constant(64, "columns that share one stream of activations", MODEL)
    sram_mb: float = constant(75.0, "MB of SRAM", MODEL)
    sram_um2: float = constant(0.2448, "um2 a bit of SRAM", MODEL)
    other_mm2: float = constant(10.0, "mm2 of everything else", ASSUMED)
    static_w: float = constant(8.0, "W without activity", ASSUMED)
    low_ghz: float = constant(0.5, "GHz at the low voltage", ASSUMED)
    low_v: float = constant(0.6, "V at the low clock", ASSUMED)
    high_ghz: float = constant(1.2, "GHz at the high voltage", ASSUMED)
    high_v: float = constant(0.9, "V at the high clock; linear between and below", ASSUMED)
    area_mm2: float = constant(300.0, "mm2 that the whole may have", MODEL)
    power_w: float = constant(75.0, "W that the whole may take", MODEL)
    step_cycles: int = constant(32, "cycles of a product beside weights, rows and columns", ASSUMED)

    @property
    def fixed_mm2(self) -> float:
        """Area without elements; SRAM is counted in units of 2^20 bytes."""
        return self.sram_mb * 2 ** 20 * 8 * self.sram_um2 * 1e-6 + self.other_mm2

    def scale(self, ghz: float) -> float:
        """Energy at a clock over that at 1 GHz: the square of the voltage."""
        def volts(clock: float) -> float:
            return self.low_v + (self.high_v - self.low_v) * (clock - self.low_ghz) / (self.high_ghz - self.low_ghz)
        return (volts(ghz) / volts(1.0)) ** 2


#: Published ratio of area to that of HBFP8: formula of REFERENCES, elements of a 16 x 16 tile.
_BOOSTERS = "HBFP8 times the ratio of Accuracy Boosters v3, 8.28 over {}"
_SCALED = "HBFP8's in proportion to the area, assumed"
#: Measured by this project: `make area`, whole 32 x 32 core with blocks of 32, NAND2-equivalents a MAC; BF16 in its
#: smallest groups, 8 x 8.
NAND2 = {"hbfp8": 443.2, "hbfp6": 297.7, "hbfp4": 183.7, "int8": 389.4, "bf16": 1594.5}
NAND2_UM2 = 0.49    # um2 of a NAND2 gate of 28 nm, assumed
BYTES = {"hbfp8": 1.0, "hbfp6": 0.75, "hbfp4": 0.5, "int8": 1.0, "bf16": 2.0}


def published(number: str) -> tuple[Constants, dict[str, str]]:
    """Published constants for a number: (Constants, name -> source)."""
    um2, source = {"hbfp8": (478.0, MODEL), "bf16": (1150.0, MODEL),
                   "hbfp6": (478.0 * 8.28 / 12.67, _BOOSTERS.format("12.67")),
                   "hbfp4": (478.0 * 8.28 / 21.32, _BOOSTERS.format("21.32")),
                   "int8": (478.0 / 1.04, "HBFP8 without the 4 % that its encoding costs, same publication")}[number]
    pj, energy = (1.6, MODEL) if number == "bf16" else (0.4 * um2 / 478.0, MODEL if number == "hbfp8" else _SCALED)
    return _made(number, um2, source, pj, energy)


def measured(number: str) -> tuple[Constants, dict[str, str]]:
    """Areas that this project measured, energies in proportion: (Constants, name -> source)."""
    um2 = NAND2[number] * NAND2_UM2
    source = f"make area: {NAND2[number]} NAND2 a MAC, {NAND2_UM2} um2 a NAND2 assumed"
    _, sources = published(number)
    base, _ = published("bf16" if number == "bf16" else "hbfp8")
    reference = NAND2["bf16" if number == "bf16" else "hbfp8"]
    return _made(number, um2, source, base.mac_pj * NAND2[number] / reference, sources["mac_pj"])


def _made(number: str, um2: float, source: str, pj: float, energy: str) -> tuple[Constants, dict[str, str]]:
    return (Constants(mac_um2=um2, mac_pj=pj, element_bytes=BYTES[number]),
            {field.name: field.metadata["source"] for field in fields(Constants)}
            | {"mac_um2": source, "mac_pj": energy})


#: Name of a set -> function of the number.
SETS = {"published": published, "measured": measured}


def override(constants: Any, sources: dict[str, str], path: Path) -> tuple[Any, dict[str, str]]:
    """Constants, a dataclass of them, with those of a TOML file in their place.

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


def as_dict(constants: Any, sources: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Name -> value, unit and source, for people and machines."""
    return {field.name: {"value": getattr(constants, field.name), "unit": field.metadata["unit"],
                         "source": sources[field.name]} for field in fields(constants)}
