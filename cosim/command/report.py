"""What a co-simulation found, as a table and as JSON."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from hbfp.design import Design
from hbfp.files import write_json
from hbfp.values import writing

if TYPE_CHECKING:
    from ..bench.outcome import Outcome
    from ..manifest import Manifest


def _table(console, design, outcomes):
    table = Table(title=f"Co-simulation of {design.name}")
    for name, justify in (("bench", "left"), ("outputs compared", "right"), ("differ", "right"),
                          ("corners seen", "right"), ("cycles", "right"), ("million MAC/s", "right"), ("", "left")):
        table.add_column(name, justify=justify)
    for outcome in outcomes:
        speed = f"{outcome.macs / outcome.seconds / 1e6:.1f}" if outcome.macs and outcome.seconds else ""
        asked = len(outcome.corners)
        table.add_row(outcome.name, f"{outcome.comparison.compared:,}", f"{outcome.comparison.mismatches:,}",
                      f"{asked - len(outcome.missing)} of {asked}" if asked else "",
                      f"{outcome.cycles:,}" if outcome.cycles else "", speed,
                      "[green]passed" if outcome.passed else "[red]FAILED")
    console.print(table)


def not_asked_for(outcome: "Outcome") -> Iterator[str]:
    """Lines about corners that the design cannot reach, those with one reason together."""
    for reason in dict.fromkeys(outcome.unreachable.values()):
        names = [name for name, why in outcome.unreachable.items() if why == reason]
        what = " and ".join(names) if len(names) <= 2 else f"{len(names)} corners"
        yield f"not asked for: {what}, because {reason}"


def finish(args: argparse.Namespace, design: Design, outcomes: Sequence["Outcome"], files: Iterable[tuple[str, Path]],
           console: Console, manifest: "Manifest | None" = None) -> int:
    """Print what came out, write it where asked for; the exit status."""
    _table(console, design, outcomes)
    for outcome in outcomes:
        for line in (*outcome.problems[:5], *not_asked_for(outcome)):
            console.print(f"{outcome.name}: {line}", markup=False, soft_wrap=True)
    for name, path in files:
        console.print(f"{name + ':':<10}{path}", markup=False, soft_wrap=True)
    if args.json:
        about = {"top": manifest.top, "sha256": manifest.data.sha256} if manifest else {}
        data = {"design": design.as_dict(), **about, "seed": args.seed,
                "outcomes": [outcome.as_dict() for outcome in outcomes],
                "passed": bool(outcomes) and all(outcome.passed for outcome in outcomes)}
        with writing("json", args.json):
            write_json(args.json, data)
    return 0 if outcomes and all(outcome.passed for outcome in outcomes) else 1
