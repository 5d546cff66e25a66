"""What the cycles and the traffic of a step of training are for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from hbfp.isa.instructions import Opcode
from hbfp.program import Program

from .times import Times, moved, union

#: The products of a step.
ROLES = ("forward", "gx", "gw")
UPDATE = "update"
#: What a cycle counts as in which no instruction is under way.
NOTHING = "instructions on their way"
#: Products, the vector unit beside the update, the update, conversions, what moves alone between DRAM and memories.
GROUPS = ("product", "vector", UPDATE, "conversion", "DRAM", "nothing")


def shares(program: Program, kinds: Sequence[str], times: Times) -> dict[str, Any]:
    """Cycles and bytes of a step by what they are for.

    A cycle counts once: for the product that is under way in it; else for the vector unit's work, by operation, or for
    the update; else for conversions; else for what moves between DRAM and the memories.

    Parameters
    ----------
    program : Program
    kinds : sequence of str
        Part and operation of each instruction, as of :class:`golden.lower.lowering.Lowered`.
    times : Times
        Of the program.

    Returns
    -------
    dict
        ``cycles``: kind -> cycles, which add up to the run's, the most first; ``groups``: the same added up to those
        of :data:`GROUPS`; ``bytes``: part -> bytes that loads and stores move; ``products``: of each of forward, gx and
        gw its ``macs``, the cycles in which its products are ``under_way``, and ``utilisation``, the share of what the
        array could do in these.
    """
    accelerator = program.accelerator
    opcodes = np.array([int(each.opcode) for each in program.instructions])
    names, of = np.unique(np.array([_kind(*pair) for pair in zip(opcodes, kinds, strict=True)]), return_inverse=True)
    found: dict[str, int] = {}
    taken = np.zeros((2, 0), np.int64)
    for rank in range(len(_RANKS)):
        for place in [place for place, name in enumerate(names) if _rank(name) == rank]:
            mine = np.flatnonzero(of == place)
            both = union(np.concatenate([taken[0], times.started[mine]]),
                         np.concatenate([taken[1], times.completed[mine]]))
            found[str(names[place])] = int((both[1] - both[0]).sum() - (taken[1] - taken[0]).sum())
            taken = both
    found[NOTHING] = times.cycles - sum(found.values())
    traffic: dict[str, int] = {}
    for each, kind in zip(program.instructions, kinds, strict=True):
        if size := moved(each, accelerator):
            part = kind.partition(" ")[0]
            traffic[part] = traffic.get(part, 0) + size
    size, products = accelerator.core.rows * accelerator.lanes, {}
    for role in ROLES:
        mine = np.flatnonzero((opcodes == Opcode.MULTIPLY) & [kind.partition(" ")[0] == role for kind in kinds])
        begins, ends = union(times.started[mine], times.completed[mine])
        under_way, macs = int((ends - begins).sum()), sum(
            layer.macs for layer in program.layers if layer.name.partition(" ")[0] == role)
        products[role] = {"macs": macs, "under_way": under_way, "utilisation": macs / max(size * under_way, 1)}
    spent = sorted(((name, cycles) for name, cycles in found.items() if cycles), key=lambda item: -item[1])
    groups = dict.fromkeys(GROUPS, 0)
    for name, cycles in spent:
        first, _, second = name.partition(" ")
        groups[UPDATE if second == UPDATE else first if first in GROUPS else "nothing"] += cycles
    return {"cycles": dict(spent), "groups": groups, "bytes": traffic, "products": products}


_RANKS = ("product", "vector", "conversion", "DRAM")


def _kind(opcode, kind):
    part, _, operation = kind.partition(" ")
    if opcode in (Opcode.MULTIPLY, Opcode.DRAIN):
        return f"product {part}"
    if opcode == Opcode.VECTOR:
        return f"vector {UPDATE if part == UPDATE else operation}"
    if opcode in (Opcode.LOAD, Opcode.STORE):
        return f"DRAM {part}"
    return f"conversion {part}" if opcode == Opcode.CONVERT else NOTHING    # weights that wait in the core


def _rank(name):
    rank = name.partition(" ")[0]
    return _RANKS.index(rank) if rank in _RANKS else None


def table(found: dict[str, Any], cycles: int) -> Table:
    """What :func:`shares` found, for people."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("what the cycles are for", "cycles", "share"):
        made.add_column(name, justify="left" if name.startswith("what") else "right")
    for name, spent in found["cycles"].items():
        made.add_row(name, f"{spent:,}", f"{spent / cycles:.1%}")
    for role, each in found["products"].items():
        made.add_row(f"array while {role} is under way", f"{each['under_way']:,}", f"{each['utilisation']:.1%}")
    return made
