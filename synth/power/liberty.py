"""Liberty's tables of delay, transition, power and leakage, as arrays.

What a simulation with energies needs of a file is here; constraints, wires and everything else is left out. Energies
are in fJ, capacitances in fF, times in ns, leakage in nW, whatever units the file has: the unit of internal power is
that of capacitance times volts squared.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hbfp.values import refuse

from ..tools.liberty import Group, parse

#: Powers of ten of prefixes, for the units of a file.
_SCALE = {"f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "": 1.0}
#: A flip-flop's clock: one pin, or its complement.
_CLOCK = re.compile(r"\s*\(?\s*(!?)\s*(\w+)\s*('?)\s*\)?\s*")
#: Names of a table's variable that is the transition at an input; any other is a capacitance.
_SLEW = ("input_net_transition", "input_transition_time")


@dataclass(frozen=True)
class Table:
    """A table over the transition at the input and the load: ``values`` (transitions, loads)."""
    slews: np.ndarray
    loads: np.ndarray
    values: np.ndarray

    def at(self, slew: Any, load: Any) -> np.ndarray:
        """Linear between points; a load beyond the last goes on as it did, a transition stays at the last."""
        slew = np.clip(slew, self.slews[0], self.slews[-1])
        row, down = _place(self.slews, slew)
        column, right = _place(self.loads, load)
        v, rows, columns = self.values, *(size - 1 for size in self.values.shape)
        below, beside = np.minimum(row + 1, rows), np.minimum(column + 1, columns)
        near = v[row, column] + (v[row, beside] - v[row, column]) * right
        far = v[below, column] + (v[below, beside] - v[below, column]) * right
        return near + (far - near) * down


def _place(points, x):
    """Index of the interval that a value lies in, and how far along."""
    x = np.asarray(x, float)
    if len(points) == 1:
        return np.zeros(x.shape, int), np.zeros(x.shape)
    index = np.clip(np.searchsorted(points, x) - 1, 0, len(points) - 2)
    return index, (x - points[index]) / (points[index + 1] - points[index])


#: A rise and a fall.
Pair = tuple[Table | None, Table | None]


@dataclass(frozen=True)
class Arc:
    """What a pin does to an output, or at itself, in some states of the others.

    Attributes
    ----------
    pin : str
        Input that changes.
    when : str or None
        Condition on the other pins.
    tables : dict of str to Pair
        ``delay``, ``transition`` or ``energy``: for a rising and a falling output (or, of a hidden energy, input).
    """
    pin: str
    when: str | None
    tables: dict[str, Pair]


@dataclass
class Cell:
    """A cell of a library.

    Attributes
    ----------
    inputs : dict of str to float
        Name -> capacitance in fF.
    outputs : dict of str to str
        Name -> function; of a flip-flop ``next_state`` or its complement.
    delays, energies : dict of str to list of Arc
        Name of an output -> its arcs.
    hidden : list of Arc
        Energies of inputs that change alone.
    leakage : float
        nW, the mean of all states.
    clock : str or None
        Pin of a flip-flop one of whose edges takes its input over.
    falling : bool
        Whether that is the falling edge.
    inverted : frozenset of str
        Outputs that are the complement of a flip-flop's state.
    unsupported : str or None
        Why it cannot be simulated.
    """
    name: str
    inputs: dict[str, float] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    delays: dict[str, list[Arc]] = field(default_factory=dict)
    energies: dict[str, list[Arc]] = field(default_factory=dict)
    hidden: list[Arc] = field(default_factory=list)
    leakage: float = 0.0
    clock: str | None = None
    falling: bool = False
    inverted: frozenset[str] = frozenset()
    unsupported: str | None = None


@dataclass(frozen=True)
class Powers:
    """The cells of a library with their tables, and its voltage."""
    volts: float
    cells: Mapping[str, Cell]


def _units(library):
    """Factors from a library's units to fF, ns, fJ and nW."""
    amount, unit = library.value("capacitive_load_unit", ["1", "pf"])
    farads = float(amount) * _SCALE[unit.lower().removesuffix("f")]

    def scale(name, default, unit):
        number, prefix = re.fullmatch(r"([\d.]+)(\w*?)" + unit, library.value(name, default)).groups()
        return float(number) * _SCALE[prefix]

    volts = scale("voltage_unit", "1V", "V")
    return {"load": farads / 1e-15, "time": scale("time_unit", "1ns", "s") / 1e-9,
            "energy": farads * volts ** 2 / 1e-15, "leakage": scale("leakage_power_unit", "1nW", "W") / 1e-9}


def _numbers(words):
    return np.array([float(part) for word in words for part in re.split(r"[,\s]+", word) if part])


