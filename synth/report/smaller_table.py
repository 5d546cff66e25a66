"""The table of what makes cores smaller, a row a step."""

from rich.table import Table

from ..compare.smaller import STEPS, Smaller


def table(found: Smaller) -> Table:
    """Areas of the smallest cores so far, and FP32's over each of the others, which is bold."""
    cores = found.cores[STEPS[0].name]
    names = [name for name in cores if name != "fp32"]
    result = Table(title=f"smallest core so far, NAND2-equivalents per MAC, {found.library.name}", title_justify="left")
    result.add_column("step")
    for name in (*names, "fp32", *(f"fp32 / {name}" for name in names)):
        result.add_column(name, justify="right")
    data = found.as_dict()
    for step in STEPS:
        row = data[step.name]
        result.add_row(step.title, *(f"{row[name]:,.1f}" for name in (*names, "fp32")),
                       *(f"[bold]{row[f'fp32_over_{name}']:.2f}[/bold]" for name in names))
    return result
