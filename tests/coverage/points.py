"""What Verilator counts of a text, point by point, and what of it nothing can reach."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cosim.simulate.verilator import TOP

#: What a point is: a line of a case or a condition of its own, a branch of a condition, a bit that rises or falls.
KINDS = LINE, BRANCH, TOGGLE = "line", "branch", "toggle"


class Point(NamedTuple):
    """A place in a module; ``what`` tells branches of a line from each other, and says which bit rises or falls.

    A line is counted from that of the module's name, 0, so that a module is the same wherever it stands.
    """
    kind: str
    module: str
    line: int
    column: int
    what: str

    @property
    def bit(self) -> tuple[str, int]:
        """The name and the number of a bit that rises or falls; of a memory, of any of its words."""
        name, _, places = self.what.split(":")[0].partition("[")
        return name, int(places.rstrip("]").split("[")[-1]) if places else 0


@dataclass(frozen=True)
class Reason:
    """Points that nothing can reach.

    Attributes
    ----------
    name : str
        A word.
    why : str
        One line for people.
    modules : str
        Expression for the whole name of the module.
    text : str
        Expression that is searched for in the line of the text.
    kinds : tuple of str
        Of :data:`KINDS`.
    what : str
        Expression for the whole of :attr:`Point.what`; of a bit that rises or falls, for its name.
    least, period : int
        Of bits, the number of the first, and after how many their numbers begin again; 0: they do not.
    """
    name: str
    why: str
    modules: str = ".*"
    text: str = ""
    kinds: tuple[str, ...] = KINDS
    what: str = ".*"
    least: int = 0
    period: int = 0

    def covers(self, point: Point, line: str) -> bool:
        """Whether it is the reason of a point, whose line of the text is ``line``."""
        if point.kind not in self.kinds:
            return False
        what, bit = point.bit if point.kind == TOGGLE else (point.what, 0)
        return ((bit % self.period if self.period else bit) >= self.least and re.fullmatch(self.what, what) is not None
                and re.fullmatch(self.modules, point.module) is not None and re.search(self.text, line) is not None)


def modules(text: str, top: str) -> dict[str, tuple[int, list[str]]]:
    """Of each module its line in a text, from 1 on, and its lines; the top has the name that Verilator gives it."""
    found, lines = {}, text.splitlines()
    for number, line in enumerate(lines):
        if name := re.match(r"module (\w+)", line):
            end = lines.index("endmodule", number)
            found[TOP if name[1] == top else name[1]] = number + 1, lines[number:end]
    return found


def read(paths: Iterable[Path], starts: Mapping[str, int], top: str) -> Counter[Point]:
    """How often each point was reached, all instances of a module and all files together.

    ``starts`` has the lines of modules in the text that was counted; its top is called ``top``.
    """
    counts: Counter[bytes] = Counter()    # all files say the same points
    for path in paths:
        for text in path.read_bytes().splitlines():
            if text.startswith(b"C '"):
                head, _, count = text.rpartition(b"' ")
                counts[head] += int(count)
    found: Counter[Point] = Counter()
    for head, reached in counts.items():
        fields = dict(part.split(b"\x02", 1) for part in head[3:].split(b"\x01")[1:])
        module = fields[b"page"].decode().split("/")[-1]
        point = Point(fields[b"t"].decode(), top if module == TOP else module,
                      int(fields[b"l"]) - starts[module], int(fields[b"n"]),
                      fields[b"o"].decode().replace("___05F", "__"))    # as Verilator writes the latter
        found[point] += reached
    return found


@dataclass(frozen=True)
class Covered:
    """Points of one kind: all that there are, those that were reached, and those that nothing can reach."""
    points: int
    reached: int
    excluded: int

    @property
    def share(self) -> float:
        """Of those that can be reached."""
        return self.reached / (self.points - self.excluded)


#: Of bits that are constant in the netlist.
CONSTANT = Reason("constant", "constant in the netlist, whatever its inputs are", kinds=(TOGGLE,))


def covered(points: Counter[Point], text: Mapping[str, list[str]], reasons: list[Reason],
            constant: Collection[tuple[str, str, int]] = ()) -> tuple[dict[str, Covered], list[Point], Counter[Reason]]:
    """By kind what was reached; the points that were not; how many points each reason left out.

    ``text`` has the lines of each module, ``constant`` the module, name and number of bits that are. What was reached
    is never left out; RuntimeError if a bit that is constant has risen and fallen.
    """
    total, reached, left = Counter(point.kind for point in points), Counter(), Counter()
    missing, used = [], Counter()
    first: set[tuple[str, str]] = set()    # constants that are there after the first moment
    for point, count in points.items():
        kept = point.kind == TOGGLE and (point.module, *point.bit) in constant
        if count:
            reached[point.kind] += 1
            if kept and (bit := (point.module, point.what.split(":")[0])) in first:
                raise RuntimeError(f"{' '.join(bit)} is constant in the netlist, and has risen and fallen")
            first |= {bit} if kept else set()
            continue
        reason = CONSTANT if kept else next(
            (each for each in reasons if each.covers(point, text[point.module][point.line])), None)
        if reason is None:
            missing.append(point)
        else:
            left[point.kind] += 1
            used[reason] += 1
    return ({kind: Covered(total[kind], reached[kind], left[kind]) for kind in KINDS if total[kind]}, sorted(missing),
            used)
