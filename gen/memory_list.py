"""The list of memories beside the Verilog, for who has a memory compiler make them: as JSON and as text."""

import json
from collections.abc import Mapping
from typing import Any

from hbfp.hierarchy import modules, places
from hbfp.rtl.lib.component import Component
from hbfp.rtl.lib.memory import Ram

#: The files.
JSON, TEXT = "memories.json", "memories.txt"
#: Ports of a memory: those that read, that write, and that do one of both in a cycle.
_TWO, _ONE = {"read": 1, "write": 1, "read_or_write": 0}, {"read": 0, "write": 0, "read_or_write": 1}
_HEAD = ("memory", "words", "bits", "ports", "enables", "bits each", "count", "bits in all")
_NOTES = """\
1r1w is one port that writes and one that reads; 1rw is one that does either in a cycle. A word that is read comes a
cycle later, is the one from before a write in the same cycle, and stays until the next read. Bit n of w_en writes the
n-th part of a word, lowest first. Nothing is initialised.
"""


def rows(text: str, top: str, cells: Mapping[str, Component]) -> list[dict[str, Any]]:
    """The memories below ``top``, the largest first.

    Parameters
    ----------
    text : str
        The Verilog.
    top : str
        Name of its top module.
    cells : dict of str to Component
        Module name -> a component of it.

    Returns
    -------
    list of dict
        ``name`` of the module, ``words``, ``bits`` of a word, ``ports``, write ``enables`` of a word and the bits of
        each, ``bytes`` (whether these are eight), ``count``, and ``places``: paths below the top.
    """
    params = {name: cell.params for name, cell in cells.items() if isinstance(cell, Ram)}
    found = [{"name": name, "words": params[name].depth, "bits": params[name].width,
              "ports": _ONE if params[name].single else _TWO, "enables": params[name].granules,
              "bits_per_enable": params[name].width // params[name].granules,
              "bytes": params[name].width == 8 * params[name].granules, "count": len(paths), "places": paths}
             for name, paths in places(modules(text), top, params).items()]
    return sorted(found, key=lambda row: (-row["words"] * row["bits"], row["name"]))


def files(text: str, top: str, cells: Mapping[str, Component]) -> dict[str, str]:
    """The files, name -> text; none where there is no memory."""
    found = rows(text, top, cells)
    if not found:
        return {}
    table = [_HEAD]
    for row in found:
        each = row["words"] * row["bits"]
        numbers = (row["words"], row["bits"], "1rw" if row["ports"]["read_or_write"] else "1r1w", row["enables"],
                   row["bits_per_enable"], row["count"], each * row["count"])
        table.append((row["name"], *map(str, numbers)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [" ".join(entry.ljust(width) if not place else entry.rjust(width)
                      for place, (entry, width) in enumerate(zip(line, widths, strict=True))) for line in table]
    total = sum(row["words"] * row["bits"] * row["count"] for row in found)
    where = [line for row in found for line in (f"{row['name']}:", *(f"  {top}.{path}" for path in row["places"]))]
    listed = [f"Memories of {top}: {sum(row['count'] for row in found)}, {total} bits.", "", *lines, "", *where, ""]
    return {JSON: json.dumps({"top": top, "memories": found}, indent=1) + "\n", TEXT: "\n".join(listed) + "\n" + _NOTES}
