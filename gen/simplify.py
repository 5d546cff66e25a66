"""A module with fewer lines that say the same.

Registers take their next value where it is chosen; what has two names loses the number; what is computed twice is
computed once.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .expression import Expression, replaced, together
from .module import Assign, Module, Process
from .statements import Set, Slot

HELPER = re.compile(r"(?:\$auto)?\$\d+|_\d+_")
_HEX = re.compile(r"\d+'h[0-9a-f]+$")
_AGAIN = re.compile(r"\S+\$\d+")
#: What has the same bits wherever it stands.
PLAIN = ("name", "part", "number", "{}")


def helper(name: str) -> bool:
    """Whether a name is none: a number of Yosys or Amaranth."""
    return bool(HELPER.fullmatch(name))


def targets(each: Any) -> tuple[Expression, ...]:
    """What an assignment sets: what stands together on its left is several."""
    return each.target.args if each.target.kind == "{}" else (each.target,)


def _values(module):
    """All that is read."""
    for item in module.items:
        yield from (slot.value for slot in item.slots())
        yield from (index for each in item.sets() for part in targets(each) for index in part.args)


def reads(module: Module) -> Counter[str]:
    """Name -> how many places read it; equal neighbours in braces, which are written as copies, are one place."""
    found: Counter[str] = Counter()

    def count(of):
        if of.kind in ("name", "part", "index"):
            found[of.word] += 1
        last = None
        for each in of.args:
            if of.kind != "{}" or each != last:
                count(each)
            last = each
    for value in _values(module):
        count(value)
    return found


def drivers(module: Module) -> dict[str, list[tuple[Any, Any]]]:
    """Name -> what drives it: (item, its target) for each."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for item in module.items:
        for each in item.sets():
            for part in targets(each):
                found.setdefault(part.word, []).append((item, each))
    return found


def change(module: Module, how: Callable[[Expression], Expression | None]) -> None:
    """Replace parts of all that is read."""
    for item in module.items:
        for slot in item.slots():
            slot.value = replaced(slot.value, how)
        for each in item.sets():
            parts = [Expression(part.kind, part.word, tuple(replaced(index, how) for index in part.args), part.high,
                                part.low) for part in targets(each)]    # are no values, but an index is
            each.target = together(parts) if each.target.kind == "{}" else parts[0]


def without_unread(module: Module, names: bool = True) -> None:
    """Drop what computes numbered wires that nothing reads, and with ``names`` those that are other values' names."""
    while True:
        read, gone = reads(module), []
        for item in module.items:
            if isinstance(item, Assign) and not any(read[each.word] for each in targets(item)) and (
                    all(helper(each.word) for each in targets(item)) or names and item.value.value.kind in PLAIN
                    and item.target.kind == "name" and "output" not in module.declared[item.target.word].kinds):
                gone.append(item)
        if not gone:
            break
        out = set(map(id, gone))
        module.items = [item for item in module.items if id(item) not in out]
    driven = drivers(module)
    for name in [name for name, entry in module.declared.items() if not read[name] and name not in driven
                 and not entry.kinds & {"input", "output"} and (names or helper(name))]:
        del module.declared[name]


def clocked(module: Module) -> None:
    """Put the process that chooses a register's next value where the register takes it."""
    read, driven = reads(module), drivers(module)
    gone: set[int] = set()
    for item in module.items:
        if not isinstance(item, Process) or not item.edges or len(item.body) != 1 or (
                not isinstance(item.body[0], Set)):
            continue
        target, value = item.body[0].target, item.body[0].value.value
        if target.kind != "name" or value.kind != "name" or not helper(value.word) or read[value.word] != 1:
            continue
        sources = {id(each): each for each, _ in driven.get(value.word, [])}
        source = next(iter(sources.values()), None)
        if len(sources) != 1 or not isinstance(source, Process) or source.edges or (
                {each.target.word for each in source.sets()} != {value.word}) or (
                module.bits(target) != module.bits(value)):
            continue
        count = next((n for n, each in enumerate(source.body) if not isinstance(each, Set)), len(source.body))
        first = [each.target for each in source.body[:count]]
        if not all(each.kind in ("name", "part") for each in first) or (
                sum(map(module.bits, first)) != module.bits(target)):
            continue
        body = [each for each in source.body[:count] if each.value.value != (
            Expression(each.target.kind, target.word, (), each.target.high, each.target.low))] + source.body[count:]
        if not body:
            continue
        for each in (each for statement in body for each in statement.sets()):
            each.target = Expression(each.target.kind, target.word, each.target.args, each.target.high, each.target.low)
            each.sign = "<="
        item.body = body
        gone.add(id(source))
        del module.declared[value.word]
    module.items = [item for item in module.items if id(item) not in gone]


