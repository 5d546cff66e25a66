"""When the vector unit accepts each instruction of a program, if its streams never wait."""

from collections import defaultdict
from collections.abc import Iterable

from ..spec.tables import FUNCTIONS
from ..spec.vector import Kind, Source, Target, VectorInstruction, VectorUnit

_PASSES = (Kind.VECTOR, Kind.SCALAR)


def schedule(program: Iterable[VectorInstruction], unit: VectorUnit, length: int | None = None) -> list[int]:
    """The cycle in which each instruction is accepted, by the rules of docs/design/04-vector-unit.md ("Cycles").

    Parameters
    ----------
    program : iterable of VectorInstruction
    unit : VectorUnit
    length : int, optional
        Elements of a row at the start; those of the longest row, unless given.

    Returns
    -------
    list of int
        From 0 on; behind the last instruction the first cycle in which nothing is in flight.
    """
    length, rows = unit.longest if length is None else length, 0
    levels = unit.reduce_cycles - 1
    accepted: list[int] = []
    free = idle = reduced = totals = 0    # from when on: a word, nothing in flight, no pass reduces, new totals
    paced = {False: 0, True: 0}           # a beat without and with a function
    summed = 0                            # a beat that is added up
    scalars: defaultdict[int, int] = defaultdict(int)      # a pass that reads it or puts a number into it
    registers: defaultdict[int, int] = defaultdict(int)    # a pass that reads it
    banks: dict[int, int] = {}    # cycle -> bank of registers that is written, where memories have one port
    for each in program:
        if each.kind not in _PASSES:
            accepted.append(max(free, idle))
            free = accepted[-1] + 1
            if each.kind == Kind.LENGTH:
                length, rows = each.immediate, each.above
            continue
        function, once = each.post in FUNCTIONS, each.kind == Kind.SCALAR
        delay = unit.function_delay if function else 0
        turns = unit.function_turns if function else 1
        every = max(turns, unit.reduce_turns if each.reduce else 1)
        begin = max(paced[function], summed if each.reduce else 0)
        result = unit.plain_cycles - 1 + delay
        beats = rows or (1 if once else -(-length // unit.lanes))
        operands = (each.a, each.b, each.c)
        puts = [each.reduce_index] if each.reduce else [each.target_index] if each.target == Target.SCALAR else []
        waits = [registers[operand.index] for operand in operands if operand.source == Source.REGISTER]
        waits += [scalars[index] for index in (
            *puts, *(operand.index for operand in operands if operand.source == Source.SCALAR))]
        waits += [reduced, totals - delay] if each.reduce or once else []
        accepted.append(max([free, *waits]))
        reads = unit.fetches({operand.index for operand in operands if operand.source == Source.REGISTER})
        last = accepted[-1]
        if not unit.single:
            last = max(last + max(1, reads), begin) + (beats - 1) * max(every, reads)
        for beat in range(beats) if unit.single else ():
            earliest = last + every if beat else max(last + 1, begin)
            for _ in range(reads):
                last = _next(banks, beat % 2, last + 1)
            last = _next(banks, beat % 2, max(last, earliest)) if reads else earliest
            if each.target == Target.REGISTER:
                banks[last + result] = beat % 2
        paced = {False: last + 1 + delay, True: last + turns}
        summed = last + unit.reduce_turns if each.reduce else summed
        free, idle = last, max(idle, last + result + 1)
        if each.target == Target.REGISTER:
            registers[each.target_index] = last + result + 1 - beats
        for index in puts:
            scalars[index] = last + result + (levels if each.reduce else -1)
        if each.reduce:
            reduced, totals = last + 1, last + 1 + levels + delay
            idle = max(idle, last + result + levels + 2)
    return [*accepted, max(free, idle)]


def _next(banks, bank, cycle):
    """The first cycle from one on in which a bank is not written."""
    while banks.get(cycle) == bank:
        cycle += 1
    return cycle


def cycles(program: Iterable[VectorInstruction], unit: VectorUnit, length: int | None = None) -> int:
    """Clock cycles of a program whose streams never wait: from the first acceptance until nothing is in flight."""
    return schedule(program, unit, length)[-1]
