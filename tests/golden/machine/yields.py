"""The same program with its YIELDs at other places: relations of these hold whatever a YIELD is there for.

It shares nothing with what the lowering does about YIELDs (``golden/lower/yields.py``).
"""

from collections.abc import Iterator
from random import Random

from hbfp.golden.machine.errors import MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import WAITS, Instruction, Opcode, Unit, Wait
from hbfp.program import Program

YIELD = Instruction(Opcode.YIELD, {})
NONE = dict.fromkeys(Unit, 0)


def _apart(program):
    """Instructions but YIELDs, with waits that count from the start, and the places of the YIELDs between them."""
    steps, places, done, since = [], set(), dict(NONE), NONE
    for each in program.instructions:
        if each.opcode == Opcode.YIELD:
            places.add(len(steps))
            since = dict(done)
            continue
        steps.append(Instruction(each.opcode, each.values, tuple(
            Wait(wait.unit, wait.count + since[wait.unit]) for wait in each.waits)))
        if each.unit:
            done[each.unit] += 1
    return steps, places


def _barrier(done):
    """NOPs by which every unit waits for all that every other has been given."""
    for unit in Unit:
        others = [Wait(other, done[other]) for other in Unit if other != unit and done[other]]
        for first in range(0, len(others), WAITS):
            yield Instruction(Opcode.NOP, {"unit": unit}, tuple(others[first:first + WAITS]))


def with_yields(program: Program, places: set[int]) -> Program:
    """A program with YIELDs before these of its instructions, YIELDs not counted; a barrier is where one was before."""
    steps, before = _apart(program)
    made, done, since = [], dict(NONE), NONE
    ordinal = {unit: [0] for unit in Unit}    # of an instruction of a unit, by its number without barriers

    def add(each):
        made.append(Instruction(each.opcode, each.values, tuple(
            Wait(wait.unit, max(0, wait.count - since[wait.unit])) for wait in each.waits)))
        if each.unit:
            done[each.unit] += 1
    for place, each in enumerate(steps):
        if place in places:
            add(YIELD)
            since = dict(done)
        elif place in before:
            for nop in list(_barrier(dict(done))):
                add(nop)
        add(Instruction(each.opcode, each.values, tuple(
            Wait(wait.unit, ordinal[wait.unit][wait.count]) for wait in each.waits)))
        if each.unit:
            ordinal[each.unit].append(done[each.unit])
    return Program(accelerator=program.accelerator, instructions=made, limit=program.limit, memory=program.memory,
                   arguments=program.arguments, seed=program.seed)


def _at_full_length(program):
    """(place, whether a YIELD stands there) wherever the vector unit's length is the longest, so that a YIELD leaves it
    as it is."""
    machine, found, place = Machine(program), set(), 0
    for number, each in enumerate(program.instructions):
        is_yield = each.opcode == Opcode.YIELD
        if machine.vector.machine.length == machine.vector.unit.longest:
            found.add((place, is_yield))
        machine.step(number, each)
        place += not is_yield
    return found


def others(program: Program, pick: Random, more: int = 3) -> Iterator[tuple[str, Program]]:
    """The program without its YIELDs, with ``more`` of them, and with them elsewhere, wherever it is legal.

    A YIELD stays where without it another length would hold. One that is new stands where no command of the core is
    under way, and where nothing behind it takes what the vector unit's registers held before: the machine says so.
    """
    _, before = _apart(program)
    full = _at_full_length(program)
    gone, free = ({place for place, is_yield in full if is_yield is which} for which in (True, False))
    new: set[int] = set()
    for place in pick.sample(sorted(free - before), len(free - before)):
        if len(new) < more and _runs(with_yields(program, before | {place})):
            new.add(place)
    if gone:
        yield "removed", with_yields(program, before - gone)
    if new:
        yield "added", with_yields(program, before | new)
    if gone and new:
        yield "moved", with_yields(program, before - gone | new)


def _runs(program):
    try:
        Machine(program).run()
    except MachineError:
        return False
    return True
