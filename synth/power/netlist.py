"""Mapped netlists of a design's units as the engine reads them: numbers of nets, cells and parts, by module."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from ..measure.partition import Unit

_PORT = re.compile(r"^  (?:wire|input|output(?: reg)?) *(\[(\d+):0\])? *(\w+) *(?:= .*)?;", re.MULTILINE)
_LITERAL = {"$false": 0, "$undef": 0, "$true": 1}
#: Ports of a memory in the order in which the engine takes them.
_MEMORY = ("w_en", "w_addr", "w_data", "r_en", "r_addr", "r_data")


@dataclass
class Module:
    """A unit's netlist.

    Attributes
    ----------
    name : str
        Of the unit.
    ports : list of str
        Bits of its ports, inputs first; a bit of a wider port is ``name[bit]``.
    cells : list of (str, dict)
        Type, and pin -> net.
    parts : list of (str, dict)
        Unit inside, and bit of a port -> net.
    same : list of (str, str)
        Nets that are one.
    memory : tuple of int, optional
        Words, bits of a word, and parts of a word that are written alone, if it is a memory.
    """
    name: str
    ports: list[str]
    cells: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    parts: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)
    memory: tuple[int, int, int] | None = None


def read_blif(text: str, units: Container[str]) -> Module:
    """The module of a BLIF file, as Yosys writes it of a mapped unit; ``units`` are those that can be its parts.

    Raises
    ------
    ValueError
        If it holds a gate that is no cell.
    """
    lines = text.replace("\\\n", " ").splitlines()
    module = Module("", [])
    for number, line in enumerate(lines):
        word, _, rest = line.partition(" ")
        match word:
            case ".model":
                module.name = rest.strip()
            case ".inputs" | ".outputs":
                module.ports += rest.split()
            case ".subckt" | ".gate":
                kind, *pins = rest.split()
                pairs = (pin.partition("=") for pin in pins)
                found = kind, {name: net for name, _, net in pairs}
                (module.parts if kind in units else module.cells).append(found)
            case ".names":
                nets = rest.split()
                if len(nets) == 2 and lines[number + 1].split() == ["1", "1"]:
                    module.same.append((nets[0], nets[1]))
                elif len(nets) != 1 or nets[0] not in _LITERAL:
                    raise ValueError(f"{module.name}: {line} is no cell of the library")
    return module


def read_memory(unit: Unit, shape: tuple[int, int]) -> Module:
    """The module of a memory, from the widths of its ports."""
    widths = {name: int(high) + 1 if high else None for _, high, name in _PORT.findall(unit.verilog)}
    ports = []
    for name in _MEMORY:
        width = widths[name]
        ports += [name] if width is None else [f"{name}[{bit}]" for bit in range(width)]
    return Module(unit.top, ports, memory=(*shape, widths["w_en"] or 1))


def _net(names: dict[str, int], net: str) -> int:
    """The number of a net; 0 and 1 are the constants."""
    return _LITERAL[net] if net in _LITERAL else names.setdefault(net, len(names) + 2)


def text(modules: Sequence[Module], cells: Sequence[str], pins: Mapping[str, Sequence[str]],
         components: Mapping[str, int]) -> str:
    """Modules as ``Netlist::read`` of engine/netlist.h reads them, parts before their users, the top last.

    Parameters
    ----------
    modules : list of Module
    cells : list of str
        Types of cells in the library's order.
    pins : dict
        Type -> its pins, inputs first.
    components : dict
        Unit -> number of its component; one that is missing belongs to that of its user.
    """
    number = {module.name: n for n, module in enumerate(modules)}
    ports = {module.name: module.ports for module in modules}
    kind = {name: n for n, name in enumerate(cells)}
    lines = [str(len(modules))]
    for module in modules:
        names: dict[str, int] = {}
        body = [" ".join(str(_net(names, port)) for port in module.ports)]
        for name, index, order in ((module.cells, kind, pins), (module.parts, number, ports)):
            for each, nets in name:
                ends = [_net(names, nets[pin]) if pin in nets else -1 for pin in order[each]]
                body.append(f"{len(ends) + 1} {index[each]} {' '.join(map(str, ends))}")
        body += [f"{_net(names, a)} {_net(names, b)}" for a, b in module.same]
        words, width, granules = module.memory or (0, 0, 0)
        sizes = [len(names) + 2, len(module.ports), len(module.cells), len(module.parts),
                 len(module.same)]
        lines += [" ".join(map(str, [components.get(module.name, -1), words, width, granules, *sizes])), *body]
    return "\n".join(lines) + "\n"
