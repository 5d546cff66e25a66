"""Areas at an equal clock: groups and pipelines of one arithmetic against those of another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hbfp.design import PIPELINES, ConflictError, Design

from ..measure import timing
from ..measure.area import Progress, Report, measure
from ..tools import opensta
from ..tools.errors import SynthError
from ..tools.library import Library
from .baselines import BASELINES, baseline
from .prepare import prepare

#: Groups that are tried, of cores of blocks and of floats.
GROUPS = ((1, 1), (2, 1), (4, 1), (8, 1), (8, 4), (8, 8), (16, 4))
FLOAT_GROUPS = ((1, 1), (1, 2), (1, 4), (2, 4), (4, 4), (8, 4), (4, 8), (8, 8))
#: Those of floats with registers; cores of blocks with registers have their own group.
PIPELINED_GROUPS = ((1, 4), (1, 8))
#: Registers inside each multiply-add that are tried unless more are needed.
DEPTHS = range(5)
#: Least share of the period that one more register has to gain for another to be tried.
GAIN = 0.03
#: Kinds of unit that set no clock here: a core needs the side unit whatever its numbers, and without registers one
#: signal drives all columns of the way out, without buffers in a netlist that is mapped for area. The array counts as
#: a group alone. A core of blocks with registers is held to the period of all of it, nothing left out.
APART = ("array", "drain", "credit_drain", "side", "side_turns", "free_turns", timing.WHOLE)
TIMED = tuple(kind for kind in timing.KINDS if kind not in APART)


@dataclass
class Point:
    """A core by area and clock; ``periods`` in ns by kind of unit."""
    report: Report
    periods: dict[str, float]

    @property
    def arithmetic(self) -> str:
        """The design's arithmetic, such as ``hbfp``."""
        return self.report.design.arithmetic

    @property
    def kind(self) -> str:
        """Kind of number, as tables and pictures name it."""
        mantissa = self.report.design.format.mantissa
        names = BASELINES | {"hbfp": f"HBFP{mantissa}", "int": f"int{mantissa}"}
        return names[self.arithmetic]

    @property
    def group(self) -> tuple[int, int]:
        """Rows and columns of a group of elements."""
        return self.report.design.group

    @property
    def pipeline(self) -> int:
        """Registers inside each FP32 unit."""
        return self.report.design.pipeline

    @property
    def area(self) -> float:
        """The core, in NAND2-equivalents a MAC."""
        return self.report.scopes()["core"]

    @property
    def slowest(self) -> str:
        """Kind of unit that sets the core's clock; :data:`~synth.measure.timing.WHOLE` where all of it was timed."""
        if timing.WHOLE in self.periods:
            return timing.WHOLE
        return max((kind for kind in self.periods if kind not in APART), key=self.periods.__getitem__)

    def period(self, what: str = "core") -> float:
        """Shortest clock period in ns of the ``core``, or of its ``array`` alone."""
        return self.periods[self.slowest if what == "core" else "group"]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as in ``synth.json``."""
        scopes, design = self.report.scopes(), self.report.design
        return {"name": self.report.name, "arithmetic": self.arithmetic, "mantissa": design.format.mantissa,
                "group": list(self.group), "multiplier": design.multiplier, "pipeline": self.pipeline,
                "recipe": self.report.recipe, "period_ns": self.period(),
                "slowest": self.slowest, "array_period_ns": self.period("array"),
                "core_nand2": scopes["core"], "element_nand2": scopes["element"]}


def variants(design: Design, depths: Iterable[int] = DEPTHS) -> list[Design]:
    """The design with other groups, and with registers inside its FP32 units; those that are possible."""
    some = {"hbfp": GROUPS, "int": ()}.get(design.arithmetic, FLOAT_GROUPS)    # integers keep theirs: they set no clock
    found = {}
    for depth in depths:
        if depth > PIPELINES.get(design.arithmetic, 0):
            break
        groups: tuple[Any, ...] = (*some, design.group)
        if depth:    # None: the design's own choice
            groups = (None,) if design.integer else (*PIPELINED_GROUPS, None)
        for group in groups:
            try:
                found[replace(design, group=group, pipeline=depth)] = None
            except ConflictError:    # a side of the array that the group does not divide
                continue
    return list(found)


def _points(designs, recipe, library):
    """Area and clock of each."""
    for each in designs:
        whole = (timing.WHOLE,) if each.blocked and each.pipeline else ()
        yield Point(measure(each, recipe, library),
                    timing.periods(each, recipe, library, kinds=(*TIMED, *whole)))


def pareto(designs: Sequence[Design], recipe: str, library: Library | None, jobs: int = 2,
           progress: Progress | None = None) -> list[Point]:
    """Area and clock of every design, each unit synthesised once.

    Parameters
    ----------
    designs : list of Design
        Such as :func:`variants` gives.
    recipe, library, jobs, progress
        As for :func:`synth.compare.comparison.compare`.

    Returns
    -------
    list of Point

    Raises
    ------
    SynthError
        If there is no timer or no library.
    """
    if not (opensta.find() and library):
        raise SynthError("clock periods: need OpenSTA and a cell library: python -m synth fetch")
    prepare(designs, [(recipe, library)], jobs, progress)
    return list(_points(designs, recipe, library))


def smallest(points: Iterable[Point], clock: float | None = None, what: str = "core") -> Point | None:
    """The point of least area, or None; with ``clock`` of those whose period of ``what`` is at most that."""
    return min((point for point in points if clock is None or point.period(what) <= clock),
               key=lambda point: point.area, default=None)


@dataclass
class Clocks:
    """A design and its baselines by area and clock.

    Attributes
    ----------
    own : Point
        The design as it was given.
    mine : list of Point
        The design with other groups and pipelines.
    others : dict
        Arithmetic -> points of it.
    """
    own: Point
    mine: list[Point]
    others: dict[str, list[Point]]

    def best(self) -> dict[str, Point]:
        """Arithmetic -> its smallest point at any clock, the design's first."""
        kinds = {self.own.arithmetic: self.mine, **self.others}
        return {name: point for name, points in kinds.items() if (point := smallest(points)) is not None}

    def equal(self, what: str) -> dict[str, Point | None]:
        """Arithmetic -> its smallest point that meets the clock of the design's core or array, or None."""
        return {name: smallest(points, self.own.period(what), what) for name, points in self.others.items()}

    def quickest(self, name: str) -> Point:
        """The point of a kind with the shortest period of its core, the smallest of several: where none meets one."""
        return min(self.others[name], key=lambda point: (point.period(), point.area))

    def reverse(self, what: str) -> list[tuple[Point, Point | None]]:
        """Pipelined points of floats, each with the design's smallest group that meets its clock, or None."""
        return [(point, smallest(self.mine, point.period(what), what))
                for points in self.others.values() for point in points if point.pipeline]

    def equal_dict(self, what: str) -> dict[str, Any]:
        """Plain data of :meth:`equal`."""
        return {"design": self.own.as_dict(), "period_ns": self.own.period(what),
                "slowest": self.own.slowest if what == "core" else "group",
                "against": {name: _pair(point, self.own) for name, point in self.equal(what).items()}}

    def as_dict(self) -> dict[str, Any]:
        """Plain data: what ``synth.json`` holds."""
        mine = smallest(self.mine)
        return {
            "best": {name: _pair(point, mine) for name, point in self.best().items()},
            "equal_clock": {what: self.equal_dict(what) for what in WHATS},
            "reverse": {what: [_pair(*both) for both in self.reverse(what)] for what in WHATS},
            "pareto": [point.as_dict() for points in (self.mine, *self.others.values()) for point in points],
        }


