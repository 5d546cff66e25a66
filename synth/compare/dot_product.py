"""The dot-product unit beside its FP32 counterpart: what a term takes, with and without registers."""

from collections.abc import Iterable, Mapping
from typing import Any

from hbfp.design import Design
from hbfp.values import refuse

from ..measure.area import Progress, Report, measure
from ..tools.library import Library

#: Units that are compared this way; the second converts both operands in every step.
DOT_PRODUCT_UNITS = ("dot_product", "dot_product.both")
#: Component with the registers of the unit, and what holds and clears them.
REGISTERS = "weight load"


def scopes(report: Report) -> dict[str, float]:
    """NAND2-equivalents a term: logic between registers, and all."""
    whole = report.whole.area / report.macs
    return {"combinational": whole - report.components[REGISTERS].area / report.macs, "with registers": whole}


def baselines(unit: str, text: str | None) -> list[str]:
    """The names of ``--against``, None if not given; OptionError if it names another than FP32."""
    names = ["fp32"] if text is None else [name for name in text.split(",") if name]
    for name in names:
        if name != "fp32":
            raise refuse("against", name, f"must be fp32 for --unit {unit}")
    return names


def compare(design: Design, unit: str, recipe: str, library: Library | None, baselines: Iterable[Design],
            progress: Progress | None = None) -> tuple[Report, dict[str, Report]]:
    """Reports of a unit and, by arithmetic, of the same unit of other designs."""
    found = {each.arithmetic: measure(each, recipe, library, unit, progress) for each in baselines}
    return measure(design, recipe, library, unit, progress), found


def ratios(report: Report, found: Mapping[str, Report]) -> dict[str, dict[str, float]]:
    """Areas of the baselines over that of the unit, by name and scope."""
    own = scopes(report)
    return {name: {scope: area / own[scope] for scope, area in scopes(other).items()} for name, other in found.items()}


def as_dict(report: Report, found: Mapping[str, Report]) -> dict[str, Any]:
    """Plain data."""
    return {"report": report.as_dict(), "terms": report.macs, "scopes": scopes(report), "ratios": ratios(report, found),
            "baselines": {name: other.as_dict() | {"scopes": scopes(other)} for name, other in found.items()}}
