"""Wires that have no name and one reader, put into the expression that reads them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from .expression import Expression, places, replaced, show, signed, width
from .module import Assign, Module, Process
from .simplify import helper, reads
from .statements import Slot

#: Most columns of a line with something folded into it, and most operators.
COLUMNS, OPERATORS = 100, 8


def fits(value: Expression, name: str, slot: Slot, widths: Mapping[str, int]) -> bool:
    """Whether ``value`` may take the place of the wire ``name`` in a slot: each operator keeps its bits.

    What stands for itself (an operand of braces, of a reduction, a condition) has to have the wire's bits. Where the
    surroundings give bits these have to be the wire's, and the value has no sign, which would change theirs.
    """
    bits, own = widths[name], width(value, widths)
    plain = value.kind in ("name", "part", "{}") or value.kind == "unary" and value.word in ("|", "&", "^", "~|") or (
        value.kind == "binary" and value.word in ("==", "!=", "<", "<=", ">", ">="))
    for found, around in places(slot.value, slot.around, {**widths, name: own}):
        if found.word != name:
            continue
        if found.kind != "name":
            return False
        if around is None or plain:
            if own != bits:
                return False
        elif around != bits or own > bits or signed(value):
            return False
    return True


def _instead(name, value, of):
    return value if of.kind == "name" and of.word == name else None


def _early(process, slot, value):
    """Whether a value in a slot of a process might be one from before the process set what it reads; or is a clock."""
    if process.edges:
        return any(slot is each for _, each in process.edges)
    return not {each.target.word for each in process.sets()}.isdisjoint(each.word for each in value.names())


def fold(module: Module) -> None:
    """Fold what may be."""
    read = reads(module)
    sources = {item.target.word: item for item in module.items if isinstance(item, Assign)
               and item.target.kind == "name" and helper(item.target.word) and read[item.target.word] == 1}
    gone: set[int] = set()
    where: dict[str, tuple[Any, Slot]] = {}
    for item in module.items:
        for slot in item.slots():
            for each in slot.value.names():
                where[each.word] = item, slot
    for name, source in sources.items():
        item, slot = where.get(name, (source, source.value))
        value = source.value.value
        if item is source or isinstance(item, Process) and _early(item, slot, value):
            continue
        if any(each.word == name and each.args for each in slot.value.names()):
            continue
        if not fits(value, name, slot, module.widths):
            continue
        put = replaced(slot.value, partial(_instead, name, value))
        if put.operators > OPERATORS or len(show(put)) + 30 > COLUMNS:
            continue
        slot.value = put
        gone.add(id(source))
        for each in value.names():
            where[each.word] = item, slot
        del module.declared[name]
    module.items = [item for item in module.items if id(item) not in gone]
