"""Instructions in order, with the waits that they need.

Whoever emits an instruction says what it reads and writes; which instructions of other units it has to wait for
follows from that.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hbfp.isa.instructions import WAITS, Instruction, Opcode, Unit, Wait
from hbfp.system import Accelerator

from .errors import LoweringError

_UNITS = max(Unit) + 1
_NONE = (0,) * _UNITS


@dataclass(frozen=True)
class Span:
    """Addresses ``start`` to ``stop - 1`` of a memory: words of V, X and P, rows of W, or bytes of DRAM."""
    memory: str
    start: int
    stop: int

    def __contains__(self, other: "Span") -> bool:
        """Whether all addresses of another are of this one."""
        return self.memory == other.memory and self.start <= other.start and other.stop <= self.stop


@dataclass(frozen=True)
class Emission:
    """An instruction to be emitted: what :meth:`Schedule.emit` takes."""
    opcode: Opcode
    values: Mapping[str, int]
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    kind: str = ""


class _Uses:
    """Who wrote each address of a memory last, and who has read it since; pieces of addresses, in order."""

    def __init__(self):
        self.starts, self.pieces = [0], [[_NONE, _NONE]]

    def _cut(self, address):
        """The number of the piece that begins at ``address``."""
        place = bisect_left(self.starts, address)
        if place == len(self.starts) or self.starts[place] != address:
            self.starts.insert(place, address)
            self.pieces.insert(place, list(self.pieces[place - 1]))
        return place

    def before(self, span, write):
        """For each unit, how many instructions must be complete before ``span`` may be read or written."""
        first, last = bisect_right(self.starts, span.start) - 1, bisect_left(self.starts, span.stop)
        need, before = _NONE, _NONE
        for writers, readers in self.pieces[first:last]:
            if writers is not before:                      # as those of the piece before often are
                need, before = merged(need, writers), writers
            if write:
                need = merged(need, readers)
        return need

    def note(self, span, write, mine):
        """An instruction uses a span: ``mine`` has its number in its unit, and 0 for all others."""
        first, last = self._cut(span.start), self._cut(span.stop)
        if write:
            self.starts[first:last], self.pieces[first:last] = [span.start], [[mine, _NONE]]
        else:
            for piece in self.pieces[first:last]:
                piece[1] = merged(piece[1], mine)


def merged(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The larger of two counts for each unit."""
    if a is b or b is _NONE:
        return a
    return b if a is _NONE else tuple(map(max, a, b))


def _with(counts, unit, count):
    """Counts with another one of a unit."""
    return *counts[:unit], count, *counts[unit + 1:]


