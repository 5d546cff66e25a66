"""Energy of a core's mapped gates while it computes what was recorded at its ports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hbfp.design import Design
from hbfp.manifest import Manifest

from ..measure import partition, timing
from ..measure.area import ALONE, generate, owners, synthesise
from ..tools.library import Library
from . import engine, liberty, netlist, tables


@dataclass(frozen=True)
class Gates:
    """A design after mapping, as the engine takes it.

    Attributes
    ----------
    manifest : Manifest
    library, netlist : str
        Texts for the engine.
    components : list of str
        Names by number.
    ports : list of str
        Bits of the top's ports.
    modules : list of str
        Units by number.
    """
    manifest: Manifest
    library: str
    netlist: str
    components: list[str]
    ports: list[str]
    modules: list[str]


def gates(design: Design, recipe: str, library: Library, unit: str = "core") -> Gates:
    """Map a design, or take it from the cache.

    Raises
    ------
    OptionError
        If the library has no tables of power, or a cell that cannot be simulated.
    """
    powers = liberty.read(library.path)
    text, manifest = generate(design, unit)
    parts = partition.units(text, manifest)
    known = {part.top for part in parts}
    modules = []
    for part in parts:
        if part.kind == "ram":
            shape = manifest.modules[part.top].shape
            assert shape is not None, "a memory has a shape"
            modules.append(netlist.read_memory(part, shape))
        else:
            modules.append(netlist.read_blif((synthesise(part, recipe, library) / "mapped.blif").read_text(), known))
    cells = sorted({kind for module in modules for kind, _ in module.cells})
    pins = {name: [*powers.cells[name].inputs, *powers.cells[name].outputs] for name in cells if name in powers.cells}
    described = tables.text(powers, cells, library.path)
    named = [part.area for part in parts if part.area]
    components = list(dict.fromkeys([*named, *([] if parts[-1].area else [ALONE])]))
    number = {part.top: components.index(part.area) for part in parts if part.area}
    if not parts[-1].area:
        number[parts[-1].top] = components.index(ALONE)
    return Gates(manifest, described, netlist.text(modules, cells, pins, number), components, modules[-1].ports,
                 [module.name for module in modules])
