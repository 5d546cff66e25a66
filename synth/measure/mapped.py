"""A design after mapping, as Verilog with the same top, ports and manifest."""

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

from joblib import Parallel, delayed

from hbfp import entries, files
from hbfp.design import Design
from hbfp.manifest import Manifest

from ..tools import yosys
from ..tools.library import Library
from . import partition
from .area import generate, synthesise

_MODELS = "read_liberty cells.lib\nproc\nopt_clean\nwrite_verilog -noattr cells.v\n"


def models(library: Library) -> dict[str, str]:
    """Name -> Verilog of each cell, from the functions that the Liberty file gives."""
    def make(folder):
        shutil.copyfile(library.path, folder / "cells.lib")
        yosys.run(_MODELS, folder)

    key = files.key(yosys.find()[1], _MODELS, library.sha256)
    folder = entries.entry(files.cache("synth") / f"cells-{key}", make)
    return partition.split((folder / "cells.v").read_text())


def assemble(parts: Sequence[partition.Unit], mapped: Mapping[str, str], cells: Mapping[str, str]) -> str:
    """One Verilog text of all units: their netlists, memories as they were, models of the cells that they use.

    Parameters
    ----------
    parts : list of Unit
    mapped : dict
        Module name -> netlist, for all but memories.
    cells : dict
        Cell name -> model; empty for generic gates.
    """
    texts = [mapped.get(part.top, part.verilog) for part in parts]
    used = set(re.findall(r"^  (\w+) (?:\\\S+ |\w+) *\(", "\n".join(texts), re.MULTILINE))
    return "\n".join(["`timescale 1ns / 1ps", *texts, *(cells[name] for name in sorted(used & set(cells)))]) + "\n"


def mapped_netlist(design: Design, unit: str = "core", recipe: str = "generic", library: Library | None = None,
                   jobs: int = 1) -> tuple[str, Manifest]:
    """Netlist and manifest of a design, or of a part of it.

    Every distinct module is mapped by itself, as areas are measured: what is simulated is what was counted.

    Returns
    -------
    text : str
    manifest : Manifest
        The design's own, with ``netlist`` added: recipe, Yosys, library.
    """
    text, manifest = generate(design, unit)
    parts = partition.units(text, manifest)
    logic = [part for part in parts if part.kind != "ram"]
    folders = Parallel(n_jobs=jobs)(delayed(synthesise)(part, recipe, library) for part in logic)
    mapped = {part.top: (folder / "mapped.v").read_text() for part, folder in zip(logic, folders, strict=True)}
    text = assemble(parts, mapped, models(library) if library else {})
    about = {"recipe": recipe, "yosys": yosys.find()[1],
             "library": library and {"name": library.name, "sha256": library.sha256}}
    return text, replace(manifest, netlist=about, sha256=hashlib.sha256(text.encode()).hexdigest())