def neat(module: Module) -> None:
    """Neighbouring bits in braces as the part or the name that they are, and numbers as one number."""
    change(module, partial(_neat, module.declared))


def _neat(declared, of):
    """Of one pair of braces; None of all else."""
    if of.kind != "{}":
        return None
    found: list[Expression] = []
    for each in of.args:
        each = replaced(each, partial(_neat, declared))
        if each.kind == "name" and each.word in declared and not declared[each.word].words:
            each = Expression("part", each.word, (), declared[each.word].bits - 1, 0)
        last = found[-1] if found else None
        if last and (last.kind, each.kind, last.word) == ("part", "part", each.word) and last.low == each.high + 1:
            found[-1] = Expression("part", each.word, (), last.high, each.low)
        elif last and _HEX.match(last.word) and _HEX.match(each.word) and last.kind == each.kind == "number":
            found[-1] = _number(last.word, each.word)
        else:
            found.append(each)
    found = [Expression("name", each.word) if each.kind == "part" and (each.high, each.low) == (
        declared[each.word].bits - 1, 0) else each for each in found]
    return found[0] if len(found) == 1 and found[0].kind in ("name", "part", "number") else together(found)


def _number(first, second):
    """Two numbers together."""
    (high, left), (low, right) = (word.split("'h") for word in (first, second))
    value, bits = int(left, 16) << int(low) | int(right, 16), int(high) + int(low)
    return Expression("number", f"{bits}'h{value:0{-(-bits // 4)}x}")


def gathered(module: Module) -> None:
    """Bits of a value that are assigned one by one, and are only names of others, in one assignment."""
    for name, sources in drivers(module).items():
        items = [item for item, _ in sources]
        if len(items) < 2 or not all(isinstance(item, Assign) and item.target.kind == "part"
                                     and item.value.value.kind in PLAIN
                                     and module.bits(item.value.value) == module.bits(item.target)
                                     and all(each.word != name for each in item.value.value.names())
                                     for item in items):
            continue
        parts = sorted(items, key=lambda item: -item.target.high)
        if sum(item.target.high - item.target.low + 1 for item in parts) != module.declared[name].bits:
            continue
        first = items[0]
        first.target = Expression("name", name)
        first.value = Slot(together(item.value.value for item in parts), module.declared[name].bits)
        module.items = [item for item in module.items if item is first or not any(item is each for each in parts)]


def cut(of: Expression, high: int, low: int) -> Expression:
    """Bits of a name or of a part."""
    base = 0 if of.kind == "name" else of.low
    return Expression("part", of.word, (), base + high, base + low)


