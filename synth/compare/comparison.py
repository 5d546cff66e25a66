"""One design against its baselines: areas, ratios, and what they were measured with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hbfp.design import Design

from ..measure.area import Progress, Report, measure
from ..tools.library import Library
from .clocks import Clocks
from .prepare import prepare
from .published import published_ratios

#: Scopes with memories, at the price of the report.
MEMORY_SCOPES = ("core and memories", "everything")
#: Scopes of a ratio, as in :meth:`synth.measure.area.Report.scopes`.
SCOPES = ("mac", "element", "core", "core and side", *MEMORY_SCOPES)


@dataclass
class Comparison:
    """A report, those of its baselines by arithmetic, and the area ratios baseline / design by scope.

    ``baselines`` have the design's own group, ``smallest`` the group in which each is smallest, where others were
    measured. ``periods`` has the shortest clock periods in ns by arithmetic and kind of unit, ``clocks`` what
    :func:`synth.compare.clocks.clocks` found, where they were asked for.
    """
    report: Report
    baselines: dict[str, Report]
    periods: dict[str, dict[str, float]] = field(default_factory=dict)
    clocks: Clocks | None = None
    smallest: dict[str, Report] = field(default_factory=dict)

    @property
    def ratios(self) -> dict[str, dict[str, float]]:
        """Baselines in the design's own group, over the design."""
        return self._over_design(self.baselines)

    @property
    def smallest_ratios(self) -> dict[str, dict[str, float]]:
        """The smallest core found of each baseline, over the design."""
        return self._over_design(self.baselines | self.smallest)

    def _over_design(self, others):
        own = self.report.scopes()
        return {name: {scope: other.scopes()[scope] / own[scope] for scope in SCOPES if own[scope]}
                for name, other in others.items()}

    def as_dict(self) -> dict[str, Any]:
        """Plain data: what ``synth.json`` holds."""
        return {"report": self.report.as_dict(), "ratios": self.ratios, "periods": self.periods,
                **({"clocks": self.clocks.as_dict()} if self.clocks else {}),
                "baselines": {name: other.as_dict() for name, other in self.baselines.items()},
                **({"smallest": {name: other.as_dict() for name, other in self.smallest.items()},
                    "smallest_ratios": self.smallest_ratios} if self.smallest else {}),
                "published": published_ratios(self.report.design.format.mantissa)}


def compare(design: Design, recipe: str, library: Library | None, baselines: Sequence[Design], jobs: int = 2,
            progress: Progress | None = None, bit: float | None = None) -> Comparison:
    """Measure a design and its baselines.

    All units of all designs are synthesised first, in ``jobs`` processes; the reports then come from the cache.

    Parameters
    ----------
    design : Design
    recipe, library
        As for :func:`synth.measure.area.measure`.
    baselines : list of Design
        Such as :func:`synth.compare.baselines.baseline` makes, one of an arithmetic.
    jobs : int
    progress : callable, optional
        ``progress(done, total, name)``.
    bit : float, optional
        NAND2-equivalents of a bit of memory; None: as macros.

    Returns
    -------
    Comparison

    Raises
    ------
    SynthError
        If a design or a unit fails.
    """
    designs = [design, *baselines]
    prepare(designs, [(recipe, library)], jobs, progress)
    reports = [measure(each, recipe, library, bit=bit) for each in designs]
    return Comparison(reports[0], dict(zip((each.arithmetic for each in baselines), reports[1:], strict=True)))
