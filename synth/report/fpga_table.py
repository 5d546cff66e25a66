"""The table of designs on one FPGA family."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from ..compare.fpga import Row, ratios

NAMES = {"luts": "LUTs", "carries": "carries", "dsps": "DSP blocks", "flipflops": "flip-flops", "rams": "block RAMs"}


def table(rows: Sequence[Row], family: str, title: str) -> Table:
    """All rows; behind each number FP32's over it (for clocks, over FP32's)."""
    result = Table(title=title, title_justify="left", caption_justify="left", caption=(
        "in brackets FP32 / row, for clocks row / FP32; the side unit is left out"
        + ("; a carry cell takes the place of two LUTs more" if family == "ecp5" else "")))
    for head in ("unit", "", "DSP"):
        result.add_column(head)
    shown = [*NAMES, *(["clock"] if any(row.clock is not None for row in rows) else [])]
    for column in shown:
        result.add_column(NAMES.get(column, "MHz"), justify="right")
    last = None
    for row in rows:
        if last not in (None, (row.unit, row.recipe)):
            result.add_section()
        last = row.unit, row.recipe
        ratio = ratios(rows, row)
        numbers = asdict(row.counts) | {"clock": row.clock}
        texts = [f"{value:,}" if isinstance(value, int | float) else str(value or "") for value in
                 (numbers[column] for column in shown)]
        result.add_row(row.unit, row.name, "no" if row.recipe.endswith("-logic") else "yes", *(
            f"{text} ({ratio[column]:.2f})" if column in ratio and row.name != "fp32" else text
            for column, text in zip(shown, texts, strict=True)))
    return result
