"""What stands in emitted Verilog: its modules, the ports and parts of each, and what the numbers of states mean."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

_MODULE = re.compile(r"^module (\w+)\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"^  (?:input|output) (?:reg )?(?:\[\d+:0\] )?(\w+)\b", re.MULTILINE)
_PART = re.compile(r"^  (hbfp_\w+) \\?(\S+) +\($", re.MULTILINE)    # names in the plain text may have a $
#: Comments of people's text (:mod:`gen.fields`), which go on where a line is too short for them.
_STATES, _FURTHER = re.compile(r"^  // Values of (.*): (.*)\.$", re.MULTILINE), "\n  //   "
_VALUE = re.compile(r"(\d+) (\w+)")


@dataclass(frozen=True)
class Module:
    """A module of the text.

    Attributes
    ----------
    ports : tuple of str
    parts : dict of str to str
        Name of a part -> its module.
    states : dict of str to dict
        Name of a signal -> what its numbers mean.
    """
    ports: tuple[str, ...]
    parts: dict[str, str]
    states: dict[str, dict[int, str]]


def modules(text: str) -> dict[str, Module]:
    """The modules of emitted Verilog by their names, in its order."""
    found = {}
    for body in _MODULE.finditer(text):
        states: dict[str, dict[int, str]] = {}
        for names, values in _STATES.findall(body[0].replace(_FURTHER, " ")):
            meant = {int(number): name for number, name in _VALUE.findall(values)}
            states |= dict.fromkeys(re.findall(r"\w+", names), meant)
        parts = {part: module for module, part in _PART.findall(body[0])}
        found[body[1]] = Module(tuple(_PORT.findall(body[0])), parts, states)
    return found


def places(found: Mapping[str, Module], top: str, wanted: Container[str]) -> dict[str, list[str]]:
    """Where each of some modules stands below ``top``: paths of names of parts, with dots between them.

    ``top`` itself has the empty path.
    """
    paths: dict[str, dict[str, list[str]]] = {}    # module -> those below it, each module once however often it stands
    for name in _parts_first(found, top):
        here: dict[str, list[str]] = {name: [""]} if name in wanted else {}
        for part, module in found[name].parts.items():
            for each, below in paths.get(module, {}).items():
                here.setdefault(each, []).extend(f"{part}.{path}".rstrip(".") for path in below)
        paths[name] = here
    return paths[top]


def _parts_first(found, top):
    """Names of modules below ``top``, itself the last, each behind its parts; those without a body are left out."""
    order: dict[str, None] = {}

    def visit(name):
        if name in found and name not in order:
            for module in found[name].parts.values():
                visit(module)
            order[name] = None
    visit(top)
    return order
