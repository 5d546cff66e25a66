"""The table by layer: cycles that add up, and what those without a product are charged to."""

import re
from dataclasses import replace
from io import StringIO

import numpy as np
from rich.console import Console

from golden.perf.accelerator.layers import by_layer, table

from .example import PROGRAM, TIMES


def test_rows():
    """Cycles 0 to 9 are fetch's, 10 to 37 the loads', 38 and 39 fetch's, 40 to 69 the product's; then the store."""
    one, two = by_layer(PROGRAM, TIMES)
    assert one == {"name": "one", "cycles": 70, "macs": 640, "bytes": 256, "multiplying": 30,
                   "utilisation": 640 / (64 * 70), "waits": {"load": 9 + 18, "fetch": 10 + 1 + 2},
                   "scale_sim": 2 * 8 + 8 + 10 - 2 - 1}
    assert two == {"name": "two", "cycles": 30, "macs": 0, "bytes": 60, "multiplying": 0, "utilisation": 0.0,
                   "waits": {"store": 24, "fetch": 6}}


def test_a_layer_that_multiplied_beside_the_one_before():
    """What a layer's own products took counts, where that is more than its cycles: no layer uses more than all."""
    late = replace(TIMES, completed=np.where(np.arange(len(TIMES.completed)) == 0, 65, TIMES.completed))
    program = replace(PROGRAM, layers=(replace(PROGRAM.layers[0], stop=1, macs=0),
                                       replace(PROGRAM.layers[0], first=1, macs=1600), PROGRAM.layers[1]))
    one, two, _ = by_layer(program, late)
    assert (one["cycles"], one["multiplying"], two["cycles"], two["multiplying"]) == (65, 0, 5, 30)
    assert two["utilisation"] == 1600 / (64 * 30)


def shown(rows, width):
    """The table as a terminal shows it."""
    console = Console(width=width, file=StringIO())
    console.print(table(rows, 100, 64, "A run"))
    return console.file.getvalue()


def test_table():
    rows = by_layer(PROGRAM, TIMES)
    for row in rows:
        row["model_cycles"] = row["cycles"] + 1
    cells = [re.split("  +", line.strip()) for line in shown(rows, 150).splitlines()]
    assert ["layer", "cycles", "model's", "SCALE-Sim", "MACs", "array", "bytes", "while it does not multiply"] in cells
    assert ["one", "70", "71", "31", "640", "14.3%", "256", "load 39%, fetch 19%"] in cells
    assert ["two", "30", "31", "0", "60", "store 80%, fetch 20%"] in cells
    assert ["all", "100", "102", "31", "640", "10.0%", "316"] in cells


def test_a_run_that_the_model_foretold_fits_a_terminal():
    """No number is cut with all columns that a run has; those of the model are there if they differ."""
    sizes = {"compared": 123_456, "mismatches": 0, "macs": 12_345_678, "bytes": 1_234_567}
    rows = [row | sizes | {"model_cycles": row["cycles"], "name": "layers.0.attention", "scale_sim": 7}
            for row in by_layer(PROGRAM, TIMES)]
    text = shown(rows, 80)
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text and "model's" not in text
    assert all(f"{value:,}" in text for value in sizes.values())
