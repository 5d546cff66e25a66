"""Designs on an FPGA beside each other: cells and clocks of block formats, and of their baselines."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from joblib import Parallel, delayed

from hbfp.design import Design
from hbfp.options import design_from_values

from ..measure import placement
from ..measure.area import synthesise
from ..measure.fpga import Counts, count, part, parts
from .baselines import baseline

ARITHMETICS = ("int", "bf16", "fp32")


@dataclass
class Row:
    """One design in one unit, with or without DSP blocks; ``clock`` in MHz, in words why not, or None."""
    unit: str
    name: str
    recipe: str
    counts: Counts
    clock: float | str | None = None


def designs(values: Mapping[str, Any], mantissas: Iterable[str | int], against: Iterable[str]) -> dict[str, Design]:
    """Name -> design: block formats by width, then the baselines by :func:`synth.compare.baselines.baseline`."""
    found = {f"hbfp{width}": design_from_values({**values, "mantissa": width}) for width in mantissas}
    first = list(found.values())[-1]
    for name in against:
        found[f"int{first.format.mantissa}" if name == "int" else name] = baseline(first, name)
    return found


def measure(found: Mapping[str, Design], units: Sequence[str], kinds: Sequence[str], clocked: Container[str], jobs: int,
            progress: Callable[[int, int], object]) -> list[Row]:
    """Rows of every design in every unit; ``clocked`` units are placed and routed as well."""
    todo = {(each.verilog, recipe): (each, recipe) for design in found.values() for unit in units for recipe in kinds
            for each, _ in parts(design, unit)}
    work = sorted(todo.values(), key=lambda job: len(job[0].verilog), reverse=True)
    routes = [(*part(design, unit), recipe) for unit in units if unit in clocked for recipe in kinds
              for design in found.values()]
    calls = [delayed(_synthesise)(*job) for job in work] + [delayed(placement.clock)(*route) for route in routes]
    for n, _ in enumerate(Parallel(n_jobs=jobs, return_as="generator_unordered")(calls)):
        progress(n + 1, len(calls))
    return [Row(unit, name, recipe, count(design, unit, recipe),
                placement.clock(*part(design, unit), recipe) if unit in clocked else None)
            for unit in units for recipe in kinds for name, design in found.items()]


def _synthesise(unit, recipe):
    synthesise(unit, recipe)


def reference(rows: Iterable[Row], row: Row) -> Row | None:
    """The FP32 row that a row is held against, or None."""
    return next((other for other in rows if other.name == "fp32" and (other.unit, other.recipe) == (
        row.unit, row.recipe)), None)


def ratios(rows: Iterable[Row], row: Row) -> dict[str, float]:
    """Column -> FP32 over this row; the clock the other way round. Columns without both are left out."""
    base = reference(rows, row)
    if base is None:
        return {}
    own, theirs = asdict(row.counts), asdict(base.counts)
    found = {column: theirs[column] / own[column] for column in own if own[column] and theirs[column]}
    if isinstance(row.clock, float) and isinstance(base.clock, float):
        found["clock"] = row.clock / base.clock
    return found
