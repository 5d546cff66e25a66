"""Clocked processes as a person writes them: one for each clock, every condition asked once, resets at the end.

Amaranth and Yosys give every register a process of its own, which asks again what the others ask. What a process sets
is seen by none of them before the clock's next edge, so that statements for different registers may change places.
"""

from collections.abc import Iterable
from typing import Any

from .expression import Expression
from .module import Module, Process
from .simplify import targets
from .statements import Choice, Set, Slot


def _set_by(statement):
    return {part.word for each in statement.sets() for part in targets(each)}


def _asks(statement):
    """What tells whether two statements ask the same; None of an assignment."""
    if not isinstance(statement, Choice):
        return None
    return (statement.subject and statement.subject.value, statement.whole,
            *(branch[0].value if isinstance(branch[0], Slot) else branch[0] for branch in statement.branches))


def merged(statements: Iterable[Any]) -> list[Any]:
    """The same statements, those together that ask the same, if none between them sets what they set."""
    found: list[Any] = []
    places: dict[Any, int] = {}
    last: dict[str, int] = {}
    for statement in statements:
        asks, sets = _asks(statement), _set_by(statement)
        place = places.get(asks, -1) if asks else -1
        if place >= 0 and all(last.get(name, -1) <= place for name in sets):
            for branch, more in zip(found[place].branches, statement.branches, strict=True):
                branch[1].extend(more[1])
        else:
            place = len(found)
            found.append(statement)
            if asks:
                places[asks] = place
        last |= dict.fromkeys(sets, place)
    for statement in found:
        if isinstance(statement, Choice):
            statement.branches = [(asked, merged(inside)) for asked, inside in statement.branches]
    return found


def without_empty(statement: Any) -> Any:
    """No ``if`` that does nothing but in its ``else``."""
    if not isinstance(statement, Choice):
        return statement
    statement.branches = [(asked, [without_empty(each) for each in inside]) for asked, inside in statement.branches]
    if statement.subject:
        return statement
    first, *others = statement.branches
    if not first[1] and len(others) == 1 and others[0][0] is None:
        statement.branches = [(Slot(Expression("unary", "!", (first[0].value,))), others[0][1])]
        statement.whole = False
    return statement


def _is_reset(statement):
    """Whether a statement is an ``if`` on a name that gives constants."""
    return isinstance(statement, Choice) and not statement.subject and len(statement.branches) == 1 and (
        statement.branches[0][0].value.kind == "name"
        and all(isinstance(each, Set) and each.value.value.kind == "number" for each in statement.branches[0][1]))


def together(module: Module) -> None:
    """Put the processes of each clock into one, and write no ``if`` in any that does nothing but in its ``else``."""
    clocks: dict[Any, list[Process]] = {}
    for item in module.items:
        if isinstance(item, Process) and item.edges:
            clocks.setdefault(tuple((word, slot.value) for word, slot in item.edges), []).append(item)
    gone: set[int] = set()
    for first, *others in clocks.values():
        bodies, resets = [], []
        for each in (first, *others):
            end = len(each.body) - (len(each.body) > 1 and _is_reset(each.body[-1]))
            bodies += each.body[:end]
            resets += each.body[end:]
        first.body = merged([*bodies, *resets])
        gone |= set(map(id, others))
    module.items = [item for item in module.items if id(item) not in gone]
    for item in module.items:
        if isinstance(item, Process):
            item.body = [without_empty(each) for each in item.body]