def _pair(point, mine):
    """Plain data of a baseline and the design that it is compared with; either may be None."""
    return {"baseline": point and point.as_dict(), "design": mine and mine.as_dict(),
            "ratio": point.area / mine.area if point and mine else None}


#: Whose clock is compared.
WHATS = ("core", "array")


def clocks(design: Design, against: Iterable[str], recipe: str, library: Library | None, jobs: int = 2,
           progress: Progress | None = None) -> Clocks:
    """Measure a design and its baselines over groups and pipelines.

    Parameters are those of :func:`synth.compare.comparison.compare`.

    Where no pipeline of :data:`DEPTHS` meets the clock of the design's array, deeper ones are measured, until one
    does or gains less than :data:`GAIN`.
    """
    names = [name for name in against if name != design.arithmetic]
    mine = variants(design)
    others = {name: variants(baseline(design, name)) for name in names}
    every = [design, *mine, *(each for many in others.values() for each in many)]
    points = dict(zip(every, pareto(every, recipe, library, jobs, progress), strict=True))
    found = Clocks(points[design], [points[each] for each in mine],
                   {name: [points[each] for each in many] for name, many in others.items()})
    for name, many in found.others.items():
        for depth in range(DEPTHS.stop, PIPELINES.get(name, 0) + 1):
            periods = [point.period("array") for point in many]
            if min(periods) <= found.own.period("array") or periods[-1] > (1 - GAIN) * min(periods[:-1]):
                break
            many += pareto(variants(baseline(design, name), [depth]), recipe, library, jobs, progress)
    return found
