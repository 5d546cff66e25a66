"""Verilog of many modules as Yosys writes it, changed module by module and written anew.

Yosys numbers what it makes up through all modules of a run, and writes aliases in the order of a hash table. Here
every module's text follows from the module alone. Declarations that a linter warns of stand together, below the reason
and between the lines that tell Verilator.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from .module import Assign, Instance, Module, Process, natural
from .simplify import PLAIN, targets

#: Yosys sorts names as texts: from here on its numbers have equally many digits.
FIRST_NUMBER = 1_000_000_000
#: Words of C++ that are names of ports.
CPP_WORDS = ("interrupt",)
#: Verilator's warning of a declaration -> why it stands.
RESET = "PROCASSINIT", "A value at power-up, beside that after a reset."
UNREAD = "UNUSEDSIGNAL", "Not read here: names of values, and ports that such modules have with other parameters."
PARTLY = "UNUSEDSIGNAL", "Read in part: carries, signs, and fields that are for others."
WORD = "SYMRSVDWORD", "A word of C++, too."
WAKES = "INITIALDLY", "Behind all else of the start, so that every always @* sees a change."
#: What wakes every ``always @*`` at the start, where a module has any. A value at its declaration comes too early for
#: that in SystemVerilog.
FLAG = "wakes"
_CELL = re.compile(r"^( *(?:cell \S+|process|memory.*) \$)(\d+)$", re.MULTILINE)
_MODULE = re.compile(r"^module (\S+?)\(.*?^endmodule$", re.MULTILINE | re.DOTALL)


def waived(warnings: Sequence[tuple[str, str]], lines: Sequence[str]) -> list[str]:
    """Lines of which a linter says this, below the reason."""
    return [*(f"  // {reason}" for _, reason in warnings),
            *(f"  /* verilator lint_off {code} */" for code, _ in warnings), *lines,
            *(f"  /* verilator lint_on {code} */" for code, _ in warnings)]


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
    """Declarations by what a linter says of them, the quiet ones first."""
    read, groups = _read_bits(module), {(): []}
    set_later = {part.word for item in module.items if not isinstance(item, Assign) for each in item.sets()
                 for part in targets(each)}
    for word, entry in module.declared.items():
        bits = read.get(word, 0)
        warnings = (*[RESET] * bool(entry.start and word in set_later), *[UNREAD] * (not bits),
                    *[PARTLY] * (0 < bits < entry.mask), *[WORD] * (word in CPP_WORDS))
        groups.setdefault(warnings, []).extend(entry.lines(word))
    for warnings in sorted(groups):
        if groups[warnings]:
            yield from waived(warnings, groups[warnings])


def in_order(module: Module) -> None:
    """Ports first, then registers, then wires, each by their names; logic, then registers, then parts.

    What only gives a value another name stands behind what computes the value.
    """
    kinds = ("input", "output", "reg", "wire")
    module.declared = dict(sorted(module.declared.items(), key=lambda pair: (
        next(place for place, kind in enumerate(kinds) if kind in pair[1].kinds), natural(pair[0]))))
    place = {each.target.word: number for number, item in enumerate(module.items) if isinstance(item, Assign)
             for each in item.sets()}

    def key(numbered):
        number, item = numbered
        if isinstance(item, Assign) and item.value.value.kind in PLAIN:
            number = max((place[each.word] for each in item.value.value.names() if each.word in place), default=number)
            return 0, number, 1
        return 2 if isinstance(item, Instance) else 1 if isinstance(item, Process) and item.edges else 0, number, 0
    module.items = [item for _, item in sorted(enumerate(module.items), key=key)]


def written(module: Module) -> str:
    """The text of a module."""
    lines, flag = [f"{module.head};", *module.comments, *_declarations(module)], FLAG
    while flag in module.declared:
        flag += "_"
    if any(isinstance(item, Process) and not item.edges for item in module.items):
        lines += [f"  reg {flag};", *waived([WAKES], [f"  initial {flag} <= 0;"])]
    for item in module.items:
        lines += item.lines(flag) if isinstance(item, Process) else item.lines()
    return "\n".join([*lines, "endmodule"])


def taken_apart(text: str) -> dict[str, Module]:
    """Name -> each module of a text."""
    found = {each[1]: Module(each[0]) for each in _MODULE.finditer(text)}
    for module in found.values():
        for item in module.items:
            if isinstance(item, Instance):
                outputs = found[item.module].outputs
                item.pins = [(pin, slot, pin in outputs) for pin, slot, _ in item.pins]
    return found


def in_source_order(rtlil: str) -> str:
    """RTLIL whose cells Yosys writes in the order in which the source has them, and not in that of "10" before "9"."""
    return _CELL.sub(lambda found: f"{found[1]}{int(found[2]):08}", rtlil)


def rewritten(text: str, steps: Iterable[Callable[[Module], None]]) -> str:
    """Verilog of many modules as Yosys writes it, after steps that change each of them."""
    modules = taken_apart(text)
    for module in modules.values():
        for step in steps:
            step(module)
    return _MODULE.sub(lambda found: written(modules[found[1]]), text)
