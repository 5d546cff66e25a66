"""What a routed block's files say: cells and wires of a DEF file, sizes and capacitances of a LEF file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPONENT = re.compile(r"^- (\S+) (\S+) \+ PLACED \( (-?\d+) (-?\d+) \) \S+ ;", re.MULTILINE)
_NETS = re.compile(r"^NETS.*?;\n(.*?)^END NETS", re.MULTILINE | re.DOTALL)
_PIN = re.compile(r"\( (\S+) (\S+) \)")
_PATH = re.compile(r"(?:ROUTED|NEW) (\S+) ([^\n;]*)")
_POINT = re.compile(r"\( (\S+) (\S+)(?: \S+)? \)")


@dataclass(frozen=True)
class Layer:
    """A layer of metal: width of a wire in um; capacitance, pF a um2 below it and a um of each of its edges."""
    width: float
    area: float
    edge: float

    @property
    def capacitance(self) -> float:
        """Of a wire, pF a um."""
        return self.width * self.area + 2 * self.edge


@dataclass(frozen=True)
class Technology:
    """Geometry of a cell library: sizes of cells in um, and layers, by name."""
    cells: dict[str, tuple[float, float]]
    layers: dict[str, Layer]

    @classmethod
    def read(cls, path: Path) -> "Technology":
        """From a LEF file."""
        text = path.read_text()
        cells = {name: (float(width), float(height)) for name, width, height in re.findall(
            r"^MACRO (\S+)\n.*?^ *SIZE +([\d.]+) +BY +([\d.]+)", text, re.MULTILINE | re.DOTALL)}
        layers = {}
        for name, body in re.findall(r"^LAYER (\S+)\n(.*?)^END \1", text, re.MULTILINE | re.DOTALL):
            found = [re.search(rf"\b{what}\s+([\d.eE+-]+)", body) for what in (
                "WIDTH", "CPERSQDIST", "EDGECAPACITANCE")]
            if all(found):
                layers[name] = Layer(*(float(each[1]) for each in found if each))
        return cls(cells, layers)


@dataclass(frozen=True)
class Wire:
    """A stretch of metal on a layer, between two points in um."""
    layer: str
    begin: tuple[float, float]
    end: tuple[float, float]

    @property
    def length(self) -> float:
        """In um."""
        return abs(self.end[0] - self.begin[0]) + abs(self.end[1] - self.begin[1])


@dataclass(frozen=True)
class Net:
    """A net: pins (instance, pin) that it connects, ports of the block as instance ``PIN``; its wires."""
    pins: list[tuple[str, str]]
    wires: list[Wire]


@dataclass(frozen=True)
class Block:
    """A routed block.

    Attributes
    ----------
    cells : dict of str to (str, float, float)
        Kind of each cell, and its lower left corner in um, by the cell's name.
    nets : dict of str to Net
    corners : tuple
        Lower left and upper right, um.
    """
    cells: dict[str, tuple[str, float, float]]
    nets: dict[str, Net]
    corners: tuple[tuple[float, float], tuple[float, float]]

    @classmethod
    def read(cls, path: Path) -> "Block":
        """From a DEF file."""
        text = path.read_text()
        found = re.search(r"^UNITS DISTANCE MICRONS (\d+)", text, re.MULTILINE)
        unit = float(found[1]) if found else 1.0
        area = re.search(r"^DIEAREA \( (\S+) (\S+) \) \( (\S+) (\S+) \)", text, re.MULTILINE)
        low, high = ((0.0, 0.0), (0.0, 0.0)) if area is None else (
            (float(area[1]) / unit, float(area[2]) / unit), (float(area[3]) / unit, float(area[4]) / unit))
        cells = {name: (kind, int(x) / unit, int(y) / unit) for name, kind, x, y in _COMPONENT.findall(text)}
        nets = _NETS.search(text)
        return cls(cells, dict(_nets(nets[1] if nets else "", unit)), (low, high))


def _nets(text: str, unit: float) -> Iterator[tuple[str, Net]]:
    for each in re.split(r"^- ", text, flags=re.MULTILINE)[1:]:
        name, body = each.split(maxsplit=1)
        pins, _, routes = body.partition("+ ROUTED")
        wires = [wire for layer, path in _PATH.findall("ROUTED" + routes) for wire in _wires(layer, path, unit)]
        yield name, Net(_PIN.findall(pins), wires)


def _wires(layer: str, path: str, unit: float) -> Iterator[Wire]:
    """The stretches of a path; ``*`` repeats the coordinate before."""
    here: tuple[float, float] | None = None
    for x, y in _POINT.findall(path):
        there = (here[0] if x == "*" and here else float(x) / unit, here[1] if y == "*" and here else float(y) / unit)
        if here is not None and there != here:
            yield Wire(layer, here, there)
        here = there
