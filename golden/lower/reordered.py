"""A job's instructions in another order: each where the unit that executes it is expected to come to it.

A machine takes instructions in order, and waits where the queue of one unit is full. So where models take turns layer
by layer, all of them wait in layers that keep one unit busy. Here each instruction comes as soon as what it needs is
expected to be there, those first that most of the program still waits for. Results are the same bits
(:mod:`.waits`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import pairwise
from math import prod

import numpy as np

from hbfp.golden.spec.vector import Kind, Reduce, Source, Target, field_values, length_of
from hbfp.isa.instructions import Opcode
from hbfp.isa.vector_words import read
from hbfp.program import Layer, Program

from .rewriting import Rewritten
from .schedule import Emission, Schedule
from .waits import Task, wait

#: Cycles from when a unit is done with an instruction to when another sees it; more of a LOAD, whose words come late.
_SEEN, _COMES = 5, 36
#: Cycles of a word between V and DRAM or the core: others come first at its ports.
_WORD = 2
#: From the begin of a product to its first result; cycles of an instruction of the converter beside its words.
_FIRST, _BETWEEN = 40, 4
#: Cycles in which ports and the bus have so many words.
_SHARE = 16
#: What a VECTOR takes beside its passes, a step on scalars, and a reduction beside its beats.
_EMPTIES, _STEP, _TREE = 12, 6, 8


def reordered(program: Program, emissions: Sequence[tuple[int, Emission]], moved: Schedule
              ) -> tuple[Rewritten, Schedule]:
    """A program in another order.

    Parameters
    ----------
    program : Program
        With NOPs where instructions need more waits than they hold, and a HALT.
    emissions : sequence of (int, Emission)
        Number of each other instruction, and what :meth:`Schedule.emit` was given for it; stores may be left out.
    moved : Schedule
        Whose arguments the program has.

    Returns
    -------
    (Rewritten, Schedule)
        The program, and the schedule that it is from. Each run of instructions of one layer is a layer of that name;
        the one that ends its products has them.
    """
    every = [each for _, each in emissions]
    words = dict(read(program))
    given = [words.get(number) for number, _ in emissions]
    tasks = [_task(each, own, program.accelerator) for each, own in zip(every, given, strict=True)]
    wait(tasks, every, given, program.accelerator.row_words * program.accelerator.lanes)
    made = Schedule(program.accelerator)
    made.moved = moved.moved
    numbers = np.full(len(program.instructions), -1, np.int64)
    for place in _order(tasks, every):
        made.kind = every[place].kind
        made.emit(every[place].opcode, every[place].values, every[place].reads, every[place].writes)
        numbers[emissions[place][0]] = len(made.instructions) - 1
    made.halt()
    numbers[-1] = len(made.instructions) - 1
    layers = tuple(_runs(program, numbers, len(made.instructions)))
    return Rewritten(replace(program, instructions=tuple(made.instructions), layers=layers), numbers), made


def _runs(program, numbers, count):
    """The layers of a program whose instructions have other numbers now, of which there are so many."""
    owner, ends = np.full(count, -1), dict[int, int]()
    for number, layer in enumerate(program.layers):
        there = numbers[layer.first:layer.stop]
        owner[there[there >= 0]] = number
        ends[number] = max(numbers[place] for place in range(layer.first, layer.stop)
                           if program.instructions[place].opcode == Opcode.MULTIPLY or not layer.products)
    for place in range(1, count):                          # a NOP goes with what stands behind it, or before
        owner[-place - 1] = owner[-place] if owner[-place - 1] < 0 else owner[-place - 1]
        owner[place] = owner[place - 1] if owner[place] < 0 else owner[place]
    firsts = [0, *(np.flatnonzero(owner[1:] != owner[:-1]) + 1).tolist(), count]
    for first, stop in pairwise(firsts):
        layer = program.layers[owner[first]]
        whole = first <= ends[int(owner[first])] < stop
        yield Layer(layer.name, first, stop, layer.macs if whole else 0, layer.products if whole else ())


def _task(each, words, accelerator):
    """About how long an instruction keeps its unit, and what it moves by the ports of V and the bus."""
    f, side = each.values, accelerator.core.rows
    match each.opcode:
        case Opcode.LOAD | Opcode.STORE:
            words = prod(f.get(f"count{n}", 1) for n in range(3))
            if each.opcode == Opcode.STORE:
                return Task(_WORD * words, _SEEN, {"bus": words, "read": words})
            return Task(_WORD * words, _COMES, {"bus": words, "write": words})
        case Opcode.CONVERT:
            columns, to_w = f.get("columns", 0), f.get("to_w", 0)
            words = f["words"] * f["rows"] * (2 if columns or to_w else 1)
            return Task(words + _BETWEEN + side * columns, _SEEN, {"read": words})
        case Opcode.WEIGHTS:
            return Task(side * f["tiles"] * f["repeats"], _SEEN, {})
        case Opcode.MULTIPLY:
            return Task(prod(f[name] for name in ("passes0", "passes1", "passes2", "rows0", "rows1", "columns")),
                        _SEEN, {})
        case Opcode.DRAIN:
            words = f["columns"] * f["rows0"] * f["rows1"]
            return Task(_WORD * words, _SEEN, {"write": words})
        case Opcode.VECTOR:
            return _passes(words, f.get("before", 0), f["count0"] * f["count1"], accelerator)
    return Task(1, _SEEN, {})


def _passes(words, before, rows, accelerator):
    """The same of a VECTOR of which all words behind the first are for each row."""
    beats, found = accelerator.row_words, Task(_EMPTIES, _SEEN, {"read": 0, "write": 0})
    for place, word in enumerate(words):
        f, times = field_values(word or 0), 1 if place < before else rows
        if f["kind"] == Kind.LENGTH:
            elements, several = length_of(word)
            beats = several or -(-elements // accelerator.lanes)
        takes = 1
        if f["kind"] in (Kind.VECTOR, Kind.SCALAR):
            takes = beats + (_STEP if f["kind"] == Kind.SCALAR else _TREE if f["reduce"] != Reduce.NONE else
                             max(0, _STEP - beats) if f["target"] == Target.REGISTER else 0)
        if f["kind"] == Kind.VECTOR:
            found.moves["read"] += beats * times * (Source.STREAM in (f["a_source"], f["b_source"], f["c_source"]))
            found.moves["write"] += beats * times * (f["target"] == Target.STREAM)
        found.cycles += takes * times
    return found


def _order(tasks: Sequence[Task], emissions: Sequence[Emission]) -> Iterable[int]:
    """The tasks in the order in which they are expected to begin."""
    for place, task in enumerate(tasks):
        for each in task.done | task.begun:
            tasks[each].behind.append(place)
    left = [len(task.done | task.begun) for task in tasks]
    until = _until_the_end(tasks, list(left))
    ready, free = [0] * len(tasks), dict.fromkeys(Opcode, 0)
    now: dict[Opcode, list[tuple[int, int]]] = {opcode: [] for opcode in Opcode}      # may begin when the unit is free
    later: dict[Opcode, list[tuple[int, int, int]]] = {opcode: [] for opcode in Opcode}
    follows, chained = None, {task.next for task in tasks}
    taken = {what: Counter[int]() for what in ("bus", "read", "write")}

    def there(place):
        if place not in chained:
            heappush(later[emissions[place].opcode], (ready[place], -until[place], place))

    def next_of(opcode):
        """When the unit begins its next, and which that is."""
        soon, late = now[opcode], later[opcode]
        if opcode == Opcode.VECTOR and follows is not None:
            return None if left[follows] else (max(free[opcode], ready[follows]), -until[follows], follows)
        while late and late[0][0] <= free[opcode]:
            heappush(soon, heappop(late)[1:])
        return (free[opcode], *soon[0]) if soon else late[0] if late else None
    for place, count in enumerate(left):
        if not count:
            there(place)
    for _ in tasks:
        begins, _, place = min(found for opcode in Opcode if (found := next_of(opcode)) is not None)
        opcode, task = emissions[place].opcode, tasks[place]
        if place not in chained:
            heappop(now[opcode]) if now[opcode] else heappop(later[opcode])
        free[opcode] = max([begins + task.cycles, *(_moved(taken[what], begins, task.cycles, words)
                                                    for what, words in task.moves.items())])
        follows = task.next if opcode == Opcode.VECTOR else follows
        yield place
        for each in task.behind:
            at = free[opcode] + task.lag
            if place in tasks[each].begun:
                at = begins + (_FIRST if opcode == Opcode.MULTIPLY else _SEEN)
            ready[each], left[each] = max(ready[each], at), left[each] - 1
            if not left[each]:
                there(each)


def _moved(taken, begins, cycles, words):
    """When so many words have gone by a port or the bus, of which others take a part."""
    part, rate = begins // _SHARE, -(-words * _SHARE // cycles)
    while words > 0:
        own = min(words, rate, _SHARE - taken[part])
        taken[part] += own
        words, part = words - own, part + 1
    return part * _SHARE - _SHARE


def _until_the_end(tasks, left):
    """About how many cycles lie between the begin of each task and the end of all that waits for it."""
    order, found = [place for place, count in enumerate(left) if not count], [0] * len(tasks)
    for place in order:
        for each in tasks[place].behind:
            left[each] -= 1
            if not left[each]:
                order.append(each)
    for place in reversed(order):
        found[place] = tasks[place].cycles + tasks[place].lag + max(
            (found[each] for each in tasks[place].behind), default=0)
    return found
