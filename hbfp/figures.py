"""Measured figures, which pages, prices and tests read: one JSON file for each measurement.

A file says what was measured, by which command, at which commit, with which library and tools, and which paths decide
the figures. It lies in ``docs/figures`` of a checkout, and in ``data`` of this package where that is installed, since
the prices of :mod:`hbfp.golden.perf.prices` are among the figures. ``python -m flow figures`` renders the pages.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from . import files

_FOLDERS = (files.ROOT / "docs" / "figures", Path(__file__).with_name("data"))
FOLDER = next((path for path in _FOLDERS if path.is_dir()), _FOLDERS[0])
#: What a file has beside its ``figures``.
ABOUT = ("about", "command", "commit", "library", "tools", "sources")


def names() -> list[str]:
    """Names of all measurements."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@cache
def load(name: str) -> dict[str, Any]:
    """A file of figures: what :data:`ABOUT` lists, and ``figures``.

    Raises
    ------
    LookupError
        If there is none of that name.
    """
    path = FOLDER / f"{name}.json"
    if not path.exists():
        raise LookupError(f"figure {name}: no such file; there are {', '.join(names())}")
    return json.loads(path.read_text())


def text(data: dict[str, Any]) -> str:
    """Plain data as the files have them: what holds no further rows is one line."""
    def lines(value: Any, depth: int) -> str:
        if not isinstance(value, dict) or not any(isinstance(inner, dict | list) for inner in value.values()):
            return json.dumps(value, ensure_ascii=False)
        inside = (f"{' ' * (depth + 1)}{json.dumps(key)}: {lines(inner, depth + 1)}" for key, inner in value.items())
        return "{\n" + ",\n".join(inside) + f"\n{' ' * depth}}}"

    return lines(data, 0) + "\n"


def figure(address: str) -> Any:
    """What stands at an address such as ``area.cores.hbfp8.core``: the file, then keys.

    Raises
    ------
    LookupError
        If there is no such figure.
    """
    name, *keys = address.split(".")
    found = load(name)["figures"]
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            inside = f"; there are {', '.join(found)}" if isinstance(found, dict) else ""
            raise LookupError(f"figure {address}: no {key!r}{inside}")
        found = found[key]
    return found
