"""Energy of a design beside that of other numbers at the same clock, with the same workload."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hbfp.design import PIPELINES, Design
from hbfp.values import OptionError

from ..power.measure import Energy, measure
from ..power.operands import operands
from ..tools.library import Library
from .baselines import baseline
from .prepare import prepare

#: Registers inside each multiply-add of floats that are tried first; integers have none. Without any they glitch more.
LEAST = {"fp32": 4, "fma": 4, "bf16": 3}
#: Called as ``progress(done, total, name)``.
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True)
class EnergyComparison:
    """A design's energy, and those of its baselines by arithmetic."""
    energy: Energy
    baselines: dict[str, Energy]

    @property
    def against(self) -> dict[str, float]:
        """Arithmetic -> how many times the design's energy the baseline takes."""
        return {name: other.total() / self.energy.total() for name, other in self.baselines.items()}

    def as_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` writes."""
        return self.energy.as_dict() | {"against": self.against, "baselines": {
            name: other.as_dict() for name, other in self.baselines.items()}}


def registered(design: Design, name: str, pipeline: int) -> Design:
    """The same core for other numbers; floats with registers have the group that they choose themselves."""
    made = baseline(design, name)
    return replace(made, group=None, pipeline=pipeline) if pipeline else made    # type: ignore[arg-type]


def compare(design: Design, against: Sequence[str], recipe: str, library: Library, workload: str,
            period: float | None = None, wire: float = 0.0, pipelines: Sequence[int] | None = None, jobs: int = 1,
            progress: Progress | None = None) -> EnergyComparison:
    """Measure a design and its baselines.

    Parameters
    ----------
    design, recipe, library, workload, wire
        As for :func:`synth.power.measure.measure`.
    against : sequence of str
        Arithmetics.
    period : float, optional
        ns; the longest path of the design's gates unless given.
    pipelines : sequence of int, optional
        Registers inside the multiply-adds of floats that are tried: the least energy of those that meet the period
        counts. Unless given the first that meets it, from :data:`LEAST` on. Where none does the last one counts, with
        the time that it takes; its ``longest`` says so.
    jobs : int
        Processes that map gates.
    progress : callable, optional
        Called as ``progress(done, total, name)``.

    Returns
    -------
    EnergyComparison

    Raises
    ------
    OptionError
        If the design does not meet the period; or as of :func:`synth.power.measure.measure`.
    SynthError
        If a tool fails, or gates compute anything else than the golden model.
    """
    def one(each: Design, clock: float | None, strict: bool = True) -> Energy:
        def percent(done):
            if progress:
                progress(done, 100, f"{each.arithmetic}: {each.name}")
        operands(each, workload)    # before what takes long: it says whether there is such a workload
        prepare([each], [(recipe, library)], jobs, progress)
        return measure(each, recipe, library, workload, clock, wire, percent, strict)

    own = one(design, period)
    found: dict[str, Energy] = {}
    for name in against:
        least, most = LEAST.get(name, 0), PIPELINES.get(name, 0)
        tried = range(least, most + 1) if pipelines is None else [each for each in pipelines if each <= most]
        cores = [registered(design, name, depth) for depth in tried] or [registered(design, name, 0)]
        for core in cores:
            try:
                energy = one(core, own.period)
            except OptionError:    # too slow
                continue
            if name not in found or energy.total() < found[name].total():
                found[name] = energy
            if pipelines is None:
                break
        if name not in found:
            found[name] = one(cores[-1], own.period, strict=False)
    return EnergyComparison(own, found)
