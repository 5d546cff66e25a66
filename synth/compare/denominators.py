"""What ratios divide by: floats in every group of a search, with both multipliers, and the smallest of each kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from hbfp.design import Design
from hbfp.values import refuse

from ..measure.area import Report
from .comparison import Comparison
from .design_space import AXES, cross, designs_of_plan

#: The plan that names the floats.
PLAN = "denominators"


def float_designs(against: Sequence[str]) -> list[Design]:
    """Cores of the floats among the baselines ``against``: every group, both multipliers, in the order of the plan.

    Raises
    ------
    OptionError
        If there is no float among them.
    """
    designs = [design for name in against for design in designs_of_plan(PLAN)[0] if design.arithmetic == name]
    if not designs:
        raise refuse("against", ",".join(against), f"must name a float for the plan {PLAN}")
    return designs


def block_designs() -> list[Design]:
    """The cores of blocks that floats are divided by: those that a sweep measures by default."""
    return cross(AXES)[0]


@dataclass
class Denominators:
    """Floats beside cores of blocks, under one recipe and with one library.

    Attributes
    ----------
    blocks : list of Report
    floats : list of Report
    """
    blocks: list[Report]
    floats: list[Report]

    @classmethod
    def by_target(cls, comparisons: Iterable[Comparison]) -> list[Self]:
        """One for each recipe and library of a sweep of both, in order."""
        found: dict[tuple[str, str | None], Self] = {}
        for comparison in comparisons:
            report = comparison.report
            library = report.library["name"] if report.library else None
            one = found.setdefault((report.recipe, library), cls([], []))
            (one.blocks if report.design.blocked else one.floats).append(report)
        return list(found.values())

    @property
    def smallest(self) -> dict[str, Report]:
        """Arithmetic -> the report of its smallest core."""
        found: dict[str, Report] = {}
        for report in self.floats:
            name = report.design.arithmetic
            if name not in found or _core(report) < _core(found[name]):
                found[name] = report
        return found

    def ratios(self, report: Report) -> dict[str, float]:
        """Name of a core of blocks -> the area of a float's core over that of this one."""
        return {_name(each): _core(report) / _core(each) for each in self.blocks}

    def as_dict(self) -> dict[str, Any]:
        """Plain data: areas in NAND2-equivalents a MAC."""
        best = self.smallest
        return {"recipe": self.floats[0].recipe, "library": (self.floats[0].library or {}).get("name"),
                "cores": {_name(each): _core(each) for each in self.blocks},
                "floats": [{"arithmetic": each.design.arithmetic, "multiplier": each.design.multiplier,
                            "group": list(each.design.group), "element_nand2": each.scopes()["element"],
                            "core_nand2": _core(each), "smallest": each is best[each.design.arithmetic],
                            "ratios": self.ratios(each)} for each in self.floats]}


def _name(report):
    return f"HBFP{report.design.format.mantissa}"


def _core(report):
    return report.scopes()["core"]
