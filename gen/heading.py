"""What stands above a module and at its head: what it is, its parameters, latency and page; its ports in order."""

import inspect
import re
import textwrap
from collections.abc import Container
from dataclasses import fields, is_dataclass
from typing import Any

from amaranth import Shape
from amaranth.lib.wiring import In

from hbfp.rtl.lib.component import Component

#: A name with its reStructuredText role, as docstrings have them.
_ROLE = re.compile(r":\w+:`([^`]*)`")
#: Most columns of a line of comment.
COLUMNS = 110
#: Python modules whose names begin so, and the page about their components; the longest match counts.
PAGES = {
    "hbfp.rtl": "docs/design/01-core.md",
    "hbfp.rtl.fp32": "docs/design/02-fp32-arithmetic.md",
    "hbfp.rtl.fp32.functions": "docs/design/03-functions.md",
    "hbfp.rtl.vector": "docs/design/04-vector-unit.md",
    "hbfp.rtl.accelerator": "docs/design/11-accelerator.md",
    "hbfp.rtl.dispatch": "docs/design/07-dispatcher.md",
    "hbfp.rtl.pods": "docs/design/10-pods.md",
}


def ports(cell: Component, declared: Container[str]) -> list[str]:
    """Ports of a cell's module in their order: clock, reset, inputs, outputs; those of a stream stay together.

    Parameters
    ----------
    cell : rtl.lib.component.Component
    declared : collection of str
        Ports that the module has; clock and reset are among them only where something uses them.
    """
    members = cell.signature.members
    inputs_first = sorted(members, key=lambda name: members[name].flow != In)
    position = {name: place for place, name in enumerate(inputs_first)}
    paths = sorted((path for path, _, _ in cell.signature.flatten(cell)), key=lambda path: position[path[0]])
    return [port for port in ("clk", "rst", *("__".join(map(str, path)) for path in paths)) if port in declared]


def value(of: Any) -> str:
    """A parameter's value as the comment shows it."""
    if is_dataclass(of):
        inside = ", ".join(f"{name} = {text}" for name, text in parameters(of))
        return f"{type(of).__name__}({inside})"
    if isinstance(of, Shape):
        return f"{'signed' if of.signed else 'unsigned'} {of.width}"
    if isinstance(of, tuple):
        return " x ".join(map(value, of)) if all(isinstance(part, int) for part in of) else ", ".join(map(value, of))
    return str(of)


def parameters(params: Any) -> list[tuple[str, str]]:
    """Name and value of each field of a dataclass, but for rare ones with their usual value."""
    return [(field.name, value(getattr(params, field.name))) for field in fields(params)
            if not (field.metadata.get("rare") and getattr(params, field.name) == field.default)]


def comment(cell: Component) -> str:
    """The lines above a cell's module."""
    first = inspect.cleandoc(type(cell).__doc__ or "").partition("\n\n")[0]
    lines = [_ROLE.sub(r"\1", f"{cell.module}: {' '.join(first.split())}".replace("``", ""))]
    given = ", ".join(f"{name} = {text}" for name, text in parameters(cell.params))
    if given:
        lines.append(f"Parameters: {given}.")
    if cell.latencies:
        cycles = ", ".join(f"{name} = {count}" for name, count in cell.latencies.items())
        lines.append(f"Latency in cycles: {cycles}.")
    page = PAGES.get(max((stem for stem in PAGES if type(cell).__module__.startswith(stem)), key=len, default=""))
    if page:
        lines.append(f"Documented in {page}.")
    return "".join(textwrap.fill(line, COLUMNS, initial_indent="// ", subsequent_indent="//   ",
                                 break_long_words=False) + "\n" for line in lines)
