"""Statements inside processes: read as Yosys writes them, and written as a person would."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .expression import Expression, read, show

_SET = re.compile(r"(\\\S+ (?:\[.*?\])*|\w[\w$]*(?:\[.*?\])*|\{[^=]*\}) *(<?=) (.*);$")
_IF = re.compile(r"(?:end )?(?:else )?if \((.*)\)( begin)?$")
_CASE = re.compile(r"casez? \((.*)\)$")
#: Columns that a statement on one line with its condition may take.
COLUMNS = 110


@dataclass
class Slot:
    """A place for an expression: what stands there, and the bits of what takes it, None if it stands for itself."""
    value: Expression
    around: int | None = None


@dataclass
class Set:
    """``target = value`` or, in a clocked process, ``target <= value``."""
    target: Expression
    sign: str
    value: Slot

    def slots(self) -> Iterator[Slot]:
        """What it reads, index of its target aside."""
        yield self.value

    def sets(self) -> "Iterator[Set]":
        """Assignments inside."""
        yield self

    def lines(self, indent: str) -> Iterator[str]:
        """Its text."""
        yield f"{indent}{show(self.target)} {self.sign} {show(self.value.value)};"


@dataclass
class Choice:
    """``if``, ``else if``, ``else`` (whose condition is None), or the cases of a ``casez``.

    Attributes
    ----------
    subject : Slot or None
        Of a ``casez``.
    branches : list of (Slot, str or None, list)
        Condition or label, and statements.
    whole : bool
        Whether Yosys says that the cases are all that there are.
    """
    subject: Slot | None
    branches: list[tuple[Any, list[Any]]] = field(default_factory=list)
    whole: bool = False

    def slots(self) -> Iterator[Slot]:
        """What it reads."""
        if self.subject:
            yield self.subject
        for condition, inside in self.branches:
            if isinstance(condition, Slot):
                yield condition
            for each in inside:
                yield from each.slots()

    def sets(self) -> Iterator[Set]:
        """Assignments inside."""
        for _, inside in self.branches:
            for each in inside:
                yield from each.sets()

    def lines(self, indent: str) -> Iterator[str]:
        """Its text; a single assignment stands behind its condition."""
        if self.subject:
            if self.whole:
                yield f"{indent}(* full_case = 32'd1 *)"
            yield f"{indent}casez ({show(self.subject.value)})"
            for label, inside in self.branches:
                head = f"{indent}  {label}:"
                if short := f"{head} ;" if not inside else _short(head, inside):
                    yield short
                    continue
                yield f"{head} begin"
                for each in inside:
                    yield from each.lines(f"{indent}    ")
                yield f"{indent}  end"
            if not self.whole and not any(label == "default" for label, _ in self.branches):
                yield f"{indent}  default: ;"
            yield f"{indent}endcase"
            return
        if self.whole and self.branches[-1][0] is not None:
            yield f"{indent}(* full_case = 32'd1 *)"
        heads = [f"if ({show(condition.value)})" if condition else "" for condition, _ in self.branches]
        heads = [" ".join(filter(None, ("else" if number else "", head))) for number, head in enumerate(heads)]
        short = [_short(f"{indent}{head}", inside) for head, (_, inside) in zip(heads, self.branches, strict=True)]
        if all(short) and self.branches[-1][1]:
            yield from short
            return
        for number, (head, (_, inside)) in enumerate(zip(heads, self.branches, strict=True)):
            yield f"{indent}{'end ' if number else ''}{head} begin"
            for each in inside:
                yield from each.lines(f"{indent}  ")
        yield f"{indent}end"


def _short(head, inside):
    """A head with its only assignment behind it, where that fits in a line; else None."""
    if not inside:
        return f"{head} begin end"
    if len(inside) == 1 and isinstance(inside[0], Set):
        line = f"{head} {next(inside[0].lines(''))}"
        return line if len(line) <= COLUMNS else None
    return None


class Reader:
    """Reads the lines of one process, without their indents.

    Parameters
    ----------
    lines : list of str
    around : callable
        From a target to its bits.
    """

    def __init__(self, lines: Iterable[str], around: Callable[[Expression], int]) -> None:
        self.lines = [line.strip() for line in lines if line.strip() != "/* empty */;"]
        self.around, self.place = around, 0

    def block(self, inner: bool = False) -> list[Any]:
        """Statements to the last line; of an inner block, up to its ``end``."""
        found: list[Any] = []
        whole = False
        while self.place < len(self.lines) and not (inner and self.lines[self.place].split(" ", 1)[0] == "end"):
            line = self.lines[self.place]
            if line.startswith("(*"):
                whole = True
                self.place += 1
                continue
            if line == "begin":
                self.place += 1
                found += self.block(inner=True)
                self.place += 1
            else:
                found += self.statement(line, whole)
            whole = False
        return found

    def statement(self, line: str, whole: bool) -> list[Any]:
        """The statement that begins with ``line``; assignments to parts side by side are one each."""
        if case := _CASE.match(line):
            return [self.cases(case[1], whole)]
        if _IF.match(line):
            return [self.choice(whole)]
        self.place += 1
        return self.assignments(line)

    def assignments(self, line: str) -> list[Set]:
        """An assignment; of ``{ a, b } = { c, d };`` one for each part."""
        parts = _SET.match(line)
        if not parts:
            raise ValueError(f"No statement: {line!r}")
        target, value = read(parts[1]), read(parts[3])
        targets, values = ([target], [value]) if target.kind != "{}" else (target.args, value.args)
        words = {each.word for each in targets}
        if len(targets) > 1 and ([*map(self.around, targets)] != [*map(self.around, values)]
                                 or any(each.word in words for each in value.names())):
            raise ValueError(f"No statement: {line!r}")
        return [Set(each, parts[2], Slot(inner, self.around(each)))
                for each, inner in zip(targets, values, strict=True)]

    def choice(self, whole: bool) -> Choice:
        """``if`` and what belongs to it."""
        found = Choice(None, [], whole)
        while True:
            line = self.lines[self.place]
            head = _IF.match(line)
            if not head and line != "end else begin":
                raise ValueError(f"No branch: {line!r}")
            condition = Slot(read(head[1])) if head else None
            self.place += 1
            if head and not head[2]:
                found.branches.append((condition, self.assignments(self.lines[self.place])))
                self.place += 1
                return found
            found.branches.append((condition, self.block(inner=True)))
            if self.lines[self.place] == "end":
                self.place += 1
                return found

    def cases(self, subject: str, whole: bool) -> Choice:
        """A ``casez``."""
        found = Choice(Slot(read(subject)), [], whole)
        self.place += 1
        while self.lines[self.place] != "endcase":
            label, rest = self.lines[self.place].split(":", 1)
            self.place += 1
            if rest.strip() == ";":
                found.branches.append((label, []))
                continue
            inside = []
            if self.lines[self.place] == "begin":
                self.place += 1
                inside = self.block(inner=True)
                self.place += 1
            elif not re.match(r"[\w', ?]+:|endcase$", self.lines[self.place]):
                inside = self.block_of_one()
            found.branches.append((label, inside))
        self.place += 1
        return found

    def block_of_one(self) -> list[Any]:
        """Statements up to the next label."""
        found: list[Any] = []
        while not re.match(r"[\w', ?]+: *;?$|endcase$", self.lines[self.place]):
            line, whole = self.lines[self.place], False
            if line.startswith("(*"):
                whole, self.place = True, self.place + 1
                line = self.lines[self.place]
            found += self.statement(line, whole)
        return found
