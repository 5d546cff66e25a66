"""What the engine is told of a library's cells: truth tables, and which table holds in which state."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hbfp.values import refuse

from ..tools.liberty import evaluate
from .liberty import Arc, Cell, Powers, Table

#: Most inputs of a cell: states of them are listed one by one.
MOST_INPUTS = 8


def text(powers: Powers, names: Iterable[str], path: Any) -> str:
    """Cells of a library as ``read_library`` of engine/library.h reads them, in the order of ``names``.

    Raises
    ------
    OptionError
        If a cell cannot be simulated; ``path`` is the library's file, for the message.
    """
    tables: dict[int, tuple[int, Table]] = {}
    lines: list[str] = []
    for name in names:
        cell = powers.cells.get(name)
        why = "it is not in the file" if cell is None else cell.unsupported or _lacking(cell)
        if cell is None or why:
            raise refuse("liberty", path, f"cannot be simulated with its cell {name}: {why}")
        lines += _cell(cell, tables)
    numbers = [f"{len(table.slews)} {len(table.loads)} {_floats(table.slews)} {_floats(table.loads)} "
               f"{_floats(table.values.ravel())}" for _, table in sorted(tables.values(), key=lambda each: each[0])]
    return "\n".join([f"{powers.volts}", str(len(numbers)), *numbers, str(len(lines) // _LINES), *lines]) + "\n"


def _lacking(cell: Cell) -> str | None:
    """What a cell lacks, or None."""
    if not cell.outputs:
        return "it has no output with a function"
    if len(cell.inputs) > MOST_INPUTS:
        return f"it has more than {MOST_INPUTS} inputs"
    if cell.inputs and not all(cell.delays[name] for name in cell.outputs):
        return "it has no delays"
    return None


def _floats(values):
    return " ".join(f"{value:.7g}" for value in values)


def states(inputs: Iterable[str], others: Iterable[str] = ()) -> dict[str, np.ndarray]:
    """Name -> its truth value in each state; the first name is the lowest bit of a state's number."""
    names = [*inputs, *others]
    number = np.arange(2 ** len(names))
    return {name: (number >> bit & 1).astype(bool) for bit, name in enumerate(names)}


def _numbers(values):
    return " ".join(str(int(value)) for value in values)


def _cell(cell, tables):
    """The lines of a cell."""
    pins = list(cell.inputs)
    values = states(pins)
    clock = pins.index(cell.clock) if cell.clock else -1
    delays = list(itertools.chain(*(cell.delays[name] for name in cell.outputs)))
    energies = list(itertools.chain(*(cell.energies[name] for name in cell.outputs)))
    size = 2 ** len(pins)
    truth = [np.broadcast_to(evaluate(function, values), size) for function in cell.outputs.values()]
    own = _own(cell, pins)
    head = f"{cell.name} {len(pins)} {len(cell.outputs)} {clock} {int(cell.falling)} {cell.leakage:.7g}"
    return [head, _floats(cell.inputs.values()), " ".join("".join("01"[int(bit)] for bit in each) for each in truth),
            _numbers(name in cell.inverted for name in cell.outputs),
            _arcs(delays, tables, ("delay", "transition")), _arcs(energies, tables, ("energy",)),
            _arcs(cell.hidden, tables, ("energy",)),
            _numbers(_places(cell.delays, cell, pins, values)), _numbers(_places(cell.energies, cell, pins, values)),
            _numbers(number for pin in pins for number in _chosen(cell.hidden, pin, own, False))]


#: Lines of a cell.
_LINES = 10


def _own(cell, pins):
    """States of a cell's inputs and, if it is a flip-flop, of its own bit, which its outputs show."""
    if not cell.clock:
        return states(pins) | {name: evaluate(function, states(pins)) for name, function in cell.outputs.items()}
    values = states(pins, [""])
    bit = values.pop("")
    return values | {name: ~bit if name in cell.inverted else bit for name in cell.outputs}


def _arcs(arcs: list[Arc], tables: dict[int, tuple[int, Table]], kinds: Iterable[str]) -> str:
    """The numbers of the tables of arcs, falling before rising."""
    def number(table):
        if table is None:
            return -1
        return tables.setdefault(id(table), (len(tables), table))[0]

    lines = [str(len(arcs))]
    for arc in arcs:
        found = [number(table) for kind in kinds for table in reversed(arc.tables[kind])]
        lines.append(_numbers([*found, -1, -1][:4]))
    return "  ".join(lines)


def _places(by_output: Mapping[str, list[Arc]], cell: Cell, pins: list[str], values: dict[str, np.ndarray]):
    """Number of the arc of each output, input and state, among the arcs of all outputs."""
    first = 0
    for name in cell.outputs:
        for pin in pins:
            for number in _chosen(by_output[name], pin, values, True):
                yield number if number < 0 else number + first
        first += len(by_output[name])


def _chosen(arcs: list[Arc], pin: str, values: dict[str, np.ndarray], always: bool) -> np.ndarray:
    """Number of the arc of a pin in each state: the one whose condition holds, else one without; ``always``: else the
    first; -1 if there is none.
    """
    size = len(next(iter(values.values()))) if values else 1
    found = np.full(size, -1)
    mine = [(number, arc) for number, arc in enumerate(arcs) if arc.pin == pin]
    if always and mine:
        found[:] = mine[0][0]
    for wanted in (False, True):
        for number, arc in reversed(mine):
            if (arc.when is not None) == wanted:
                holds = True if arc.when is None else np.broadcast_to(evaluate(arc.when, values), size)
                found[holds] = number
    return found
