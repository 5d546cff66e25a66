"""Area of a design: its distinct modules, each synthesised once, times how often it has them."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hbfp import entries, files, generator
from hbfp.design import Design
from hbfp.manifest import Manifest, Module
from hbfp.values import OptionError

from ..tools import adders, recipes, yosys
from ..tools.errors import SynthError
from ..tools.library import Library
from . import memories, partition

#: Rows of the breakdown; the manifest says which one a module counts to.
COMPONENTS = ("elements", "skew", "weight load", "accumulation", "converter", "control", "side unit")
#: Row of a unit that is measured alone and names none.
ALONE = "unit"
#: Called as ``progress(done, total, name)``.
Progress = Callable[[int, int, str], object]
#: Not part of the core in the ratios; shown beside it.
BESIDE = ("side unit",)


@dataclass
class Figures:
    """What a mapped netlist consists of.

    ``area`` is in NAND2-equivalents; ``um2`` in the library's unit, None without one; ``registers`` the flip-flops'
    part of ``area``; ``transistors`` only without a library; ``bits`` those of memories, and ``macros`` what these take
    as macros, in NAND2-equivalents. Counts are whole but in a part of a unit.
    """
    area: float = 0.0
    um2: float | None = None
    registers: float | None = None
    cells: float = 0
    flipflops: float = 0
    transistors: float | None = None
    bits: float = 0
    macros: float = 0.0
    types: dict[str, float] = field(default_factory=dict)

    def __add__(self, other: "Figures") -> "Figures":
        def both(a, b):
            return b if a is None else a if b is None else a + b
        types = dict(self.types)
        for name, count in other.types.items():
            types[name] = types.get(name, 0) + count
        return Figures(self.area + other.area, both(self.um2, other.um2), both(self.registers, other.registers),
                       self.cells + other.cells, self.flipflops + other.flipflops,
                       both(self.transistors, other.transistors), self.bits + other.bits, self.macros + other.macros,
                       types)

    def __mul__(self, times: float) -> "Figures":
        def many(a):
            return None if a is None else a * times
        return Figures(self.area * times, many(self.um2), many(self.registers), self.cells * times,
                       self.flipflops * times, many(self.transistors), self.bits * times, self.macros * times,
                       {name: count * times for name, count in self.types.items()})

    def memories(self, bit: float | None) -> float:
        """NAND2-equivalents of the memories, with so many for each bit, or as macros."""
        return self.macros if bit is None else self.bits * bit


@dataclass
class Report:
    """One design under one recipe.

    Attributes
    ----------
    design : Design
    recipe, library, tools : str, dict or None, dict
        The Yosys script; the library's name, hash and NAND2 area; versions of the tools.
    units : dict
        Module name -> kind, count, figures of one.
    components : dict
        Name -> figures of all of it.
    macs : int
        Multiply-accumulates a cycle; 1 for a part that has none.
    bit : float, optional
        NAND2-equivalents of a bit of memory; None: as macros, :mod:`synth.measure.memories`.
    unit : str
        What was measured: the core, or a part of that name alone.
    """
    name: str
    design: Design
    recipe: str
    library: dict[str, Any] | None
    tools: dict[str, str]
    units: dict[str, dict[str, Any]]
    components: dict[str, Figures]
    macs: int
    bit: float | None = None
    unit: str = "core"

    @property
    def core(self) -> Figures:
        """The core's logic: no memories, no side unit. Of a part alone all of its logic."""
        return sum((fig for name, fig in self.components.items() if not self.beside(name)), Figures())

    def beside(self, component: str) -> bool:
        """Whether a component stands beside what is measured."""
        return component in BESIDE and self.unit == "core"

    @property
    def whole(self) -> Figures:
        """The core with its side unit."""
        return sum(self.components.values(), Figures())

    @property
    def element(self) -> Figures:
        """An element with its registers, an even part of its group."""
        return self.components["elements"] * (1 / self.macs)

    def scopes(self) -> dict[str, float]:
        """NAND2-equivalents per MAC of each scope."""
        element, core, whole = self.element, self.core, self.whole
        return {"mac": element.area - (element.registers or 0), "element": element.area,
                "core": core.area / self.macs, "core and side": whole.area / self.macs,
                "core and memories": (core.area + core.memories(self.bit)) / self.macs,
                "everything": (whole.area + whole.memories(self.bit)) / self.macs}

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"core": asdict(self.core), "whole": asdict(self.whole), "scopes": self.scopes()}


def generate(design: Design, unit: str = "core") -> tuple[str, Manifest]:
    """Verilog and manifest of a design, from ``python -m gen --text plain``.

    Raises
    ------
    OptionError
        If the generator refuses the design or the unit, in its words.
    SynthError
        If it fails; the message is its own.
    """
    try:
        folder = generator.emitted(design.name if unit == "core" else f"{unit}_{design.name}",
                                   [*generator.words(design, unit), *generator.MEASURED])
    except generator.GeneratorError as error:
        if error.refused:
            raise OptionError(str(error).partition(": error: ")[2]) from None
        raise SynthError(str(error)) from None
    manifest = Manifest.load(folder)
    return (folder / manifest.verilog).read_text(), manifest