class Schedule:
    """The instructions of a program.

    Parameters
    ----------
    accelerator : Accelerator
        Whose instructions they are.

    Attributes
    ----------
    instructions : list of Instruction
        All so far, in order, with their waits.
    moved : list of (Span, int)
        Bytes of DRAM that lie further by an argument, and its number.
    kind : str
        What instructions that are emitted are for.
    kinds : list of str
        The same of all so far.
    tape : list of Emission or None
        If there is one, what is emitted goes there, and not yet into the program.
    emitted : list of (int, Emission) or None
        If there is one, the number of each instruction of the program, and what it is from.
    heard : callable or None
        Is told opcode, values and writes of each instruction in the order in which layers emit them.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self.instructions: list[Instruction] = []
        self.moved: list[tuple[Span, int]] = []
        self.tape: list[Emission] | None = None
        self.emitted: list[tuple[int, Emission]] | None = None
        self.heard: Callable[[Opcode, Mapping[str, int], Iterable[Span]], None] | None = None
        self.kind = ""
        self.kinds: list[str] = []
        self._restart()

    def _restart(self):
        """Nothing has been done that anyone has to wait for."""
        self._uses = {name: _Uses() for name in ("V", "X", "W", "P", "DRAM")}
        # For each unit: after each of its instructions, what is known to be complete.
        self._known = [[_NONE] for _ in range(_UNITS)]

    def emit(self, opcode: Opcode, values: Mapping[str, int], reads: Iterable[Span] = (),
             writes: Iterable[Span] = ()) -> None:
        """Append an instruction, and NOPs before it if it needs more waits than it can hold."""
        writes = tuple(writes)
        if self.heard is not None:
            self.heard(opcode, values, writes)
        if self.tape is not None:
            self.tape.append(Emission(opcode, values, tuple(reads), writes, self.kind))
            return
        reads = tuple(reads)
        if self.emitted is not None:
            given = Emission(opcode, values, reads, writes, self.kind)
        unit = Unit(opcode)
        uses = [(span, False) for span in reads] + [(span, True) for span in writes]
        for span, _ in uses:
            if span.memory == "DRAM":
                for place, argument in self.moved:
                    if span in place:
                        values = {**values, "argument": argument}
        need = _NONE
        for span, write in uses:
            need = merged(need, self._uses[span.memory].before(span, write))
        waits = self._waits(unit, need)
        while len(waits) > WAITS:
            self._append(Opcode.NOP, {"unit": int(unit)}, unit, waits[:WAITS])
            waits = waits[WAITS:]
        self._append(opcode, dict(values), unit, waits)
        if self.emitted is not None:
            self.emitted.append((len(self.instructions) - 1, given))
        mine = _with(_NONE, unit, len(self._known[unit]) - 1)
        for span, write in uses:
            self._uses[span.memory].note(span, write, mine)

    @contextmanager
    def aside(self) -> Iterator[list[Emission]]:
        """A list that has what is emitted within, and nobody is told."""
        before, tape = (self.tape, self.heard), list[Emission]()
        self.tape, self.heard = tape, None
        try:
            yield tape
        finally:
            self.tape, self.heard = before

    def replay(self, emissions: Iterable[Emission]) -> None:
        """Append instructions from a tape, of which all have been told."""
        heard, self.heard = self.heard, None
        for each in emissions:
            self.kind = each.kind
            self.emit(each.opcode, each.values, each.reads, each.writes)
        self.heard = heard

    def give_way(self) -> None:
        """Append a YIELD: all before it is complete before all behind it starts."""
        self.instructions.append(Instruction(Opcode.YIELD, {}))
        self.kinds.append("")
        self._restart()

    def halt(self) -> None:
        """Append a HALT; it replaces a YIELD at the end."""
        if self.instructions and self.instructions[-1].opcode == Opcode.YIELD:
            self.instructions.pop()
            self.kinds.pop()
        self.instructions.append(Instruction(Opcode.HALT, {}))
        self.kinds.append("")

    def _waits(self, unit, need):
        """Waits for what is needed, not known, and not implied by another of them."""
        known = self._known[unit][-1]
        missing = [(other, need[other]) for other in range(1, _UNITS) if other != unit and need[other] > known[other]]
        return missing if len(missing) < 2 else [
            (other, count) for other, count in missing
            if not any(self._known[third][number][other] >= count for third, number in missing if third != other)]

    def _append(self, opcode, values, unit, waits):
        self.instructions.append(Instruction(opcode, values, tuple(Wait(Unit(other), count) for other, count in waits)))
        self.kinds.append(self.kind)
        known = self._known[unit][-1]
        for other, count in waits:
            known = merged(known, self._known[other][count])
        self._known[unit].append(_with(known, unit, len(self._known[unit])))


class Ring:
    """A memory that is given out in pieces, one behind the other, and from the start again when it is full.

    Parameters
    ----------
    memory : str
        Its name.
    start, stop : int
        Its first address, and the one behind its last.
    step : int
        Pieces are multiples of this many addresses.
    """

    def __init__(self, memory: str, start: int, stop: int, step: int = 1) -> None:
        self.memory, self.start, self.stop, self.step, self.next = memory, start, stop, step, start
        self._kept: list[Span] = []

    @property
    def size(self) -> int:
        """Addresses in all."""
        return self.stop - self.start

    def take(self, words: int, kept: bool = False) -> Span:
        """The next ``words`` addresses, whose contents are given up; LoweringError if so many are not free.

        With ``kept`` no other piece gets them before :meth:`release`.
        """
        words = -(-words // self.step) * self.step
        for at in (self._free(self.next, words), self._free(self.start, words)):
            if at + words <= self.stop:
                self.next = at + words
                span = Span(self.memory, at, self.next)
                if kept:
                    self._kept.append(span)
                return span
        others = sum(span.stop - span.start for span in self._kept)
        raise LoweringError(f"it needs {words} words of memory {self.memory} "
                            f"{f'beside {others} others, of' if others else 'at a time, not'} {self.size}; "
                            f"larger --{self.memory.lower()}-words would do")

    def two(self, words: int) -> tuple[Span, Span]:
        """The first addresses as two pieces, for use in turns, each filled while the other is still to be read.

        Two that :meth:`take` gives may share addresses, though neither is more than half: what is left behind the first
        may be too little, and what lies before it, too.
        """
        self.next = self.start
        return self.take(words), self.take(words)

    def hold(self, span: Span) -> None:
        """No other piece gets these addresses before :meth:`release`."""
        self._kept.append(span)

    def release(self) -> None:
        """Let all pieces that were kept be given out again."""
        self._kept.clear()

    def anew(self) -> None:
        """The same, and give out pieces from the start."""
        self.release()
        self.next = self.start

    def _free(self, at, words):
        """The first address from ``at`` on at which so many would overlap nothing that is kept."""
        for span in sorted(self._kept, key=lambda span: span.start):
            if at < span.stop and span.start < at + words:
                at = span.stop
        return at
