"""The table of a step of training by layer and by product: cycles of each layer of a model, forward to update."""

from collections.abc import Collection, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

#: Parts of a step, as the names of its layers begin.
PARTS = ("forward", "backward", "gx", "gw", "update")
#: The row of all that no layer of the model is.
OTHERS = "loss, and between"


def by_product(rows: Sequence[dict[str, Any]], modules: Collection[str]) -> list[dict[str, Any]]:
    """Rows of a step's layers added up by the model's layer and the part of the step.

    Parameters
    ----------
    rows : sequence of dict
        Of :func:`golden.perf.accelerator.layers.by_layer`.
    modules : collection of str
        Names of the model's layers.

    Returns
    -------
    list of dict
        ``name``, ``macs``, and the cycles of each part, in the model's order; last :data:`OTHERS`, what autograd has
        between layers included.
    """
    empty = {part: 0 for part in (*PARTS, "macs")}
    found = {name: {"name": name, **empty} for name in (*modules, OTHERS)}
    for row in rows:
        part, _, rest = row["name"].partition(" ")
        own = found[_module(rest, modules)]
        own[part] += row["cycles"]
        own["macs"] += row["macs"]
    return [each for each in found.values() if any(each[key] for key in empty)]


def _module(name, modules):
    """The innermost layer of the model that a layer of the step, or a parameter, belongs to."""
    inside = [each for each in modules if each and (name == each or name.startswith((f"{each}.", f"{each} ")))]
    return max(inside, key=len, default=OTHERS)


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """What :func:`by_product` found, for people."""
    made = Table(title="cycles by layer and product", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    made.add_column("layer", overflow="fold")
    for name in (*PARTS, "MACs"):
        made.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(row["name"], *(f"{row[key]:,}" if row[key] else "" for key in (*PARTS, "macs")))
    return made
