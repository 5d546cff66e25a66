"""Bits of a design's text that are constant whatever its inputs are, as Yosys finds them in its whole netlist.

Yosys follows constants through operators, choices and registers of the flat netlist; it knows nothing of what runs. A
bit of a module is constant here if it is in each of its instances.
"""

import json
import re
from collections.abc import Iterator

from cosim.simulate.verilator import TOP
from hbfp import files
from tests import yosys

from .points import modules

#: Every wire stays, so that one can read what became of it.
_SCRIPT = ("read_verilog design.v; hierarchy -check -top {}; proc; memory_collect; flatten; setattr -set keep 1 w:*; "
           "opt_expr -fine -full; pmuxtree; simplemap t:$mux; opt_expr -fine -full; opt -fast -full; "
           "opt_expr -fine -full; opt -fast -full; write_json design.json")
#: A module, or an instance of one.
_INSTANCE = re.compile(r"^\s*(hbfp_\w+) (\w+) \($", re.MULTILINE)
#: A memory, whose words are what is written.
_MEMORY = re.compile(r"^\s*reg \[\d+:0\] contents \[", re.MULTILINE)


def constants(text: str, top: str) -> set[tuple[str, str, int]]:
    """(Module, name, bit) of each bit that is constant; the top has the name that Verilator gives it."""
    found = modules(text, top)
    inside = {module: [(name, kind) for kind, name in _INSTANCE.findall("\n".join(lines)) if kind in found]
              for module, (_, lines) in found.items()}
    nets = {name: each["bits"] for name, each in _netlist(text, top)["netnames"].items()}
    constant: dict[str, set[tuple[str, int]]] = {}
    for module, path in _instances(inside, TOP, ""):
        own = {(name, bit) for name in _names(found[module][1])
               for bit, value in enumerate(nets.get(path + name, ())) if value in ("0", "1")}
        if _MEMORY.search("\n".join(found[module][1])):
            own |= {("contents", bit) for name, bit in own if name == "w_data"}
        constant[module] = constant[module] & own if module in constant else own
    return {(module, name, bit) for module, bits in constant.items() for name, bit in bits}


def _instances(inside, module, path) -> Iterator[tuple[str, str]]:
    """A module, and all that are in it: its name, and the path of its nets' names."""
    yield module, path
    for name, kind in inside[module]:
        yield from _instances(inside, kind, f"{path}{name}.")


def _names(lines):
    """What a module declares."""
    return {name for line in lines for name in re.findall(r"^\s*(?:input|output|wire|reg)\b.*?(\w+)(?: =.*)?[,;]?$",
                                                          line)}


def _netlist(text, top):
    """The top of the netlist that Yosys writes."""
    with files.scratch() as folder:
        (folder / "design.v").write_text(text)
        yosys.run(folder, _SCRIPT.format(top))
        return json.loads((folder / "design.json").read_text())["modules"][top]
