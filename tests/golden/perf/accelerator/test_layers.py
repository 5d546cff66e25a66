"""The table by layer: cycles that add up, and what those without a product are charged to."""

from io import StringIO

from rich.console import Console

from golden.perf.accelerator.layers import by_layer, table

from .example import PROGRAM, TIMES


def test_rows():
    """Cycles 0 to 9 are fetch's, 10 to 37 the loads', 38 and 39 fetch's, 40 to 69 the product's; then the store."""
    one, two = by_layer(PROGRAM, TIMES)
    assert one == {"name": "one", "cycles": 70, "macs": 640, "bytes": 256, "utilisation": 640 / (64 * 70),
                   "waits": {"load": 9 + 18, "fetch": 10 + 1 + 2}, "scale_sim": 2 * 8 + 8 + 10 - 2 - 1}
    assert two == {"name": "two", "cycles": 30, "macs": 0, "bytes": 60, "utilisation": 0.0,
                   "waits": {"store": 24, "fetch": 6}}


def test_table():
    rows = by_layer(PROGRAM, TIMES)
    for row in rows:
        row["model_cycles"] = row["cycles"] + 1
    console = Console(width=150, record=True, file=StringIO())
    console.print(table(rows, 100, 64, "A run"))
    text = console.export_text()
    assert "model cycles" in text and "SCALE-Sim" in text and "mismatches" not in text
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line[0] == "│"]
    assert cells == [["one", "70", "71", "31", "640", "14.3%", "256", "load 39%, fetch 19%"],
                     ["two", "30", "31", "", "0", "", "60", "store 80%, fetch 20%"],
                     ["all", "100", "102", "31", "640", "10.0%", "316", ""]]
