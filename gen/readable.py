"""Verilog as a person would write it, from what Yosys writes: one operator a line, a number for each.

The logic is the same (``python -m benchmarks.same_logic`` proves it); areas are measured on the other text, since Yosys
and ABC map equal logic to areas that differ by a fifth of a percent with the order in which they meet operators.
"""

import re

from .fold import fold
from .module import Assign, Instance, Module, Process
from .naming import name
from .simplify import clocked, gathered, named, once, targets, without_unread
from .text import CPP_WORDS, PARTLY, RESET, UNREAD, WAKES, WORD, apart, natural, waived

#: What wakes every ``always @*`` at the start, where a module has any.
FLAG = "wakes"


def _read_bits(module):
    """Name -> mask of the bits that something reads; all of an output."""
    found = {name: entry.mask for name, entry in module.declared.items() if "output" in entry.kinds}
    for item in module.items:
        read = [each for slot in item.slots() for each in slot.value.names()]
        read += [name for each in item.sets() for part in targets(each) for index in part.args
                 for name in index.names()]
        for each in read:
            part = -1 if each.kind != "part" else (2 << each.high) - (1 << each.low)
            found[each.word] = found.get(each.word, 0) | part & module.declared[each.word].mask
    return found


def _declarations(module):
    """Declarations by what a linter says of them, the quiet ones first; in each ports, registers, wires."""
    read, groups = _read_bits(module), {(): []}
    set_later = {each.target.word for item in module.items if not isinstance(item, Assign) for each in item.sets()}
    kinds = ("input", "output", "reg", "wire")
    order = sorted(module.declared.items(), key=lambda pair: (
        next(place for place, kind in enumerate(kinds) if kind in pair[1].kinds), natural(pair[0])))
    for word, entry in order:
        bits = read.get(word, 0)
        warnings = (*[RESET] * bool(entry.start and word in set_later), *[UNREAD] * (not bits),
                    *[PARTLY] * (0 < bits < entry.mask), *[WORD] * (word in CPP_WORDS))
        groups.setdefault(warnings, []).extend(entry.lines(word))
    for warnings in sorted(groups):
        if groups[warnings]:
            yield from waived(warnings, groups[warnings])


def written(module: Module) -> str:
    """The text of a module."""
    lines, flag = [f"{module.head};", *_declarations(module)], FLAG
    while flag in module.declared:
        flag += "_"
    if any(isinstance(item, Process) and not item.edges for item in module.items):
        lines += [f"  reg {flag};", *waived([WAKES], [f"  initial {flag} <= 0;"])]
    for item in module.items:
        lines += item.lines(flag) if isinstance(item, Process) else item.lines()
    return "\n".join([*lines, "endmodule"])


def readable(text: str) -> str:
    """Verilog of many modules as Yosys writes it, each as a person would."""
    modules, rest = apart(text, Module)
    for module in modules.values():
        for item in module.items:
            if isinstance(item, Instance):
                outputs = modules[item.module].outputs
                item.pins = [(pin, slot, pin in outputs) for pin, slot, _ in item.pins]
    for module in modules.values():
        for step in (gathered, named, without_unread, clocked, once, without_unread, fold, gathered, name):
            step(module)
    return re.sub(r"^(\w+);$", lambda found: written(modules[found[1]]), rest, flags=re.MULTILINE)
