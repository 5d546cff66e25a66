"""An estimate of a run's energy, from that of a product, measured, and stated ones of accesses; throughput by area.

Outside of the core, clocks, control and leakage are not counted; wires are nowhere.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from hbfp import describe
from hbfp.design import Design
from hbfp.figures import figure
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator

from ..prices import ASSUMED, NAND2, override, price
from ..prices import sources as sources_of
from .accesses import row_bytes

#: Columns of the table, and the kinds whose energies each adds up.
SHOWN = {"array": ("array",), "vector": ("vector",), "SRAM": ("sums", "X", "W", "V", "P"), "DRAM": ("DRAM",)}


@dataclass(frozen=True, kw_only=True)
class EnergyConstants:
    """What energies and throughputs are computed from; names end in the unit, memories' energies are a byte's."""
    ghz: float = price("ghz")
    nand2_um2: float = price("nand2_um2")
    mac_pj: float = price("mac_pj")
    sram64_pj: float = price("sram64_pj")
    sram128_pj: float = price("sram128_pj")
    sram256_pj: float = price("sram256_pj")
    sram512_pj: float = price("sram512_pj")
    dram_pj: float = price("dram_pj")
    vector_pj: float = price("vector_pj")

    def sram_pj(self, kilobytes: float) -> float:
        """pJ for a byte: of the smallest bank, 64 to 512 kB, that holds the memory, 512 kB for larger ones."""
        for size in (64, 128, 256):
            if kilobytes <= size:
                return float(getattr(self, f"sram{size}_pj"))
        return self.sram512_pj


#: Options that say which number it is, or change nothing that a core computes.
_OF_NUMBERS = ("arithmetic", "mantissa", "multiplier")
#: Cores whose energies were measured: address of the figures -> recipe, rows, columns.
MEASURED = {"energy.cores": ("area", 32, 32), "energy_smaller.adders": ("adders", 32, 32),
            "energy_smaller.tall": ("adders", 64, 16)}
#: Registers inside the multiply-adds of those of floats.
PIPELINES = {"fp32": 4, "bf16": 3}


def measured(name: str, ghz: float, cores: str = "energy.cores") -> float:
    """pJ of a multiply-accumulate of a core of :data:`MEASURED`, at a clock of ``ghz``.

    Without the accesses to its accumulators, which are counted by themselves; leakage is that of a clock period.
    """
    own, period = figure(f"{cores}.{name}"), figure("energy.period")
    return float(own["core"] - own["sums"] - own["leakage"] * (1 - 1 / ghz / period)) / 1000


def _nearest(core: Design, recipe: str | None, name: str) -> str:
    """Address of the figures of the measured core that has an array's shape and recipe, else that of the first."""
    own = recipe, core.rows, core.cols
    fits = (each for each in MEASURED if MEASURED[each] == own and "sums" in figure(each).get(name, {}))
    return next(fits, next(iter(MEASURED)))


def _which(cores: str, name: str, core: Design, recipe: str | None) -> tuple[str, str]:
    """A measured core in words, and what an array has otherwise."""
    made, rows, columns = MEASURED[cores]
    other = replace(Design(), rows=rows, cols=columns, format=HBFPFormat(block=(1, rows)),
                    pipeline=PIPELINES.get(name, 0))
    text = f"a core of {rows} x {columns} for {name.upper()}, recipe {made}"
    if registers := PIPELINES.get(name):
        text += f", {registers} registers a multiply-add"
    kinds, mine, theirs = describe.declared(Design), describe.flat(core), describe.flat(other)
    words = [str(word) for option, value in mine.items() if option not in _OF_NUMBERS and value != theirs[option]
             for word in kinds[option][0].words(option, value)]
    if recipe is not None and recipe != made:
        words.append(f"--recipe {recipe}")
    return text, f"; this one has {' '.join(words)}" if words else ""


