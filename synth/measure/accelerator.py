"""Area of an accelerator by component: those of its core, and its own."""

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass

from hbfp import generator
from hbfp.manifest import Manifest
from hbfp.system import Accelerator

from . import memories, partition
from .area import Figures, measure_unit, owners

#: Kinds of units that count whole, and the component that they are.
WHOLE = {"vector": "vector unit"}
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
    bit : float
        NAND2-equivalents of a bit of memory: :mod:`synth.measure.memories`.
    """
    system: Accelerator
    recipe: str
    library: str | None
    units: dict
    components: dict
    bit: float

    @property
    def logic(self):
        """NAND2-equivalents of everything but memories."""
        return sum(figures.area for figures in self.components.values())

    @property
    def bits(self):
        """Bits of memory."""
        return sum(figures.bits for figures in self.components.values())

    def share(self, component):
        """The share that a component has of the logic."""
        return self.components[component].area / self.logic

    def as_dict(self):
        """Plain data."""
        return {"name": self.system.name, "system": self.system.as_dict(), "recipe": self.recipe,
                "library": self.library, "bit": self.bit, "logic": self.logic, "bits": self.bits,
                "everything": self.logic + self.bits * self.bit, "units": self.units,
                "components": {name: asdict(figures) | {"share": self.share(name)}
                               for name, figures in self.components.items()}}


def measure(system, recipe="area", library=None, jobs=1, progress=None, bit=memories.BIT):
    """The report of an accelerator, each distinct module synthesised once.

    Parameters
    ----------
    system : Accelerator
    recipe, library, progress, bit
        As of :func:`synth.measure.area.measure`.
    jobs : int
        Modules that are synthesised side by side.
    """
    folder = generator.emitted(system.name, ["--top", "accelerator", *system.words()])
    manifest = Manifest.load(folder)
    found = partition.units((folder / manifest.verilog).read_text(), manifest)
    figures = {part.top: Figures(bits=manifest.modules[part.top].bits) for part in found if part.kind == "ram"}
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(measure_unit, part, recipe, library): part for part in found if part.kind != "ram"}
        for done, future in enumerate(as_completed(running)):
            figures[running[future].top] = future.result()
            if progress:
                progress(done + 1, len(running), running[future].top)
    components, owner = {}, owners(found, WHOLE)
    for part in found:
        for name, count in owner[part.top].items():
            components[name] = components.get(name, Figures()) + figures[part.top] * count
    units = {part.top: {"kind": part.kind, "count": part.count, "figures": asdict(figures[part.top])}
             for part in found}
    return AcceleratorReport(system, recipe, library and library.name, units, components, bit)
