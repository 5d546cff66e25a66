"""Energy of a core's mapped gates while it computes what was recorded at its ports."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from hbfp import entries, files
from hbfp.design import Design
from hbfp.figures import figure
from hbfp.manifest import Manifest
from hbfp.values import refuse

from ..measure import partition, timing
from ..measure.area import ALONE, BESIDE, generate, synthesise
from ..tools.errors import SynthError
from ..tools.library import Library
from . import engine, liberty, netlist, operands, tables

#: Name of the component of what is driven from outside: pins and wires of the core's inputs.
INPUTS = "inputs"
#: Cycles of the window that are followed with delays: as many as make so many changes of cells, within bounds.
FOLLOWED, FEWEST, MOST = 10_000_000, 8, 48
#: Price of a byte that is read from or written to a memory, in ``prices.energies``.
MEMORY_PRICE = "sram8_pj"


@dataclass(frozen=True)
class Component:
    """Energies of a component in J a multiply-accumulate.

    Attributes
    ----------
    name : str
    switching, internal, clock, leakage, memories : float
        Pins and wires that change; what a gate takes itself when it does; clock pins and what is behind them, whatever
        the data; leakage in a clock period; accesses to memories.
    settled : float
        All of these, if each net changed at most once a cycle: what glitches take is the rest.
    cells, flipflops, bits : int
    """
    name: str
    switching: float
    internal: float
    clock: float
    leakage: float
    memories: float
    settled: float
    cells: int
    flipflops: int

    @property
    def energy(self) -> float:
        """All of it."""
        return self.switching + self.internal + self.clock + self.leakage + self.memories

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, "energy": self.energy} | asdict(self)


@dataclass(frozen=True)
class Energy:
    """Energy of a core with a workload.

    Attributes
    ----------
    design : Design
    recipe, library, workload : str
    period, longest : float
        ns: of the clock, and the longest path of the gates.
    macs, cycles, followed : int
        Multiply-accumulates and cycles that were counted, and cycles of these that were simulated with delays.
    compared, names : int and list of str
        Payloads of outputs that were compared with the golden model, all right; and products that were multiplied.
    components : list of Component
    """
    design: Design
    recipe: str
    library: str
    workload: str
    period: float
    longest: float
    macs: int
    cycles: int
    followed: int
    compared: int
    names: list[str]
    components: list[Component]

    def total(self, settled: bool = False) -> float:
        """J a multiply-accumulate of the core with its memories; the side unit is beside it."""
        return sum(part.settled if settled else part.energy for part in self.components if part.name not in BESIDE)

    @property
    def utilisation(self) -> float:
        """Multiply-accumulates over those of as many cycles with all elements busy."""
        return self.macs / (self.cycles * self.design.rows * self.design.cols)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"energy": self.total(), "settled": self.total(True), "name": self.design.name,
                "arithmetic": self.design.arithmetic, "pipeline": self.design.pipeline,
                "group": list(self.design.group), "recipe": self.recipe, "library": self.library,
                "workload": self.workload, "period": self.period, "longest": self.longest, "macs": self.macs,
                "cycles": self.cycles, "followed": self.followed, "compared": self.compared, "products": self.names,
                "utilisation": self.utilisation, "components": [part.as_dict() for part in self.components]}


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
    cells : int
        How many there are in all.
    """
    manifest: Manifest
    library: str
    netlist: str
    components: list[str]
    ports: list[str]
    modules: list[str]
    cells: int


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
                 [module.name for module in modules],
                 sum(part.count * len(module.cells) for part, module in zip(parts, modules, strict=True)))


def _streams(manifest: Manifest, recorded: dict[str, np.ndarray]) -> list[engine.Stream]:
    """The streams of a core with what was recorded, conversions evenly among the rows of X."""
    found = []
    for name, stream in manifest.streams.items():
        if name in recorded:
            every = int(recorded["every"]) if name == "i_q" else 0
            beats = recorded[name] if stream.direction == "in" else len(recorded[name])
            found.append(engine.Stream(name, stream.width, beats, every))
    return found


