"""What stands in the bits of packed names and what numbers of states mean: attributes of wires, told to people.

:mod:`rtl.lib.layout` gives a signal of several fields the attribute ``fields``, Amaranth one of an enumeration a name
for each of its values.
"""

import re
import textwrap

from .heading import COLUMNS
from .module import Declaration, Module

_FIELDS = re.compile(r'fields = "(.*)"$')
_FIELD = re.compile(r"(?:^|, )([\w.]+) (\d+)(?::(\d+))?(?![^{]*\})")
_VALUE = re.compile(r'enum_value_([01]+) = "(.*)"$')


def _said(entry):
    """What attributes say of a name: (of what, the text) or None."""
    for note in entry.notes:
        if found := _FIELDS.match(note):
            return "Bits", found[1]
    values = sorted((int(found[1], 2), found[2]) for note in entry.notes if (found := _VALUE.match(note)))
    return ("Values", ", ".join(f"{value} {name}" for value, name in values)) if values else None


def fields(entry: Declaration) -> dict[tuple[int, int], str]:
    """(highest bit, lowest bit) -> name of the field."""
    what, text = _said(entry) or ("", "")
    return {(int(high), int(low or high)): name for name, high, low in _FIELD.findall(text)} if what == "Bits" else {}


def explained(module: Module) -> None:
    """Comments in the place of the attributes, one for all names that have the same fields."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, entry in module.declared.items():
        if said := _said(entry):
            names.setdefault(said, []).append(name)
            entry.notes = [note for note in entry.notes if not note.startswith(("fields = ", "enum_"))]
    for (what, text), those in names.items():
        module.comments += textwrap.wrap(f"{what} of {', '.join(those)}: {text}.", COLUMNS, initial_indent="  // ",
                                         subsequent_indent="  //   ", break_long_words=False)
