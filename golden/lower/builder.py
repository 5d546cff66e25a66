"""What all layers need of a program in the making: memories given out, and tensors moved between DRAM and V.

Addresses and steps are in elements of four bytes in DRAM and in words of all lanes in V, unless a line says otherwise.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from hbfp.golden.spec.vector import VectorInstruction
from hbfp.isa.instructions import Memory, Opcode
from hbfp.system import FUNCTIONS, Accelerator

from .errors import LoweringError
from .held import Held
from .memory import Dram, Value
from .schedule import Ring, Schedule, Span

#: Most that a count of a load or store can be.
_COUNT = 65535
#: The part of V in which layers of a job keep words one before the other.
_KEPT = 16
#: Words of one and the same number that lie in DRAM, to fill V from.
_FILL = 64
Loop = tuple[int, int, int]


class Builder:
    """A program in the making.

    Parameters
    ----------
    accelerator : Accelerator
        The accelerator that will run the program.
    filled : bool
        As of :class:`~golden.lower.memory.Dram`.
    holds : bool
        Whether what V has of DRAM is not loaded again.

    Attributes
    ----------
    schedule : Schedule
        The instructions so far.
    dram : Dram
        What lies in DRAM so far.
    v, x, w : Ring
        Memories, given out piece by piece. A piece is good until the ring has come round.
    waiting : list of Sum or None
        Sums that models of a job do together at the end of a turn; None where they do none.
    """

    def __init__(self, accelerator: Accelerator, filled: bool = True, holds: bool = False) -> None:
        self.accelerator, self.lanes, self.beat = accelerator, accelerator.lanes, accelerator.beat
        self.schedule, self.dram = Schedule(accelerator), Dram(accelerator, filled)
        self._v_kept, self._v_behind, self._v_top = 0, 0, accelerator.v_words
        self.v = Ring("V", 0, accelerator.v_words)
        self.x = Ring("X", 0, accelerator.x_pieces, accelerator.x_line if accelerator.spread > 1 else 1)
        self.w = Ring("W", 0, accelerator.w_words, accelerator.core.rows)
        self._p = Ring("P", 0, accelerator.p_words, self.lanes // 2)
        self._programs: dict[tuple[int, ...], Span] = {}
        self._fills: dict[str, int] = {}
        self.waiting: list[Any] | None = None
        self.held = Held(accelerator) if holds else None
        self.schedule.heard = self.held.note if self.held is not None else None

    # --- Memory -----------------------------------------------------------------------------------

    def keep(self, words: int) -> Span:
        """Take words at the end of V that stay until :meth:`forget`; the ring gives out the others.

        In a job those of a layer lie before those of the layer of another model, which need not be done with its own.

        Raises
        ------
        LoweringError
            If V has not so many.
        """
        if words > self.v.size and self._v_behind and not self._v_kept:
            self._v_behind, self.v.stop = 0, self._v_top
        if words > self.v.size:
            raise LoweringError(f"it needs {words} words of memory V that stay, beside {self._v_kept} others, of "
                                f"{self._v_top}; larger --v-words would do")
        self._v_kept += words
        stop = self._v_top - self._v_behind - self._v_kept
        self.v.stop = stop
        self.v.next = min(self.v.next, stop)
        return Span("V", stop, stop + words)

    def forget(self) -> None:
        """Give back what was kept."""
        if self.waiting is not None and self._v_kept:
            behind = self._v_behind + self._v_kept
            self._v_behind = behind if behind < self.accelerator.v_words // _KEPT else 0
        self._v_kept, self.v.stop = 0, self._v_top

    def confine(self, first: int, stop: int) -> None:
        """Give out words ``first`` to ``stop - 1`` of V alone, from here on."""
        self._v_kept, self._v_behind, self._v_top, self.v = 0, 0, stop, Ring("V", first, stop)

    def end_layer(self) -> None:
        """Give back what was kept for a layer, once all its instructions are there."""
        self.forget()

    def program(self, instructions: Sequence[VectorInstruction]) -> Span:
        """Where in P a program of the vector unit is; loads it if it is not there.

        Raises
        ------
        LoweringError
            If it has functions that the vector unit lacks.
        """
        has, needed = self.accelerator.functions, {each.post for each in instructions} & set(FUNCTIONS)
        if lacking := [name for name in FUNCTIONS if name in needed - set(has)]:
            would = ",".join(name for name in FUNCTIONS if name in needed | set(has))
            raise LoweringError(f"its program has {' and '.join(lacking)}, which the vector unit lacks; --functions "
                                f"{would} would do")
        words = tuple(each.encode() for each in instructions)
        if words in self._programs:
            return self._programs[words]
        span = self._p.take(len(words))
        self._programs = {known: at for known, at in self._programs.items()
                          if at.stop <= span.start or at.start >= span.stop}
        data = np.zeros(span.stop - span.start, np.uint64)
        data[:len(words)] = words
        address = self.dram.take(data.tobytes())
        beats = len(data) // (self.lanes // 2)
        self._transfer(Opcode.LOAD, {"memory": Memory.P, "offset": address, "count0": beats,
                                     "base": span.start // (self.lanes // 2)},
                       [Span("DRAM", address, address + len(data) * 8)], [span])
        self._programs[words] = span
        return span

    def _transfer(self, opcode, values, reads, writes):
        values = {"count0": 1, "count1": 1, "count2": 1} | values
        self.schedule.emit(opcode, values, reads, writes)

    # --- Between DRAM and V -----------------------------------------------------------------------

    def fill(self, target: int, words: int, number: float = 0.0, lines: int = 1, pitch: int = 0) -> None:
        """Load one number into all lanes of ``words`` words in each of ``lines``, ``pitch`` words apart in V."""
        key = float(number).hex()                              # -0 is another number than 0
        if key not in self._fills:
            self._fills[key] = self.dram.take(np.full(_FILL * self.lanes, number, np.float32).tobytes())
        offset = self._fills[key]
        for first, count, size in ((0, words // _FILL, _FILL), (words // _FILL * _FILL, 1, words % _FILL)):
            if count and size:
                base = target + first
                self._transfer(Opcode.LOAD, {"memory": Memory.V, "offset": offset, "count0": size, "count1": count,
                                             "buffer1": size, "count2": lines, "buffer2": pitch, "base": base},
                               [Span("DRAM", offset, offset + size * self.beat)],
                               [Span("V", base, base + (lines - 1) * pitch + count * size)])

    def load(self, value: Value, outer: Sequence[int], inner: int, target: int, words: int, *, skip: int = 0,
             rows: Sequence[tuple[int, int]] | None = None) -> None:
        """Load rows along dimension ``inner`` to V, ``words`` words each, from ``target`` on, filled up with zeros.

        Parameters
        ----------
        outer : sequence of int
            The other dimensions, outermost first: the order of the rows.
        skip : int
            Elements from the value's first to the first that is loaded.
        rows : sequence of (size, stride), optional
            Loops over the rows, outermost first, in place of the dimensions ``outer``.
        """
        dims = value.dims()
        size, stride = dims[inner]
        lines = merged([dims[d] for d in outer] if rows is None else rows)
        needed = -(-size // self.lanes)
        address = value.address + skip
        count = prod(n for n, _ in lines)
        aligned = value.whole_words(inner, self.lanes) and skip % self.lanes == 0 and all(
            step % self.lanes == 0 for _, step in lines)
        if words > needed or not aligned and size % self.lanes:
            self.fill(target, count * words)
        loops = inward(lines, words)
        if aligned:
            if words == needed and lines and lines[-1][1] == words * self.lanes and lines[-1][0] * words <= _COUNT:
                needed, loops = lines[-1][0] * words, loops[1:]
            self._words(address, needed, loops, target)
            return
        loops = [(n, step, buffer * self.lanes) for n, step, buffer in loops]
        whole = size // self.lanes if stride == 1 else 0
        if whole:
            self._runs(address, self.lanes, [(whole, self.lanes, self.lanes), *loops], target * self.lanes)
        if stride == 1 and size % self.lanes:
            self._runs(address + whole * self.lanes, size % self.lanes, loops, (target + whole) * self.lanes)
        if stride != 1:
            self._runs(address, 1, [(size, stride, 1), *loops], target * self.lanes)

    def _words(self, address, beats, loops, target):
        for place, buffer, (one, two) in outermost(loops, 2):
            reach = extent([(beats, self.lanes, 1), one, two], self.lanes, 1)
            at, base = address + place, target + buffer
            self._transfer(Opcode.LOAD, {
                "memory": Memory.V, "offset": 4 * at, "count0": beats, "count1": one[0], "dram1": 4 * one[1],
                "buffer1": one[2], "count2": two[0], "dram2": 4 * two[1], "buffer2": two[2], "base": base},
                [dram_span(at, reach)], [Span("V", base + reach[2], base + reach[3])])

    def _runs(self, address, run, loops, element):
        for place, buffer, three in outermost(loops, 3):
            at, base = address + place, element + buffer
            reach = extent(three, run, run)
            values = {"memory": Memory.V, "elements": 1, "offset": 4 * at, "base": base, "run": run}
            for n, (count, step, target) in enumerate(three):
                values |= {f"count{n}": count, f"dram{n}": 4 * step, f"buffer{n}": target}
            first, last = (base + reach[2]) // self.lanes, (base + reach[3] - 1) // self.lanes
            self._transfer(Opcode.LOAD, values, [dram_span(at, reach)], [Span("V", first, last + 1)])

    def brought(self, words: int, load: Callable[[int], None], kept: bool = False) -> Span:
        """Words of V with what ``load`` brings to the address that it is given: where they are already, or new ones.

        ``kept`` as of :meth:`Ring.take`.
        """
        found, bring = self._found(words, load)
        if found is not None:
            if kept:
                self.v.hold(found)
            return found
        span = self.v.take(words, kept)
        bring(span.start)
        return span

    def several(self, words: int, loads: Sequence[Callable[[int], None] | None]) -> list[Span]:
        """Pieces of V of so many words that are kept, each :meth:`brought`, or for results where it is None."""
        found = [(None, None) if load is None else self._found(words, load) for load in loads]
        spans = self._beside(words, [there for there, _ in found])
        for (there, bring), span in zip(found, spans, strict=True):
            if bring is not None and span is not there:
                bring(span.start)
        return spans

    def spread(self, words: int, loads: Sequence[Sequence[Callable[[int], None]]]) -> list[tuple[list[Span], int]]:
        """Pieces of V that are kept, for each of ``loads`` one for each load, and how far it is from one to the next.

        They stay where they are already if all are, and lie equally far apart.
        """
        both = [[self._found(words, load) for load in each] for each in loads]
        found, brings = ([[one[place] for one in each] for each in both] for place in range(2))
        apart = [_apart(each, words) for each in found]
        try:
            return self._spread(words, brings, found, apart)
        except LoweringError:
            self.v.anew()
            return self._spread(words, brings, found, [None for _ in loads])

    def _spread(self, words, loads, found, apart):
        """The same; ``apart``: None where they come anew."""
        for spans, step in zip(found, apart, strict=True):
            for span in () if step is None else spans:
                self.v.hold(span)
        anew = [self.v.take(words * len(each), kept=True) if step is None else None
                for each, step in zip(loads, apart, strict=True)]
        made = []
        for each, spans, step, span in zip(loads, found, apart, anew, strict=True):
            if span is not None:
                starts = range(span.start, span.stop, words)[:len(each)]
                spans, step = [Span("V", start, start + words) for start in starts], words
                for load, start in zip(each, starts, strict=True):
                    load(start)
            made.append((spans, step))
        return made

    def converted(self, key: Any) -> Span | None:
        """Where in X or W an operand is that was converted before, in a way that ``key`` says; None where it is not."""
        return None if self.held is None else self.held.kept(key)

    def has_converted(self, key: Any, span: Span, value: Value) -> None:
        """A span of X or W has a value, converted in a way that ``key`` says."""
        if self.held is not None:
            last = sum((size - 1) * stride for size, stride in value.dims())
            self.held.keep(key, span, Span("DRAM", 4 * value.address, 4 * (value.address + last + self.lanes)))

    def brought_other(self, span: Span) -> None:
        """Words of V have what a host chooses, and not what the instructions say that brought them."""
        if self.held is not None:
            self.held.forget(span)

    def _beside(self, words, found):
        """Pieces for those that are not found, kept beside the others, or for all if there is no room between these."""
        try:
            for span in found:
                if span is not None:
                    self.v.hold(span)
            return [self.v.take(words, kept=True) if span is None else span for span in found]
        except LoweringError:
            self.v.anew()
            return [self.v.take(words, kept=True) for _ in found]

    def _found(self, words, load):
        """Where words are that a load brings, None where they are not; and what brings them to an address of V."""
        if self.held is None:
            return None, load
        with self.schedule.aside() as loads:
            load(0)
        return self.held.find(loads, words, self.v), partial(self._bring, loads)

    def _bring(self, loads, start):
        """Emit loads that would bring words to address 0 on, so that they bring them to ``start`` on."""
        for each in loads:
            further = start * (self.lanes if each.values.get("elements") else 1)
            self.schedule.emit(each.opcode, {**each.values, "base": each.values["base"] + further}, each.reads, [
                Span(span.memory, span.start + start, span.stop + start) for span in each.writes])

    def load_words(self, value: Value, first: int, words: int, target: int, *, skip: int = 0,
                   rows: Sequence[tuple[int, int]] | None = None) -> None:
        """Load words ``first`` to ``first + words - 1`` of rows along the last dimension; zeros behind a row's end."""
        inner = len(value.shape) - 1
        lines = value.dims()[:-1] if rows is None else rows
        if first * self.lanes >= value.shape[inner]:
            self.fill(target, prod(n for n, _ in lines) * words)
        else:
            self.load(value.words(inner, first, words, self.lanes), (), inner, target, words, skip=skip, rows=lines)

    def words(self, address: int, count: int, loops: Sequence[Loop], target: int) -> None:
        """Load ``count`` words that follow each other, of each step of loops (how many, step in DRAM, words in V).

        The innermost loop comes first; single words that lie side by side, in DRAM and in V, are one loop less.
        """
        if count == 1 and loops and loops[0][1:] == (self.lanes, 1):
            count, loops = loops[0][0], loops[1:]
        self._words(address, count, loops, target)

    def gather(self, address: int, run: int, loops: Sequence[Loop], element: int) -> None:
        """Load runs of ``run`` numbers from any address to elements of V, from ``element`` on.

        Loops are (count, step in DRAM, elements in V), innermost first.
        """
        for start in range(0, run, self.lanes):
            self._runs(address + start, min(self.lanes, run - start), list(loops), element + start)

    def store(self, source: int, words: int, value: Value, outer: Sequence[int], inner: int, *, skip: int = 0,
              rows: Sequence[tuple[int, int]] | None = None) -> None:
        """Store rows of ``words`` words each from ``source`` in V to rows along ``inner`` of a value; see :meth:`load`.

        Raises
        ------
        LoweringError
            If the numbers of a row would lie apart in DRAM.
        """
        dims = value.dims()
        size, stride = dims[inner]
        lines = merged([dims[d] for d in outer] if rows is None else rows)
        needed = -(-size // self.lanes)
        address, loops = value.address + skip, inward(lines, words)
        aligned = value.whole_words(inner, self.lanes) and skip % self.lanes == 0 and all(
            step % self.lanes == 0 for _, step in lines)
        if aligned:
            if words == needed and lines and lines[-1][1] == words * self.lanes and lines[-1][0] * words <= _COUNT:
                needed, loops = lines[-1][0] * words, loops[1:]
            for place, buffer, (one, two) in outermost(loops, 2):
                self._store(address + place, source + buffer, 0, [(needed, self.lanes, 1), one, two])
            return
        if stride != 1 and size != 1:
            raise LoweringError("it would store numbers that lie apart; along another dimension than the last would do")
        whole = size // self.lanes
        parts = [(0, self.lanes, whole)] if whole else []
        parts += [(whole, size % self.lanes, 1)] if size % self.lanes else []
        for first, run, count in parts:
            for place, buffer, three in outermost([(count, self.lanes, 1), *loops], 3):
                self._store(address + first * self.lanes + place, source + first + buffer, run, three)

    def _store(self, at, base, run, three):
        reach = extent(three, run or self.lanes, 1)
        values = {"elements": int(run > 0), "offset": 4 * at, "base": base, "run": run}
        for n, (count, step, source) in enumerate(three):
            values |= {f"count{n}": count} | ({f"dram{n}": 4 * step, f"buffer{n}": source} if n or run else {})
        self._transfer(Opcode.STORE, values, [Span("V", base + reach[2], base + reach[3])], [dram_span(at, reach)])


def _apart(spans: Sequence[Span | None], words: int) -> int | None:
    """Words from the start of a piece to that of the next if they lie equally far apart, in order or all in one place;
    else None.
    """
    starts = [span.start for span in spans if span is not None]
    steps = {after - before for before, after in zip(starts, starts[1:], strict=False)} or {words}
    even = len(starts) == len(spans) and len(steps) == 1 and (min(steps) >= words or not min(steps))
    return steps.pop() if even else None


def merged(lines: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(size, stride) of nested loops, outermost first, with as few loops as do the same."""
    found: list[tuple[int, int]] = []
    for size, stride in lines:
        if size == 1:
            continue
        if found and found[-1][1] == size * stride and found[-1][0] * size <= _COUNT:
            found[-1] = (found[-1][0] * size, stride)
        else:
            found.append((size, stride))
    return found


def inward(lines: Sequence[tuple[int, int]], words: int) -> list[Loop]:
    """Loops (count, step in DRAM, words in V), innermost first, of rows that follow each other in V."""
    loops, step = [], words
    for size, stride in reversed(lines):
        loops.append((size, stride, step))
        step *= size
    return loops


def outermost(loops: Sequence[Loop], most: int) -> Iterable[tuple[int, int, list[Loop]]]:
    """Cut loops into instructions of ``most`` loops: where each begins, in DRAM and in V, and its loops."""
    inner, places = list(loops[:most]), [(0, 0)]
    inner += [(1, 0, 0)] * (most - len(inner))
    for size, stride, step in loops[most:]:
        places = [(place + n * stride, buffer + n * step) for n in range(size) for place, buffer in places]
    for place, buffer in places:
        yield place, buffer, inner


def extent(loops: Sequence[Loop], wide: int, tall: int) -> tuple[int, int, int, int]:
    """What loops reach, relative to where they begin: first address and one behind the last, in DRAM, then in V.

    Each step moves ``wide`` elements of DRAM and ``tall`` addresses of V.
    """
    low = high = first = last = 0
    for count, step, buffer in loops:
        low, high = low + min(0, (count - 1) * step), high + max(0, (count - 1) * step)
        first, last = first + min(0, (count - 1) * buffer), last + max(0, (count - 1) * buffer)
    return low, high + wide, first, last + tall


def dram_span(address: int, reach: tuple[int, int, int, int]) -> Span:
    """The bytes of DRAM that loops reach, of an address in elements and what :func:`extent` gives."""
    return Span("DRAM", 4 * (address + reach[0]), 4 * (address + reach[1]))
