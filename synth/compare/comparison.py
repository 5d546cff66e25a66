"""One design against its baselines: areas, ratios, and what they were measured with."""

from dataclasses import dataclass, field

from joblib import Parallel, delayed

from golden.spec.config import Design

from ..measure import partition
from ..measure.area import Report, baseline, generate, measure, measure_unit
from .published import block_dot, element, float_dot, float_element

#: Denominators made by the same generator, with the names that tables print.
BASELINES = {"fp32": "lean FP32", "fma": "IEEE FP32 FMA", "bf16": "BF16 x BF16 + FP32",
             "int": "integer of the same width"}
#: Scopes of a ratio, as in :meth:`synth.measure.area.Report.scopes`.
SCOPES = ("mac", "element", "core", "core and side")


@dataclass
class Study:
    """A report, those of its baselines by arithmetic, and the area ratios baseline / design by scope.

    ``baselines`` have the design's own group, ``smallest`` the group in which each is smallest, where others were
    measured. ``periods`` has the shortest clock periods in ns by arithmetic and kind of unit, ``clocks`` what
    :func:`synth.compare.clocks.clocks` found, where they were asked for.
    """
    report: Report
    baselines: dict
    periods: dict = field(default_factory=dict)
    clocks: object = None
    smallest: dict = field(default_factory=dict)

    @property
    def ratios(self):
        """Baselines in the design's own group, over the design."""
        return self._over_design(self.baselines)

    @property
    def smallest_ratios(self):
        """The smallest core found of each baseline, over the design."""
        return self._over_design(self.baselines | self.smallest)

    def _over_design(self, others):
        own = self.report.scopes()
        return {name: {scope: other.scopes()[scope] / own[scope] for scope in SCOPES if own[scope]}
                for name, other in others.items()}

    def as_dict(self):
        """Plain data: what ``synth.json`` holds."""
        return {"report": self.report.as_dict(), "ratios": self.ratios, "periods": self.periods,
                **({"clocks": self.clocks.as_dict()} if self.clocks else {}),
                "baselines": {name: other.as_dict() for name, other in self.baselines.items()},
                **({"smallest": {name: other.as_dict() for name, other in self.smallest.items()},
                    "smallest_ratios": self.smallest_ratios} if self.smallest else {}),
                "published": published(self.report.design["format"]["mantissa"])}


def published(width):
    """Ratios to FP32 that the published formulas give with their own primitives: 16 x 16 tiles, and a dot of 128."""
    if width not in (4, 6, 8):
        return None
    return {"element, BF16 sums": float_element("fp32") / element(width, 16),
            "element, FP32 sums": float_element("fp32") / element(width, 16, "fp32"),
            "dot product of 128, converters counted": float_dot("fp32", 128) / block_dot(width, 128)}


def study(design, recipe="area", library=None, against=("fp32", "int"), jobs=2, progress=None):
    """Measure a design and its baselines.

    All units of all designs are synthesised first, in ``jobs`` processes; the reports then come from the cache.

    Parameters
    ----------
    design : Design
    recipe, library
        As for :func:`synth.measure.area.measure`.
    against : sequence of str
        Keys of :data:`BASELINES`.
    jobs : int
    progress : callable, optional
        ``progress(done, total, name)``.
    """
    designs = [design] + [baseline(design, name) for name in against if name != design.arithmetic]
    prepare(designs, recipe, library, jobs, progress)
    reports = [measure(each, recipe, library) for each in designs]
    return Study(reports[0], {each.arithmetic: report for each, report in zip(designs[1:], reports[1:], strict=True)})


def prepare(designs: list[Design], recipe, library, jobs=2, progress=None):
    """Bring every unit of ``designs`` into the cache, each distinct one once, the largest first."""
    found = {}
    Parallel(n_jobs=jobs)(delayed(_emit)(each) for each in dict.fromkeys(designs))
    for each in designs:
        for unit in partition.units(*generate(each)):
            if unit.kind != "ram":
                found[unit.verilog] = unit
    todo = sorted(found.values(), key=lambda unit: len(unit.verilog), reverse=True)
    work = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(_prepare_one)(unit, recipe, library) for unit in todo)
    for n, name in enumerate(work):
        if progress:
            progress(n + 1, len(todo), name)


def _emit(design):
    generate(design)


def _prepare_one(unit, recipe, library):
    measure_unit(unit, recipe, library)
    return unit.top
