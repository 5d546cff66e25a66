"""What makes cores smaller with equal bits, step by step: cores of blocks and FP32, each with every freedom so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hbfp.design import Design

from ..measure.area import Report
from ..tools.library import Library
from .baselines import baseline
from .design_space import AXES, PLANS, cross

#: The plan whose crosses the steps take.
PLAN = "smaller"
#: Groups of elements and shapes that FP32 may choose from in every step, beside those of the cores of blocks.
FLOAT_GROUPS, SQUARE = ((8, 4), (8, 8)), (32, 32)


@dataclass(frozen=True)
class Step:
    """A freedom more: its name, what a table says, the recipe, and the cross of :data:`PLAN` that it measures."""
    name: str
    title: str
    recipe: str
    cross: int


STEPS = (Step("before", "recipe `area`", "area", 0), Step("adders", "recipe `adders`", "adders", 0),
         Step("gated", "and `--weight-clock gated`", "adders", 1),
         Step("tall", "and 64 x 16, blocks of 64", "adders", 2),
         Step("groups", "and groups of 32 x 8", "adders", 3))
RECIPES = tuple(dict.fromkeys(step.recipe for step in STEPS))


def designs(step: Step) -> tuple[list[Design], list[Design]]:
    """The cores of blocks that a step adds, and those of FP32."""
    blocks, _ = cross({**AXES, **PLANS[PLAN][step.cross]})
    floats = {replace(baseline(each, "fp32"), group=group, rows=rows, cols=cols): None
              for each in blocks for group in (each.group, *FLOAT_GROUPS)
              for rows, cols in ((each.rows, each.cols), SQUARE)}
    return blocks, list(floats)


@dataclass
class Smaller:
    """The steps in one library.

    Attributes
    ----------
    library : Library
    cores : dict
        Name of a step -> name of a number -> the report of its smallest core in that step or one before.
    """
    library: Library
    cores: dict[str, dict[str, Report]]

    @classmethod
    def of(cls, reports: Mapping[tuple[str, Design], Report], library: Library) -> "Smaller":
        """Of the reports by recipe and design of one library."""
        cores: dict[str, dict[str, Report]] = {}
        best: dict[str, Report] = {}
        for step in STEPS:
            for design in (each for side in designs(step) for each in side):
                report, name = reports[step.recipe, design], number(design)
                if name not in best or _core(report) < _core(best[name]):
                    best[name] = report
            cores[step.name] = dict(best)
        return cls(library, cores)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: areas in NAND2-equivalents a MAC, and FP32's over each, by step."""
        found = {}
        for name, cores in self.cores.items():
            areas = {number: _core(report) for number, report in cores.items()}
            found[name] = areas | {f"fp32_over_{number}": areas["fp32"] / area
                                   for number, area in areas.items() if number != "fp32"} | {
                "smallest": {number: report.name for number, report in cores.items()}}
        return found


def number(design: Design) -> str:
    """What the numbers of a core are called in data."""
    return f"hbfp{design.format.mantissa}" if design.blocked else design.arithmetic


def wanted() -> dict[str, list[Design]]:
    """Recipe -> all designs that are measured with it."""
    return {recipe: list(dict.fromkeys(each for step in STEPS if step.recipe == recipe
                                       for side in designs(step) for each in side)) for recipe in RECIPES}


def as_dict(found: Sequence[Smaller]) -> dict[str, Any]:
    """Plain data: what ``smaller.json`` holds, the steps by the name of the library."""
    some = next(iter(found[0].cores[STEPS[0].name].values()))
    return {"libraries": {each.library.name: each.as_dict() for each in found}, "tools": some.tools,
            "library": ", ".join(each.library.name for each in found)}


def _core(report):
    return report.scopes()["core"]
