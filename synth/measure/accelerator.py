"""Area of an accelerator by component: those of its core, and its own."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import Any

from hbfp import generator
from hbfp.manifest import Manifest
from hbfp.system import Accelerator
from hbfp.values import OptionError

from ..tools import yosys
from ..tools.library import Library
from . import partition
from .area import Figures, Progress, measure_unit, memory, owners

#: Kinds of units that count whole, and the component that they are.
WHOLE = {"vector": "vector unit"}
#: Seconds after which a module is said to take long, and between looks at what is under way.
SLOW, LOOK = 180, 1.0
#: Components that address, order and control; the accelerator's own.
CONTROL = "accelerator control"


@dataclass
class AcceleratorReport:
    """One accelerator under one recipe.

    Attributes
    ----------
    system : Accelerator
    recipe, library : str, str or None
    units : dict
        Module name -> kind, count, figures of one.
    components : dict
        Name -> figures of all of it, memory bits included.
    bit : float or None
        NAND2-equivalents of a bit of memory; None: as macros, :mod:`synth.measure.memories`.
    tools : dict
        Versions.
    """
    system: Accelerator
    recipe: str
    library: str | None
    units: dict[str, dict[str, Any]]
    components: dict[str, Figures]
    bit: float | None
    tools: dict[str, str]

    @property
    def logic(self) -> float:
        """NAND2-equivalents of everything but memories."""
        return sum(figures.area for figures in self.components.values())

    @property
    def bits(self) -> float:
        """Bits of memory."""
        return sum(figures.bits for figures in self.components.values())

    @property
    def memories(self) -> float:
        """NAND2-equivalents of memory."""
        return sum(figures.memories(self.bit) for figures in self.components.values())

    def share(self, component: str) -> float:
        """The share that a component has of the logic."""
        return self.components[component].area / (self.logic or 1)    # memories alone have none

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.system.name, "system": self.system.as_dict(), "recipe": self.recipe,
                "library": self.library, "tools": self.tools, "bit": self.bit, "logic": self.logic, "bits": self.bits,
                "memories": self.memories, "all": self.logic + self.memories, "units": self.units,
                "components": [{"name": name, "logic": each.area, "memories": each.memories(self.bit),
                                "share": self.share(name)} | {key: value for key, value in asdict(each).items()
                                                              if key not in ("area", "macros")}
                               for name, each in self.components.items()]}


def measure(system: Accelerator, recipe: str = "area", library: Library | None = None, jobs: int = 1,
            progress: Progress | None = None, bit: float | None = None,
            slow: Callable[[str], object] | None = None, kinds: Collection[str] = ()) -> AcceleratorReport:
    """The report of an accelerator, each distinct module synthesised once.

    Parameters
    ----------
    system : Accelerator
    recipe, library, progress, bit
        As for :func:`synth.measure.area.measure`.
    jobs : int
        Modules that are synthesised side by side; what is largest begins first.
    slow : callable, optional
        Called as ``slow(name)``, once, of a module that takes more than :data:`SLOW` seconds.
    kinds : collection of str
        Measure units of these kinds alone, so that components have these alone; all if there are none.

    Returns
    -------
    AcceleratorReport

    Raises
    ------
    OptionError
        If no unit is of one of the kinds.
    GeneratorError, SynthError
        If the generator or a tool fails.
    """
    folder = generator.emitted(system.name, ["--top", "accelerator", *system.words(), *generator.MEASURED])
    manifest = Manifest.load(folder)
    found = partition.units((folder / manifest.verilog).read_text(), manifest)
    there, owner = {part.kind for part in found}, owners(found, WHOLE)
    if missing := sorted(set(kinds) - there):
        raise OptionError(f"--kinds must be of {', '.join(sorted(there))}, not {missing[0]}")
    found = [part for part in found if not kinds or part.kind in kinds]
    figures = {part.top: memory(manifest.modules[part.top]) for part in found if part.kind == "ram"}
    parts = sorted((part for part in found if part.kind != "ram"), key=lambda part: -len(part.verilog))
    figures |= _synthesised(parts, lambda part: measure_unit(part, recipe, library), jobs, progress, slow)
    components: dict[str, Figures] = {}
    for part in found:
        for name, count in owner[part.top].items():
            components[name] = components.get(name, Figures()) + figures[part.top] * count
    units = {part.top: {"kind": part.kind, "count": part.count, "figures": asdict(figures[part.top])}
             for part in found}
    return AcceleratorReport(system, recipe, library.name if library else None, units, components, bit,
                             {"yosys": yosys.find()[1]} | manifest.tools)


def _synthesised(parts, make, jobs, progress, slow):
    """Module name -> figures; tells what has been under way for longest."""
    figures, begun, told = {}, {}, set()

    def timed(part):
        begun[part.top] = time.monotonic()
        figures[part.top] = make(part)
    with ThreadPoolExecutor(jobs) as pool:
        pending = {pool.submit(timed, part) for part in parts}
        while pending:
            done, pending = wait(pending, LOOK, FIRST_COMPLETED)
            for future in done:
                future.result()
            open_ones = [name for name in list(begun) if name not in figures]
            if progress:
                progress(len(figures), len(parts), next(iter(open_ones), ""))
            for name in open_ones:
                if slow and name not in told and time.monotonic() - begun[name] > SLOW:
                    told.add(name)
                    slow(name)
    return figures
