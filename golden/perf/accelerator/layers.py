"""The table of a run by layer: cycles, utilisation, what the array waited for, bytes."""

from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from hbfp.isa.instructions import Opcode
from hbfp.program import Program

from .scale_sim import scale_sim
from .times import Times, layers_of, moved, union

#: What a cycle without a product is charged to when nothing older is under way: instructions are on their way.
FETCH = "fetch"


def by_layer(program: Program, times: Times) -> list[dict[str, Any]]:
    """A row for each layer.

    A layer's cycles are those from the completion of all before it to that of its own last instruction, so that they
    add up to the run's. A cycle in which no product is under way is charged to the unit that the oldest instruction
    not yet completed is in, or to ``fetch`` if that has not started.

    Returns
    -------
    list of dict
        ``name``, ``cycles``, ``macs``, ``bytes`` that loads and stores move, ``multiplying``, the cycles in which
        products of its own are under way, also beside layers before it, ``utilisation`` of the array in the layer's
        cycles or in these, whichever are more, and ``waits``: unit -> cycles, the most first. Of layers whose products
        are known, ``scale_sim``, the cycles of these by :func:`~golden.perf.accelerator.scale_sim.scale_sim`.
    """
    charged = _charges(program, times)
    size = program.accelerator.core.rows * program.accelerator.lanes
    rows, begin = [], 0
    layers = layers_of(program)
    multiplies = np.array([each.unit == Opcode.MULTIPLY for each in program.instructions])
    for number, (name, first, stop, macs) in enumerate(layers):
        end = times.cycles if number == len(layers) - 1 else max(begin, int(times.completed[first:stop].max(initial=0)))
        waits = {unit: int(np.clip(np.minimum(ends, end) - np.maximum(begins, begin), 0, None).sum())
                 for unit, (begins, ends) in charged.items()}
        own = np.flatnonzero(multiplies[first:stop]) + first
        begins, ends = union(times.started[own], times.completed[own])
        multiplying = int((ends - begins).sum())
        rows.append({"name": name, "cycles": end - begin, "macs": macs, "multiplying": multiplying,
                     "bytes": sum(moved(each, program.accelerator) for each in program.instructions[first:stop]),
                     "utilisation": macs / (size * max(end - begin, multiplying, 1)),
                     "waits": dict(sorted(((unit, cycles) for unit, cycles in waits.items() if cycles),
                                          key=lambda item: (-item[1], item[0])))})
        begin = end
    for row, layer in zip(rows, program.layers, strict=False):    # one row of a program without layers
        if layer.products:
            row["scale_sim"] = scale_sim(layer.products, program.accelerator.core.rows, program.accelerator.lanes)
    return rows


def busy(program: Program, times: Times) -> dict[str, int]:
    """Unit -> cycles in which an instruction of it is under way."""
    units = np.array([each.unit.name.lower() if each.unit else FETCH for each in program.instructions])
    found = {}
    for name in dict.fromkeys(units.tolist()):
        begins, ends = union(times.started[units == name], times.completed[units == name])
        found[name] = int((ends - begins).sum())
    return found


#: What is added up over the layers of a part.
SUMS = ("cycles", "multiplying", "model_cycles", "macs", "bytes")


def by_part(rows: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """The rows of layers added up by the part of a step of training that their name begins with.

    ``size``: multiply-adds a cycle of the array.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = row["name"].partition(" ")[0]
        part = found.setdefault(name, {"name": name, "waits": {}} | {each: 0 for each in SUMS if each in row})
        for each in part.keys() & SUMS:
            part[each] += row[each]
        for unit, cycles in row["waits"].items():
            part["waits"][unit] = part["waits"].get(unit, 0) + cycles
    for part in found.values():
        part["utilisation"] = part["macs"] / (size * max(part["cycles"], part["multiplying"], 1))
        part["waits"] = dict(sorted(part["waits"].items(), key=lambda item: -item[1]))
    return list(found.values())


def _charges(program, times):
    """Name -> begins and ends of the stretches of cycles that are charged to it."""
    units = np.array([each.unit or 0 for each in program.instructions])
    names = [each.unit.name.lower() if each.unit else FETCH for each in program.instructions]
    multiplies = units == Opcode.MULTIPLY
    busy = union(times.started[multiplies], times.completed[multiplies])
    front = np.maximum.accumulate(times.completed)
    before = np.concatenate(([0], front[:-1]))
    stretches: dict[str, list[tuple[int, int]]] = {}
    for number in np.flatnonzero(front > before):    # the oldest that is not completed, one after the other
        start = min(max(int(times.started[number]), int(before[number])), int(front[number]))
        for name, begin, end in ((FETCH, int(before[number]), start), (names[number], start, int(front[number]))):
            if name != "multiply":
                stretches.setdefault(name, []).extend(_without(begin, end, *busy))
    return {name: tuple(np.array(each, np.int64).reshape(-1, 2).T) for name, each in stretches.items()}


def _without(begin, end, begins, ends):
    """A stretch without those that are given."""
    at = int(np.searchsorted(ends, begin, "right"))
    while begin < end and at < len(begins) and begins[at] < end:
        if begins[at] > begin:
            yield begin, int(begins[at])
        begin = max(begin, int(ends[at]))
        at += 1
    if begin < end:
        yield begin, end


def table(rows: list[dict[str, Any]], cycles: int, size: int, title: str) -> Table:
    """What :func:`by_layer` found, for people.

    Parameters
    ----------
    rows : list of dict
        Of :func:`by_layer`; with ``model_cycles`` and ``compared`` and ``mismatches``, if the caller has them. The
        column of SCALE-Sim's cycles is there if a row has them and none has ``compared``, that of the model's if one
        differs.
    cycles : int
        Of the run.
    size : int
        Multiply-adds a cycle of the array.
    title : str
        Of the table.
    """
    titles = {"model_cycles": "model's", "scale_sim": "SCALE-Sim", "compared": "compared", "mismatches": "differ"}
    there = {name for row in rows for name in row}
    there -= {"scale_sim"} if "compared" in there else set()    # a terminal has 80 columns
    if all(row.get("model_cycles", row["cycles"]) == row["cycles"] for row in rows):
        there -= {"model_cycles"}
    extra = [name for name in titles if name in there]
    made = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    made.add_column("layer", overflow="fold")
    for name in ("cycles", *(titles[name] for name in extra), "MACs", "array", "bytes"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("while it does not multiply")
    macs, moved_bytes = (sum(row[name] for row in rows) for name in ("macs", "bytes"))
    for row in rows:
        made.add_row(row["name"], f"{row['cycles']:,}", *(f"{row[name]:,}" if name in row else "" for name in extra),
                     f"{row['macs']:,}", f"{row['utilisation']:.1%}" if row["macs"] else "", f"{row['bytes']:,}",
                     ", ".join(f"{unit} {spent / max(row['cycles'], 1):.0%}"
                               for unit, spent in list(row["waits"].items())[:3]))
    made.add_section()
    made.add_row("all", f"{cycles:,}", *(f"{sum(row.get(name, 0) for row in rows):,}" for name in extra), f"{macs:,}",
                 f"{macs / (size * cycles):.1%}" if cycles else "", f"{moved_bytes:,}", "")
    return made