def named(module: Module) -> None:
    """What has a name and a number has the name alone, and so have its bits."""
    renamed(module, _aliases(module))
    driven = drivers(module)
    put = {item.target.word: item.value.value for item in module.items
           if isinstance(item, Assign) and item.target.kind == "name" and helper(item.target.word)
           and len(driven[item.target.word]) == 1 and item.value.value.kind in ("name", "part", "number")
           and module.bits(item.value.value) == module.bits(item.target)}
    chosen = {each.word for value in [*_values(module), *put.values()] for each in value.names() if each.word in put
              and (each.kind == "index" or put[each.word].kind == "number"
                   and (each.kind == "part" or value in put.values()))}
    put = {name: value for name, value in put.items() if name not in chosen}
    shared: dict[str, list[tuple[Expression, str]]] = {}
    own: dict[int, Expression] = {}    # what a name says of a number stays, or other names would say it of one another
    for item in module.items:
        if isinstance(item, Assign) and item.target.kind == "name" and not helper(item.target.word) and (
                item.value.value.kind == "part" and helper(item.value.value.word)) and (
                item.value.value.word not in put and module.bits(item.value.value) == module.bits(item.target)):
            value = item.value.value
            before = shared.setdefault(value.word, [])
            own[id(item)] = _within(value, before) or value
            before.append((value, item.target.word))

    def how(of):
        if of.word in put and of.kind in ("name", "part"):
            value = put[of.word]
            value = value if of.kind == "name" else cut(value, of.high, of.low)
            return how(value) or value
        return _within(of, shared.get(of.word, ())) if of.kind == "part" else None
    change(module, how)
    for item in module.items:
        if id(item) in own:
            item.value.value = own[id(item)]
    module.items = [item for item in module.items if not (isinstance(item, Assign) and item.target.word in put)]
    for name in put:
        del module.declared[name]


def _within(of, shared):
    """A part as the first name that is it, or part of one; ``shared`` has (part, its name). Else None."""
    for part, name in shared:
        if of == part:
            return Expression("name", name)
        if part.low <= of.low <= of.high <= part.high:
            return Expression("part", name, (), of.high - part.low, of.low - part.low)
    return None


def _aliases(module):
    """Number -> the first name that is all of it."""
    driven, found = drivers(module), {}
    for item in list(module.items):
        if isinstance(item, Assign) and item.target.kind == "name" and item.value.value.kind == "name":
            name, value = item.target.word, item.value.value.word
            if not helper(name) and helper(value) and value not in found and value in driven and (
                    module.widths[name] == module.widths[value]):
                found[value] = name
                module.items.remove(item)
    return found


def renamed(module: Module, names: Mapping[str, str]) -> None:
    """Other names, where they are read and where they are set: ``names`` has old -> new."""
    def how(of):
        if of.word not in names or of.kind not in ("name", "part", "index"):
            return None
        return Expression(of.kind, names[of.word], tuple(replaced(each, how) for each in of.args), of.high, of.low)
    for item in module.items:
        for each in [*item.slots(), *(slot for _, slot, out in getattr(item, "pins", ()) if out)]:
            each.value = replaced(each.value, how)
        for each in item.sets():
            each.target = replaced(each.target, how)
    declared, module.declared = module.declared, {}
    for name, entry in declared.items():
        new = names.get(name, name)
        if new in declared and new != name:
            declared[new].kinds |= entry.kinds & {"reg"}
            declared[new].start = declared[new].start or entry.start
        else:
            module.declared[new] = entry
    module.widths = module.measured()


def _other(found, of):
    """What reads another of equal wires."""
    if of.word in found and of.kind in ("name", "part", "index"):
        return Expression(of.kind, found[of.word], tuple(replaced(each, partial(_other, found)) for each in of.args),
                          of.high, of.low)
    return None


def once(module: Module) -> None:
    """What several numbered wires, or wires of one name, compute alike, one of them computes."""
    while True:
        first: dict[Any, str] = {}
        found: dict[str, str] = {}
        driven = drivers(module)
        for item in module.items:
            if isinstance(item, Assign) and item.target.kind == "name" and len(driven[item.target.word]) == 1 and (
                    item.value.value.kind not in PLAIN):
                key = item.value.value, module.declared[item.target.word].bits
                if key in first and (helper(item.target.word) or _AGAIN.fullmatch(item.target.word)):
                    found[item.target.word] = first[key]
                elif key not in first:
                    first[key] = item.target.word
        if not found:
            return
        change(module, partial(_other, found))
        module.items = [item for item in module.items
                        if not (isinstance(item, Assign) and item.target.word in found)]
        for name in found:
            del module.declared[name]
