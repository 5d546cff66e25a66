"""A module's Verilog in an order that follows from the module alone, with a reason for all that linters warn of.

Yosys numbers what it makes up through all modules of a run, and writes aliases in the order of a hash table. Here
numbers start again in each module, and aliases are sorted. Wires without a name that nothing reads are left out.
Declarations that a linter warns of stand together, below the reason and between the lines that tell Verilator.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Yosys sorts names as texts: from here on its numbers have equally many digits.
FIRST_NUMBER = 1_000_000_000
_MADE_UP = re.compile(r"(\$auto\$[\w.]+:\d+:\w+\$)(1\d{9})\b")
_DECLARATION = re.compile(r"  (input|output|wire|reg) (?:\[(\d+):0\] )?(?:\\(\S+) |(\w+))( \[\d+:0\])?(?: += .*)? ?;")
#: What wakes every ``always @*`` at the start. A value at its declaration comes too early for that in SystemVerilog.
_WAKES = re.compile(r"  reg (\\\$auto\$verilog_backend\S+ ) = 0;$")
_ATTRIBUTE = re.compile(r"  \(\* .* \*\)$")
_ASSIGNMENT = re.compile(r"  assign (.*?) = (.*);$")
#: An assignment that computes nothing. What computes stays in Yosys' order: area recipes see it.
_ALIAS = re.compile(r"  assign .* = (?:\\\S+ |\d+'[bdh]\w+|[\w$]+|[{}\[\]:, ])+;$")
_STATEMENT = re.compile(r" +(?:else )?(?:if \((.*?)\) )?(\S.*?) <?= (.*);$")
_INSTANCE = re.compile(r"  (\w+) (?:\\\S+|\w+) +\($")
_PIN = re.compile(r"    \.(?:\\(\S+) |(\w+))\((.*)\),?$")
#: A name, and the bits of it if they are constant.
_NAME = re.compile(r"(?:\\(\S+) |(?<![\w'$])([A-Za-z_][\w$]*))(?:\[(\d+)(?::(\d+))?\])?(\[)?")
_INDEX = re.compile(r"\[([^\]]*[^\]\d:][^\]]*)\]")
_WITHOUT_DEFAULT = re.compile(r"^( +)casez? \(.*\)$")

#: Words of C++ that are names of ports.
CPP_WORDS = ("interrupt",)
#: Verilator's warning of a declaration -> why it stands.
RESET = "PROCASSINIT", "A value at power-up, beside that after a reset."
UNREAD = "UNUSEDSIGNAL", "Not read here: names of values, and ports that such modules have with other parameters."
PARTLY = "UNUSEDSIGNAL", "Read in part: carries, signs, and fields that are for others."
WORD = "SYMRSVDWORD", "A word of C++, too."
WAKES = "INITIALDLY", "Behind all else of the start, so that every always @* sees a change."


@dataclass
class Declaration:
    """One name of a module.

    Attributes
    ----------
    lines : list of str
        Its declaration.
    kinds : set of str
        ``input``, ``output``, ``wire`` and ``reg``.
    bits : int
        A mask of all its bits; a memory counts as one.
    starts : bool
        Whether it has a value at power-up.
    """
    lines: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    bits: int = 1
    starts: bool = False


@dataclass
class Line:
    """A line of logic: what it reads, as (name, mask of bits), and names that it assigns, or sets some other way."""
    text: str
    reads: list
    assigns: tuple = ()
    sets: tuple = ()


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers inside a text by their value."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


class Body:
    """A module's text, taken apart.

    Parameters
    ----------
    text : str
        From ``module`` to ``endmodule``, as Yosys writes it.

    Attributes
    ----------
    declared : dict of str to Declaration
    wakes : list of str
        What starts its combinational processes.
    logic : list of str
        The other lines that declare nothing.
    """

    def __init__(self, text: str) -> None:
        numbers: dict[str, int] = {}
        attributes: list[str] = []
        self.declared: dict[str, Declaration] = {}
        self.wakes: list[str] = []
        self.logic: list[str] = []
        text = _MADE_UP.sub(lambda found: f"{found[1]}{numbers.setdefault(found[0], len(numbers))}", text)
        self.head, rest = text.split(";\n", 1)
        *lines, self.foot = rest.split("\n")
        for line in lines:
            if _ATTRIBUTE.match(line):
                attributes.append(line)
                continue
            if found := _WAKES.match(line):
                line = f"  reg {found[1]};"
                self.wakes = waived([WAKES], [f"  initial {found[1]}<= 0;"])
            if found := _DECLARATION.match(line):
                self._declare(found, [*attributes, line])
            else:
                self.logic += [*attributes, line]
            attributes = []

    def _declare(self, found, lines):
        kind, high, escaped, plain, array = found.groups()
        entry = self.declared.setdefault(escaped or plain, Declaration())
        entry.lines += lines
        entry.kinds.add(kind)
        entry.bits = 1 if array else (2 << int(high or 0)) - 1
        entry.starts |= " = " in lines[-1]

    @property
    def outputs(self) -> set[str]:
        """Names of its outputs."""
        return {name for name, entry in self.declared.items() if "output" in entry.kinds}

    def tidy(self, outputs: Mapping[str, set[str]]) -> str:
        """The text anew; ``outputs`` has those of every module, by its name."""
        lines = self._lines(outputs)
        while True:
            read = self._read(lines)
            dead = {name for name in self.declared if re.fullmatch(r"\$\d+", name) and not read.get(name)}
            kept = [line for line in lines if not (line.assigns and dead.issuperset(line.assigns))]
            for name in dead.difference(*(line.assigns + line.sets for line in kept)):
                del self.declared[name]
            if len(kept) == len(lines):
                break
            lines = kept
        first = len(lines)
        while first and _ALIAS.match(lines[first - 1].text):
            first -= 1
        logic = [line.text for line in lines[:first]] + sorted((line.text for line in lines[first:]), key=natural)
        return "\n".join([f"{self.head};", *self._declarations(read, lines), *self.wakes, *logic, self.foot])

    def _lines(self, outputs):
        """The logic, line by line."""
        result, pins = [], None
        for text in _with_defaults(self.logic):
            if found := _INSTANCE.match(text):
                pins = outputs[found[1]]
                result.append(Line(text, []))
            elif found := _PIN.match(text):
                names = self._names(found[3])
                result.append(Line(text, [], sets=tuple(name for name, _ in names))
                              if (found[1] or found[2]) in pins else Line(text, names))
            elif found := _ASSIGNMENT.match(text):
                result.append(Line(text, self._names(found[2]), assigns=self._written(found[1])))
            elif found := _STATEMENT.match(text):
                reads = [name for part in (found[1], found[3], *_INDEX.findall(found[2])) if part
                         for name in self._names(part)]
                result.append(Line(text, reads, sets=self._written(found[2])))
            else:
                result.append(Line(text, self._names(text)))
        return result

    def _names(self, text):
        """Names in an expression and which of their bits it reads."""
        result = []
        for escaped, plain, high, low, more in _NAME.findall(text):
            entry = self.declared.get(escaped or plain)
            if entry:
                part = -1 if more or not high else (2 << int(high)) - (1 << int(low or high))
                result.append((escaped or plain, part & entry.bits))
        return result

    def _written(self, text):
        return tuple(name for name, _ in self._names(_INDEX.sub("", text)))

    def _read(self, lines):
        """Name -> mask of the bits that something reads; all of an output."""
        result = {name: entry.bits for name, entry in self.declared.items() if "output" in entry.kinds}
        for line in lines:
            for name, bits in line.reads:
                result[name] = result.get(name, 0) | bits
        return result

    def _declarations(self, read, lines):
        """Declarations by what a linter says of them, the quiet ones first."""
        groups, later = {(): []}, {name for line in lines for name in line.sets}
        for name, entry in self.declared.items():
            bits = read.get(name, 0)
            warnings = (*[RESET] * (entry.starts and name in later), *[UNREAD] * (not bits),
                        *[PARTLY] * (0 < bits < entry.bits), *[WORD] * (name in CPP_WORDS))
            groups.setdefault(warnings, []).extend(entry.lines)
        for warnings in sorted(groups):
            yield from waived(warnings, groups[warnings])


def waived(warnings: Sequence[tuple[str, str]], lines: Sequence[str]) -> list[str]:
    """Lines of which a linter says this, below the reason."""
    return [*(f"  // {reason}" for _, reason in warnings),
            *(f"  /* verilator lint_off {code} */" for code, _ in warnings), *lines,
            *(f"  /* verilator lint_on {code} */" for code, _ in warnings)]


def _with_defaults(lines):
    """Cases that leave some values out say so."""
    open_cases, before = [], ""
    for line in lines:
        word = line.split(" ", 1)[0] if not line.startswith(" ") else line.split()[0]
        if word in ("case", "casez"):
            open_cases.append("full_case" in before)
        elif word.startswith("default:"):
            open_cases[-1] = True
        elif word == "endcase" and not open_cases.pop():
            yield line.replace("endcase", "  default: ;")
        before = line
        yield line


def apart(text: str, kind: Callable[[str], Any]) -> tuple[dict[str, Any], str]:
    """Modules by name, each what ``kind`` makes of its text; and the text around, with ``NAME;`` in place of each."""
    found = {}

    def take(module):
        found[module[1]] = kind(module[0])
        return f"{module[1]};"
    rest = re.sub(r"^module (\S+?)\(.*?^endmodule$", take, text, flags=re.MULTILINE | re.DOTALL)
    return found, rest


def tidy(text: str) -> str:
    """Verilog of many modules as Yosys writes it, each made tidy."""
    bodies, rest = apart(text, Body)
    outputs = {name: body.outputs for name, body in bodies.items()}
    return re.sub(r"^(\w+);$", lambda found: bodies[found[1]].tidy(outputs), rest, flags=re.MULTILINE)
