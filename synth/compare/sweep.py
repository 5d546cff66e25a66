"""Many designs against their baselines: every unit synthesised once, results kept as they come."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hbfp.design import Design

from ..measure.area import Progress, measure
from ..tools.library import Library
from .baselines import baseline
from .clocks import Clocks, Point, pareto, variants
from .comparison import Comparison
from .design_space import is_plain
from .prepare import prepare

#: Registers of the cores of blocks whose clocks a sweep measures, and of the floats that are to meet them.
OWN_DEPTHS, FLOAT_DEPTHS = range(3), range(1, 6)


def run(designs: Iterable[Design], targets: Sequence[tuple[str, Library | None]], against: Sequence[str], jobs: int,
        scheduler: str | None = None, progress: Progress | None = None, bit: float | None = None) -> list[Comparison]:
    """Comparisons of ``designs`` under each (recipe, library) of ``targets``.

    A float baseline is measured in every group of :data:`synth.compare.clocks.FLOAT_GROUPS`, with the multiplier of
    the design and with that of least area, so that none is larger than it need be. A bit of memory takes ``bit``
    NAND2-equivalents.

    What is in the cache costs nothing, so a sweep that was stopped goes on where it was.

    Raises
    ------
    SynthError
        If a unit fails: the first complaint, after all others are done.
    """
    designs = list(dict.fromkeys(designs))
    everyone = [each for design in designs
                for each in [design, *itertools.chain(*_baselines(design, against).values())]]
    prepare(everyone, targets, jobs, progress, scheduler, go_on=True)
    return [_compared(design, recipe, library, against, bit) for recipe, library in targets for design in designs]


def _baselines(design, against):
    """Arithmetic -> its core in the design's group, and those in other groups."""
    own = {name: baseline(design, name) for name in against}
    return {name: list(dict.fromkeys([each, *variants(each, depths=(0,)), *(
        [] if each.integer else variants(replace(each, multiplier="recoded"), depths=(0,)))]))
        for name, each in own.items()}


def _compared(design, recipe, library, against, bit):
    """The comparison of a design whose units are in the cache."""
    same, smallest = {}, {}
    for name, cores in _baselines(design, against).items():
        reports = [measure(core, recipe, library, bit=bit) for core in cores]
        same[name], smallest[name] = reports[0], min(reports, key=lambda report: report.scopes()["core"])
    return Comparison(measure(design, recipe, library, bit=bit), same, smallest=smallest)


def clock_designs(designs: Iterable[Design], against: Sequence[str]) -> list[Design]:
    """The default designs of one array, without registers and with few, and float baselines with registers, whose
    group and multiplier are searched.
    """
    plain = [design for design in designs if is_plain(design)]
    some = [design for design in plain if design.rows == 32] or plain[:1]
    every = [replace(design, pipeline=depth) for design in some for depth in OWN_DEPTHS]
    every += [each for name in against if name != "int" for design in some
              for each in variants(baseline(design, name), FLOAT_DEPTHS)]
    return list(dict.fromkeys(every))


def clock_points(designs: Iterable[Design], against: Sequence[str], recipe: str, library: Library | None, jobs: int,
                 progress: Progress | None = None) -> list[Point]:
    """Areas and clocks of :func:`clock_designs`."""
    return pareto(clock_designs(designs, against), recipe, library, jobs, progress)


def equal_clocks(points: Sequence[Point]) -> list[Clocks]:
    """For each core of blocks, the smallest core of each kind of float that meets its clock.

    Returns
    -------
    list of Clocks
    """
    owns = [point for point in points if point.report.design.blocked]
    others: dict[str, list[Point]] = {}
    for point in points:
        if not point.report.design.blocked:
            others.setdefault(point.arithmetic, []).append(point)
    return [Clocks(own, [point for point in owns if point.kind == own.kind], others) for own in owns]


def as_dict(comparisons: Iterable[Comparison], clocked: Sequence[Point] = ()) -> dict[str, Any]:
    """Plain data: what ``sweep.json`` holds; a baseline that many designs share is there once."""
    baselines: dict[str, dict[str, Any]] = {}
    entries = []
    for comparison in comparisons:
        names: dict[str, dict[str, str]] = {"baselines": {}, "smallest": {}}
        for field, by_arithmetic in names.items():
            for arithmetic, other in getattr(comparison, field).items():
                library = other.library["name"] if other.library else "no library"
                by_arithmetic[arithmetic] = f"{other.name}, {other.recipe}, {library}"
                baselines.setdefault(by_arithmetic[arithmetic], other.as_dict())
        entries.append(comparison.as_dict() | names)
    return {"studies": entries, "baselines": baselines, "pareto": [point.as_dict() for point in clocked],
            "equal_clock": [each.equal_dict("core") for each in equal_clocks(clocked)]}