class _Reader:
    """Cells of a library's groups."""

    def __init__(self, library):
        self.units = _units(library)
        self.templates = {each.arguments[0]: each for each in library.groups if each.name.endswith("_template")}

    def table(self, group, unit):
        """The table of a group."""
        template = self.templates.get((group.arguments or ["scalar"])[0], Group("", []))
        values = _numbers(group.value("values", ["0"])) * self.units[unit]
        axes: dict[str, np.ndarray] = {"slew": np.zeros(1), "load": np.zeros(1)}
        order = []
        for n in (1, 2):
            points = group.value(f"index_{n}", template.value(f"index_{n}"))
            variable = template.value(f"variable_{n}")
            if variable is not None and points is not None and len(values) > 1:
                name = "slew" if variable in _SLEW else "load"
                axes[name] = _numbers(points) * self.units["time" if name == "slew" else "load"]
                order.append(name)
        values = values.reshape([len(axes[name]) for name in order])
        if order[:1] == ["load"]:
            values = values.T if len(order) == 2 else values[None, :]
        return Table(axes["slew"], axes["load"], values.reshape(len(axes["slew"]), len(axes["load"])))

    def pair(self, group, names, unit):
        """Tables of a rise and a fall; ``power`` where one table serves both."""
        found = [next((self.table(each, unit) for each in group.all(name, "power")), None) for name in names]
        return tuple(found)

    def leakage(self, group):
        """Mean over all states, in nW."""
        if group.value("cell_leakage_power") is not None:
            return float(group.value("cell_leakage_power")) * self.units["leakage"]
        found = [float(each.value("value", 0)) for each in group.all("leakage_power")]
        return float(np.mean(found or [0.0])) * self.units["leakage"]

    def arcs(self, pin, kind, tables):
        """Arcs of a pin's groups of one kind, one for each pin that they are related to."""
        for group in pin.all(kind):
            found = {name: self.pair(group, names, unit) for name, (names, unit) in tables.items()}
            for related in (group.value("related_pin") or "").split() or [""]:
                yield group, Arc(related, group.value("when"), found)

    def cell(self, group):
        """A :class:`Cell`."""
        cell = Cell(group.arguments[0], leakage=self.leakage(group))
        state = {}
        for flipflop in group.all("ff", "ff_bank"):
            clock = _CLOCK.fullmatch(flipflop.value("clocked_on", ""))
            cell.clock, cell.falling = ("", False) if clock is None else (clock[2], bool(clock[1]) != bool(clock[3]))
            state = dict(zip(flipflop.arguments, (f"({flipflop.value('next_state')})",
                                                  f"!({flipflop.value('next_state')})"), strict=False))
            if "clear" in flipflop.attributes or "preset" in flipflop.attributes or not cell.clock:
                cell.unsupported = "its flip-flop has a reset of its own, or another clock than an edge of one pin"
        if group.all("latch", "statetable"):
            cell.unsupported = "it is a latch"
        for pin in group.all("pin"):
            name = pin.arguments[0]
            if pin.value("direction") == "input":
                cell.inputs[name] = float(pin.value("capacitance", 0)) * self.units["load"]
                for _, arc in self.arcs(pin, "internal_power", {"energy": (("rise_power", "fall_power"), "energy")}):
                    cell.hidden.append(Arc(name, arc.when, arc.tables))
            elif pin.value("function") is not None:
                function = pin.value("function")
                if function in state and function == list(state)[-1]:
                    cell.inverted |= {name}
                cell.outputs[name] = state.get(function, function)
                cell.delays[name] = [arc for timing, arc in self.arcs(pin, "timing", {
                    "delay": (("cell_rise", "cell_fall"), "time"),
                    "transition": (("rise_transition", "fall_transition"), "time")})
                    if timing.value("timing_type", "combinational") in ("combinational", "rising_edge", "falling_edge")]
                cell.energies[name] = [arc for _, arc in self.arcs(pin, "internal_power", {
                    "energy": (("rise_power", "fall_power"), "energy")})]
        return cell


@cache
def read(path: Path) -> Powers:
    """Cells and voltage of a Liberty file.

    Raises
    ------
    OptionError
        If it is none, or no cell has tables of power.
    """
    try:
        library = parse(path.read_text())
        reader = _Reader(library)
        cells = {group.arguments[0]: reader.cell(group) for group in library.all("cell")}
    except (ValueError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise refuse("liberty", path, f"cannot be read ({error})") from None
    if not any(cell.energies[name] for cell in cells.values() for name in cell.energies):
        raise refuse("liberty", path, "has no tables of power (internal_power), which energies are made from")
    return Powers(float(library.value("nom_voltage", 1)), cells)