def constants_for(core: Design, mac_nand2: float, path: Path | None,
                  recipe: str | None = None) -> tuple[EnergyConstants, dict[str, str]]:
    """The constants for an array, with those of a TOML file in their place, if one is given: (constants, sources).

    Parameters
    ----------
    core : Design
        Whose energy of a multiply-accumulate this project has measured, or is taken in proportion to the area.
    mac_nand2 : float
        NAND2-equivalents of the core for each multiply-accumulate element.
    path : Path, optional
        As of :func:`golden.perf.prices.override`.
    recipe : str, optional
        What its area was measured with.

    Raises
    ------
    ValueError
        If the file is not valid.
    """
    base = EnergyConstants()
    sources = sources_of(base)
    name = core.arithmetic if core.number.bits else f"{core.arithmetic}{core.format.mantissa}"
    known = name if name in figure("energy.cores") else "hbfp8"
    cores = _nearest(core, recipe if known == name else None, known)
    which, otherwise = _which(cores, known, core, recipe)
    made = replace(base, mac_pj=measured(known, base.ghz, cores) * (
        1 if known == name else mac_nand2 / NAND2[known]))
    sources["mac_pj"] = (f"measured by this project: the mapped gates of {which}, with normal numbers, docs/energy.md, "
                         f"leakage at {base.ghz:g} GHz{otherwise}")
    if known != name:
        sources["mac_pj"] += (f"; in proportion to the area a multiply-accumulate, {mac_nand2:.1f} of "
                              f"{NAND2[known]:.1f} NAND2; the proportion is {ASSUMED}")
    return (made, sources) if path is None else override(made, sources, path)


def kilobytes(accelerator: Accelerator) -> dict[str, float]:
    """kB of each memory that is counted, by its kind."""
    size, core = row_bytes(accelerator), accelerator.core
    return {"sums": core.depth * accelerator.lanes * 4 / 1024, "X": accelerator.x_words * size["X"] / 1024,
            "W": accelerator.w_words * (size["W"] + size["scales"] / core.height) / 1024,
            "V": accelerator.v_words * accelerator.beat / 1024, "P": accelerator.p_words * 8 / 1024}


def picojoules(counts: Mapping[str, float], accelerator: Accelerator, constants: EnergyConstants) -> dict[str, float]:
    """Energy of counted products and accesses: kind -> pJ."""
    price = {"array": constants.mac_pj, "vector": constants.vector_pj, "DRAM": constants.dram_pj,
             **{name: constants.sram_pj(size) for name, size in kilobytes(accelerator).items()}}
    return {kind: counts.get(kind, 0) * each for kind, each in price.items()}


def add(rows: list[dict[str, Any]], counts: list[Counter[str]], accelerator: Accelerator, mm2: float,
        constants: EnergyConstants) -> dict[str, Any]:
    """Add its throughput by area and its energy to each row of a table by layer; return the same of all together.

    ``gmacs_mm2`` is 10^9 multiply-adds a second and mm2; ``energy_uj`` and ``energy_pj_mac`` are the estimate in sum
    and for a multiply-add; ``energy_pj`` has it by kind. Layers without products have None as first and third.
    """
    for row, each in zip(rows, counts, strict=True):
        row |= _figures(row["macs"], row["cycles"], picojoules(each, accelerator, constants), mm2, constants.ghz)
    every = picojoules(sum(counts, Counter()), accelerator, constants)
    return _figures(sum(row["macs"] for row in rows), sum(row["cycles"] for row in rows), every, mm2, constants.ghz)


def _figures(macs, cycles, energy, mm2, ghz):
    total = sum(energy.values())
    return {"gmacs_mm2": macs * ghz / (cycles * mm2) if macs and cycles else None, "energy_uj": total * 1e-6,
            "energy_pj_mac": total / macs if macs else None, "energy_pj": energy}


def table(rows: list[dict[str, Any]], whole: dict[str, Any], mm2: float, constants: EnergyConstants,
          product: str) -> Table:
    """What :func:`add` found, for people; ``product`` is the source of a product's energy."""
    made = Table(title="Throughput by area, and energy: an estimate", caption_justify="left",
                 caption=f"{mm2:.2f} mm2 at {constants.ghz:g} GHz, {constants.nand2_um2:g} um2 a NAND2; energy of a "
                 f"product: {product}; those of bytes are stated (--json lists them with their sources, --constants "
                 "FILE replaces them); outside of the core, clocks, control and leakage are not counted, wires nowhere")
    made.add_column("layer", overflow="fold")
    for head in ("GMAC/s mm2", "uJ", "pJ/MAC", *SHOWN):
        made.add_column(head, justify="right")
    for row in rows:
        made.add_row(row["name"], *_cells(row))
    made.add_section()
    made.add_row("all", *_cells(whole))
    return made


def _cells(figures):
    """Figures of a row; then shares of the energy."""
    total = sum(figures["energy_pj"].values())
    return [*("" if figures[name] is None else f"{figures[name]:,.{digits}f}" for name, digits in (
        ("gmacs_mm2", 1), ("energy_uj", 2), ("energy_pj_mac", 2))),
        *(f"{sum(figures['energy_pj'][kind] for kind in kinds) / total:.0%}" if total else ""
          for kinds in SHOWN.values())]