def figures(stat: Path, top: str, library: Library | None) -> Figures:
    """Figures from a ``stat -json`` file; instances of other units do not count."""
    data = json.loads(stat.read_text())["modules"]
    entry = data.get(f"\\{top}") or data[top]
    types = {name: count for name, count in entry["num_cells_by_type"].items()
             if not name.startswith(("hbfp_", "$scopeinfo"))}
    flipflops = sum(count for name, count in types.items()
                    if (name in library.flipflops if library else re.match(r"\$_[A-Z]*FF", name)))
    transistors, area, um2, registers = None, 0.0, None, None
    if library:
        um2 = float(entry.get("area", 0))
        area, registers = um2 / library.nand2, float(entry.get("sequential_area", 0)) / library.nand2
    elif "estimated_num_transistors" in entry:
        transistors = int(str(entry["estimated_num_transistors"]).rstrip("+"))
        area = transistors / 4
        registers = None
    return Figures(area, um2, registers, sum(types.values()), flipflops, transistors, types=types)


def synthesise(unit: partition.Unit, recipe: str, library: Library | None = None) -> Path:
    """The folder with logs, ``stat.json`` and ``mapped.v`` of a unit; of several scripts, that of the smallest."""
    folders = [_synthesised(unit, name, library) for name in recipes.tried(recipe)
               if name != "adders" or adders.KIND in unit.verilog]
    return min(folders, key=lambda folder: figures(folder / "stat.json", unit.top, library).area)


def _synthesised(unit, recipe, library):
    """The folder of one script."""
    cell = adders.full_adder(library) if recipe == "adders" else None
    mapped = adders.techmap(cell) if cell else ""
    script = recipes.script(recipe, "unit.v", unit.top, "cells.lib")

    def make(folder):
        (folder / "unit.v").write_text(unit.verilog)
        if mapped:
            (folder / recipes.MAP).write_text(mapped)
        if library:
            shutil.copyfile(library.path, folder / "cells.lib")
        yosys.run(script, folder)
        if library:
            (folder / "cells.lib").unlink()

    _, version = yosys.find()
    key = files.key(version, script, library.sha256 if library else "", unit.verilog, *[mapped] * bool(mapped))
    return entries.entry(files.cache("synth") / f"unit-{key}", make)


def memory(module: Module) -> Figures:
    """Figures of a memory."""
    return Figures(bits=module.bits, macros=memories.area(module))


def measure_unit(unit: partition.Unit, recipe: str, library: Library | None = None) -> Figures:
    """Figures of one unit that is no memory."""
    return figures(synthesise(unit, recipe, library) / "stat.json", unit.top, library)


def measure(design: Design, recipe: str = "area", library: Library | None = None, unit: str = "core",
            progress: Progress | None = None, bit: float | None = None) -> Report:
    """The report of a design.

    Parameters
    ----------
    design : Design
    recipe : str
        One of :mod:`synth.tools.recipes`.
    library : Library, optional
        Needed by the recipes for cells.
    unit : str
        A part alone, as ``python -m gen --unit``.
    progress : callable, optional
        Called as ``progress(done, total, name)``.
    bit : float, optional
        NAND2-equivalents of a bit of memory; None: as macros.

    Returns
    -------
    Report

    Raises
    ------
    OptionError
        If the generator refuses the design or the unit.
    SynthError
        If a tool fails.
    """
    text, manifest = generate(design, unit)
    found = partition.units(text, manifest)
    owner = owners(found)
    entries, components = {}, {name: Figures() for name in COMPONENTS}
    components |= {ALONE: Figures()} if any(ALONE in names for names in owner.values()) else {}
    for n, part in enumerate(found):
        if progress:
            progress(n, len(found), part.top)
        if part.kind == "ram":
            one = memory(manifest.modules[part.top])
        else:
            one = measure_unit(part, recipe, library)
        entries[part.top] = {"kind": part.kind, "count": part.count, "figures": asdict(one)}
        for name, count in owner[part.top].items():
            components[name] += one * count
    if progress:
        progress(len(found), len(found), "")
    tools = {"yosys": yosys.find()[1]} | manifest.tools
    about = None if library is None else {"name": library.name, "sha256": library.sha256, "nand2": library.nand2,
                                          "file": library.path.name}
    return Report(manifest.top, design, recipe, about, tools, entries, components, macs_of(design, unit), bit, unit)


def macs_of(design: Design, unit: str) -> int:
    """Multiply-accumulates that a unit does in a cycle; 1 for a part that does none."""
    rows, cols = design.group
    sizes = {"core": design.rows * design.cols, "array": design.rows * design.cols, "row": rows * design.cols,
             "group": rows * cols, "dot_product": design.format.terms}
    return sizes.get(unit.partition(".")[0], 1)


def owners(units: Sequence[partition.Unit], whole: Mapping[str, str] | None = None) -> dict[str, dict[str, int]]:
    """Module name -> component -> number of its instances there.

    A unit that names none (a multiplier, a memory) belongs to that of its user. ``whole`` has kinds of units to which
    everything belongs that they contain, each with its component.
    """
    whole = whole or {}
    by_name = {unit.top: unit for unit in units}
    result: dict[str, dict[str, int]] = {unit.top: {} for unit in units}

    def visit(name, times, inherited, inside=False):
        unit = by_name[name]
        own = inherited if inside else whole.get(unit.kind) or unit.area or inherited
        result[name][own] = result[name].get(own, 0) + times
        for part, count in unit.uses.items():
            visit(part, times * count, own, inside or unit.kind in whole)

    visit(units[-1].top, 1, ALONE)
    return result
