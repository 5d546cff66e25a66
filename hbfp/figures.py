"""Measured figures, which pages, prices and tests read: one JSON file for each measurement.

A file says what was measured, by which commands and what of their reports (``runs``, :mod:`flow.measure`), which
figures no command gives and why (``kept``), at which commit, with which library and tools, and which paths decide the
figures. It lies in ``docs/figures`` of a checkout, and in ``data`` of this package where that is installed, since
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
ABOUT = ("about", "runs", "takes", "kept", "commit", "library", "tools", "sources")


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
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        if not any(isinstance(each, dict if isinstance(value, list) else dict | list) for each in inner):
            return json.dumps(value, ensure_ascii=False)
        keys = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(inner)
        inside = (f"{' ' * (depth + 1)}{key}{lines(each, depth + 1)}" for key, each in zip(keys, inner, strict=True))
        first, last = "{}" if isinstance(value, dict) else "[]"
        return f"{first}\n" + ",\n".join(inside) + f"\n{' ' * depth}{last}"

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
