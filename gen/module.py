"""A module's text, taken apart: declarations, assignments, processes and instances."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .expression import Expression, read, show, width, written
from .statements import Reader, Set, Slot

#: Names that Yosys makes up, numbered through all modules of a run.
_MADE_UP = re.compile(r"\$auto\$[\w.]+:\d+:\w+\$1\d{9}\b")
_DECLARATION = re.compile(r"  (input|output|wire|reg) (?:\[(\d+):0\] )?(?:\\(\S+) |(\w+))(?: \[(\d+):0\])?"
                          r"(?: += (.*?))? ?;")
_ATTRIBUTE = re.compile(r"  \(\* (.*) \*\)$")
_INSTANCE = re.compile(r"  (\w+) (\\\S+ |\w+) *\($")
_PIN = re.compile(r"    \.(?:\\(\S+) |(\w+))\((.*)\),?$")
#: An assignment that computes nothing.
_ALIAS = re.compile(r"  assign .* = (?:\\\S+ |\d+'[bdh]\w+|[\w$]+|[{}\[\]:, ])+;$")
#: What starts every ``always @*``.
_WAKES = re.compile(r"\\(\$auto\$verilog_backend\.\S+) ")


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers inside a text by their value."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


@dataclass
class Declaration:
    """One name of a module.

    Attributes
    ----------
    kinds : set of str
        ``input``, ``output``, ``wire`` and ``reg``.
    bits : int
        Its bits; of a memory those of a word.
    words : int
        Of a memory; 0: it is none.
    start : str
        Its value at power-up, empty if it has none.
    notes : list of str
        Attributes.
    """
    kinds: set[str] = field(default_factory=set)
    bits: int = 1
    words: int = 0
    start: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def mask(self) -> int:
        """A bit for each of its bits; a memory counts as one."""
        return 1 if self.words else (1 << self.bits) - 1

    def lines(self, name: str) -> Iterator[str]:
        """Its text."""
        yield from (f"  (* {note} *)" for note in self.notes)
        kind = [*(kind for kind in ("input", "output") if kind in self.kinds), *["reg"] * ("reg" in self.kinds)]
        bits = f"[{self.bits - 1}:0] " if self.bits > 1 else ""
        words = f" [{self.words - 1}:0]" if self.words else ""
        start = f" = {self.start}" if self.start else ""
        yield f"  {' '.join(kind or ['wire'])} {bits}{written(name)}{words}{start};"


@dataclass
class Assign:
    """``assign target = value``."""
    target: Expression
    value: Slot

    def slots(self) -> Iterator[Slot]:
        """What it reads."""
        yield self.value

    def sets(self) -> Iterator["Assign"]:
        """What it sets."""
        yield self

    def lines(self) -> Iterator[str]:
        """Its text."""
        yield f"  assign {show(self.target)} = {show(self.value.value)};"


@dataclass
class Process:
    """``always @(edges)``, each ``posedge`` or ``negedge`` and of what; ``always @*`` where there is none."""
    edges: list[tuple[str, Slot]]
    body: list[Any]

    def slots(self) -> Iterator[Slot]:
        """What it reads."""
        yield from (slot for _, slot in self.edges)
        for each in self.body:
            yield from each.slots()

    def sets(self) -> Iterator[Set]:
        """What it sets."""
        for each in self.body:
            yield from each.sets()

    def lines(self, wakes: str = "wakes") -> Iterator[str]:
        """Its text; ``wakes`` is read by what has no edge, so that it starts."""
        edges = ", ".join(f"{word} {show(slot.value)}" for word, slot in self.edges)
        head = f"  always @({edges})" if edges else "  always @*"
        inside = [line for each in self.body for line in each.lines("    ")]
        if not self.edges:
            inside.insert(0, f"    if ({wakes}) begin end")
        if len(inside) == 1 and len(head) + len(inside[0]) <= 110:
            yield f"{head} {inside[0].lstrip()}"
            return
        yield f"{head} begin"
        yield from inside
        yield "  end"


@dataclass
class Instance:
    """A part: pins are (name, :class:`Slot`, whether it is an output)."""
    module: str
    name: str
    pins: list[tuple[str, Slot, bool]]

    def slots(self) -> Iterator[Slot]:
        """What it reads."""
        for _, slot, out in self.pins:
            if not out:
                yield slot

    def sets(self) -> Iterator[Set]:
        """What it sets."""
        for _, slot, out in self.pins:
            if out:
                yield from (Set(each, "=", Slot(each)) for each in slot.value.names())

    def lines(self) -> Iterator[str]:
        """Its text."""
        yield f"  {self.module} {written(self.name)} ("
        for number, (pin, slot, _) in enumerate(self.pins):
            yield f"    .{written(pin)}({show(slot.value)}){',' * (number < len(self.pins) - 1)}"
        yield "  );"


class Module:
    """A module's text, taken apart.

    Parameters
    ----------
    text : str
        From ``module`` to ``endmodule``, as Yosys writes it.

    Attributes
    ----------
    head : str
        The first line, without its semicolon.
    declared : dict of str to Declaration
    items : list of Assign, Process and Instance
    comments : list of str
        Lines below the first.
    """

    def __init__(self, text: str) -> None:
        flag, numbers = _WAKES.search(text), dict[str, int]()
        self._flag = flag[1] if flag else ""
        text = _MADE_UP.sub(lambda found: found[0] if found[0] == self._flag else (
            f"$auto${numbers.setdefault(found[0], len(numbers))}"), text)
        self.head, rest = text.split(";\n", 1)
        self.declared: dict[str, Declaration] = {}
        self.items: list[Any] = []
        self.comments: list[str] = []
        lines = [line for line in rest.rstrip().split("\n")[:-1] if line.strip()]
        place = 0
        notes: list[str] = []
        logic: list[str] = []
        while place < len(lines):
            line = lines[place]
            place += 1
            if found := _ATTRIBUTE.match(line):
                notes.append(found[1])
            elif found := _DECLARATION.match(line):
                self._declare(found, notes)
                notes = []
            else:
                logic.append(line)
                notes = []
        self.widths = self.measured()
        self._gather(logic)

    def _declare(self, found, notes):
        kind, high, escaped, plain, words, start = found.groups()
        if escaped and escaped == self._flag:
            return
        entry = self.declared.setdefault(escaped or plain, Declaration())
        entry.kinds.add(kind)
        entry.bits, entry.words = int(high or 0) + 1, 0 if words is None else int(words) + 1
        entry.start = entry.start or start or ""
        entry.notes += [note for note in notes if not note.startswith("init = ") and note not in entry.notes]

    def measured(self) -> dict[str, int]:
        """Name -> bits, and ``name[]`` -> bits of a word of a memory."""
        return {name: entry.bits for name, entry in self.declared.items()} | {
            f"{name}[]": entry.bits for name, entry in self.declared.items() if entry.words}

    @property
    def outputs(self) -> set[str]:
        """Names of its outputs."""
        return {name for name, entry in self.declared.items() if "output" in entry.kinds}

    def bits(self, of: Expression) -> int:
        """Width of an expression that stands for itself."""
        return width(of, self.widths)

    def _gather(self, lines):
        place = first = len(lines)
        while first and _ALIAS.match(lines[first - 1]):    # Yosys writes them in the order of a hash table
            first -= 1
        lines[first:], place = sorted(lines[first:], key=natural), 0
        while place < len(lines):
            line = lines[place]
            place += 1
            if line.startswith("  assign "):
                left, right = line[9:-1].split(" = ", 1)
                target = read(left)
                self.items.append(Assign(target, Slot(read(right), self.bits(target))))
            elif found := re.match(r"  always @(\*|\((.*?)\))( begin)?$", line):
                first = place
                if found[3]:
                    while lines[place] != "  end":
                        place += 1
                    inside = lines[first:place]
                    place += 1
                else:
                    while place < len(lines) and lines[place].startswith("    "):
                        place += 1
                    inside = lines[first:place]
                inside = [each for each in inside if not each.endswith(" begin end")]
                edges = [each.split(" ", 1) for each in re.split(", | or ", found[2] or "") if each]
                body = Reader(inside, self.bits).block()
                self.items.append(Process([(word, Slot(read(of))) for word, of in edges], body))
            elif found := _INSTANCE.match(line):
                pins = []
                while pin := _PIN.match(lines[place]):
                    pins.append((pin[1] or pin[2], Slot(read(pin[3])), False))
                    place += 1
                place += 1
                self.items.append(Instance(found[1], found[2].strip("\\ "), pins))
            else:
                raise ValueError(f"Not known: {line!r}")
