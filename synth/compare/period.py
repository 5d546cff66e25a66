"""The fewest registers, and the recipe, with which a core meets a clock period."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hbfp.design import PIPELINES, ConflictError, Design

from ..measure import partition, timing
from ..measure.area import Progress, Report, generate, measure
from ..tools.errors import SynthError
from ..tools.library import Library

#: Recipes in the order in which they are tried: the smaller cells first.
RECIPES = ("area", "speed")
#: Kinds of unit that are timed before the whole, what is likely to be slow and quick to map first.
FIRST = ("credit_drain", "drain", "side", "accumulator", "shared_accumulator", "credit_encode", "encode", "group")


@dataclass(frozen=True)
class Met:
    """A design that meets a period; ``path`` is the longest of the whole core."""
    design: Design
    recipe: str
    path: timing.Path
    report: Report


def levels(design: Design) -> list[Design]:
    """The design with each number of registers that it can have, the fewest first."""
    found = []
    for depth in range(PIPELINES.get(design.arithmetic, 0) + 1):
        try:
            found.append(replace(design, pipeline=depth))
        except ConflictError:    # too many for its segments, or none on an FPGA
            continue
    return found


class _Candidate:
    """A design under a recipe, timed as far as was needed."""

    def __init__(self, design, recipe, library, access):
        self.design, self.recipe, self.library, self.access = design, recipe, library, access
        self.units = partition.units(*generate(design))
        self.by_name = {unit.top: unit for unit in self.units}
        self.path = None
        self.whole = False

    def _time(self, unit):
        path = timing.longest_path(unit, self.by_name, self.recipe, self.library, self.access)
        if self.path is None or path.period > self.path.period:
            self.path = path

    def bound(self, period):
        """Time units, the whole last, until one takes longer than ``period``."""
        order = {kind: n for n, kind in enumerate(FIRST)}
        for unit in sorted((unit for unit in self.units if unit.kind in order), key=lambda unit: order[unit.kind]):
            self._time(unit)
            if self.path.period > period:
                return
        self.finish()

    def finish(self):
        """Time the whole."""
        if not self.whole:
            self._time(self.units[-1])
            self.whole = True


def meet(design: Design, period: float, library: Library, recipes: Sequence[str] = RECIPES, access: float | None = None,
         progress: Progress | None = None) -> Met:
    """The fewest registers, and with as many the first recipe, with which the whole core meets a period.

    Parameters
    ----------
    design : Design
        Its own ``pipeline`` is of no account.
    period : float
        In ns: no wires, no clock skew, inputs and outputs registered.
    library : Library
    recipes : sequence of str
    access : float, optional
        Time in ns that reading a memory takes; :data:`synth.measure.timing.ACCESS` unless given.
    progress : callable, optional
        Called as ``progress(done, total, name)``.

    Returns
    -------
    Met

    Raises
    ------
    SynthError
        If none does: the best period reached, with what, and its critical path by names.
    """
    every = [(each, recipe) for each in levels(design) for recipe in recipes]
    tried = []
    for n, (each, recipe) in enumerate(every):
        if progress:
            progress(n, len(every), f"--pipeline {each.pipeline}, {recipe}")
        found = _Candidate(each, recipe, library, access)
        found.bound(period)
        if found.whole and found.path.period <= period:
            return Met(each, recipe, found.path, measure(each, recipe, library))
        tried.append(found)
    while True:    # what was timed in part is at least as slow as it is so far
        best = min(tried, key=lambda found: found.path.period)
        if best.whole:
            break
        best.finish()
    raise SynthError(f"--period {period:g}: is not met, the best is {best.path.period:.2f} ns with --pipeline "
                     f"{best.design.pipeline} and recipe {best.recipe}; critical path: {best.path}")
