"""What the benches of a machine of pods found: tables, and JSON."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hbfp.files import write_json
from hbfp.values import writing

if TYPE_CHECKING:
    from .bench import Bench

#: Figures of programs that tables add up.
FIGURES = ("operations", "rounds", "cycles")


def show(bench: "Bench", json: Path | None) -> int:
    """Print all checks, and what models gained as one job.

    Parameters
    ----------
    bench : cosim.pods.bench.Bench
    json : Path or None
        Also write everything there.

    Returns
    -------
    int
        The exit status: 0 if each program was compared and nothing differs.
    """
    from rich.console import Console
    from rich.table import Table

    console, passed = Console(highlight=False), not bench.alone.mismatches
    table = Table(title=f"{bench.design.pods} pods of {bench.design.core.rows} x {bench.design.core.cols}, "
                        f"{bench.design.interconnect}: Verilog, golden values, simulator")
    for name in ("workload", *FIGURES, "rows", "wrong bits", "wrong cycles"):
        table.add_column(name, justify="left" if name == "workload" else "right")
    for name, checks in bench.checks.items():
        passed = passed and all(each.passed for each in checks)
        counts = [*(sum(each.figures[figure] for each in checks) for figure in FIGURES),
                  *(sum(count) for count in zip(*((each.values.compared, each.values.mismatches,
                                                   each.cycles.mismatches) for each in checks), strict=True))]
        table.add_row(name, *(f"{count:,}" for count in counts))
    console.print(table)
    for line in [line for checks in bench.checks.values() for each in checks
                 for line in (*each.values.first, *each.cycles.first)][:8]:
        console.print(line, markup=False, soft_wrap=True)
    gains = bench.gains()
    if gains:
        _show_gains(console, gains)
        console.print(f"Results of models in a job: {bench.alone.compared:,} compared with those of each alone, "
                      f"{bench.alone.mismatches:,} differ.")
    for note in bench.notes:
        console.print(note, markup=False)
    console.print("[green]passed" if passed else "[red]FAILED")
    if json is not None:
        with writing("json", json):
            write_json(json, {"machine": bench.design.name, "key": bench.design.key, "passed": passed,
                              "programs": {name: list(map(asdict, checks)) for name, checks in bench.checks.items()},
                              "notes": bench.notes,
                              "gains": [asdict(each) | {"times": each.times} for each in gains],
                              "alone": asdict(bench.alone)})
    return 0 if passed else 1


def _show_gains(console, gains):
    """Cycles of models one after the other over those of one job."""
    from rich.table import Table

    table = Table(title="Models one after the other, and as one job")
    for name in ("workload", "one after the other", "as one job", "times"):
        table.add_column(name, justify="left" if name == "workload" else "right")
    for each in gains:
        table.add_row(each.name, f"{each.serial:,}", f"{each.fused:,}", f"{each.times:.2f}")
    console.print(table)