def _check(result: engine.Result, recorded: dict[str, np.ndarray], design: Design) -> int:
    """The number of payloads that are right; SynthError if one is not."""
    if result.wrong:
        raise SynthError(f"{design.name}: {result.wrong} nets settle to other values with delays than without")
    if not result.complete:
        raise SynthError(f"{design.name}: its gates stopped after {result.cycles} cycles")
    compared = 0
    for name, got in result.payloads.items():
        wrong = int((got != recorded[name][:, :got.shape[1]]).any(1).sum())
        if wrong:
            raise SynthError(f"{design.name}: {wrong} of {len(got)} payloads of {name} are not those of the golden "
                             "model")
        compared += len(got)
    return compared


def measure(design: Design, recipe: str, library: Library, workload: str, period: float | None = None,
            wire: float = 0.0, progress: Callable[[int], object] | None = None, strict: bool = True) -> Energy:
    """The energy of a core with a workload, from the cache or into it.

    Parameters
    ----------
    design : Design
    recipe, library
        As for :func:`synth.measure.area.measure`.
    workload : str
        As for ``python -m cosim operands``.
    period : float, optional
        ns; the longest path of the gates unless given. Leakage takes it; everything else is as at the shortest
        period that there is.
    wire : float
        fF of wire for each sink of a net.
    progress : callable, optional
        Called with the percentage of the simulation.
    strict : bool
        Whether gates that do not meet the period are refused, before they are simulated.

    Raises
    ------
    OptionError
        If there is no such workload, the library has no tables of power, or the gates do not meet the period.
    SynthError
        If a tool fails, or the gates compute anything else than the golden model.
    """
    recorded, made = operands.operands(design, workload), gates(design, recipe, library)
    window, macs = operands.commands(recorded)
    followed = min(max(FOLLOWED // made.cells, FEWEST), MOST)
    stride = max(1, (window[1] - window[0]) // followed) | 1
    settings = engine.Settings(0.0, wire, timing.access_time(library), "i_x", window, stride)

    def once(chosen):
        return engine.run(made.library, made.netlist, len(made.components), made.ports,
                          _streams(made.manifest, recorded), chosen, progress)

    def run():
        result = once(settings)
        return {"compared": _check(result, recorded, design),
                **{name: value for name, value in asdict(result).items() if name != "payloads"}}

    key = files.key(engine.program().parent.name, made.library, made.netlist, repr(settings),
                    *(value.tobytes() for value in recorded.values()))
    if period and strict:
        longest = entries.value(files.cache("synth") / f"longest-{key}",
                                lambda: once(replace(settings, limit=0)).longest)
        if longest > period:
            raise refuse("period", period, f"is not met by {design.name}, whose longest path takes {longest:.2f} ns")
    found = entries.value(files.cache("synth") / f"energy-{key}", run)
    return _energy(design, recipe, library, workload, period or found["longest"], macs, recorded, made, found)


def _energy(design, recipe, library, workload, period, macs, recorded, made, found):
    """From counts to J a multiply-accumulate."""
    cycles, share = found["window"], found["window"] / found["sampled"]
    scale = 1e-15 * share / macs
    price, memories = figure(f"prices.energies.{MEMORY_PRICE}")["value"], [0.0] * len(found["components"])
    for each in found["memories"]:
        memories[each["component"]] += (each["read"] + each["written"]) / 8 * price * 1e-12 / macs
    components = []
    for name, counts, accesses in zip([*made.components, INPUTS], found["components"], memories, strict=True):
        leakage = counts["leakage"] * 1e-9 * period * 1e-9 * cycles / macs
        steady = counts["clock"] * scale + leakage + accesses
        components.append(Component(
            name, counts["switching"] * scale, counts["internal"] * scale, counts["clock"] * scale, leakage, accesses,
            (counts["settled_switching"] + counts["settled_internal"]) * scale + steady, counts["cells"],
            counts["flipflops"]))
    return Energy(design, recipe, library.name, workload, period, found["longest"], macs, cycles, found["sampled"],
                  found["compared"], [str(name) for name in recorded["names"]], components)
