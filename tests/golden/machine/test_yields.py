"""Relations of programs that take turns: contexts change places, YIELDs are moved, added and removed: the same bits.

Nothing here knows what a program computes. Each brings every word of V, W and X to DRAM.
"""

from dataclasses import replace
from random import Random

import pytest

from cosim.accelerator.programs import shares_of
from hbfp.golden.machine.errors import MachineError
from hbfp.golden.machine.machine import Machine, together
from hbfp.golden.machine.random_programs import random_program
from hbfp.isa.instructions import Instruction, Opcode
from tests.cases import slow

from .test_contexts import SYSTEM, whole
from .yields import YIELD, others, with_yields

#: What the programs of a pair are made for, in sixteenths.
SIZE = 4
PART = SYSTEM.share(SIZE)


def pair(seed):
    """Two random programs, and shares of which neither has a word of the other's."""
    pick = Random(seed)
    programs = [random_program(PART, 2 * seed + n, yields=pick.choice((0.1, 0.3, 0.6))) for n in range(2)]
    return programs, shares_of(pick, SIZE)


def left(programs, shares, priority=False):
    """What each program leaves: every bit of its DRAM, and every word that is defined of its share of the memories."""
    return [[machine.dram.data.tobytes(), machine.dram.defined.tobytes()] + [
        each.tobytes() for each in whole(machine.memories)]
        for machine in together(SYSTEM, programs, shares, priority=priority)]


#: Pairs of a case: a few by default, a thousand in all.
SEEDS = [range(2), *(slow(range(first, first + 20)) for first in range(0, 1000, 20))]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_contexts_change_places(seeds):
    """With their shares: all memories as they were. Shares alone: the same DRAM, from other words of the memories."""
    for seed in seeds:
        programs, shares = pair(seed)
        one = left(programs, shares)
        for priority in (False, True):
            assert left(programs[::-1], shares[::-1], priority)[::-1] == one, seed
            assert [each[:2] for each in left(programs, shares[::-1], priority)] == [each[:2] for each in one], seed


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_yields_at_other_places(seeds):
    """Alone, where accesses are in order by waits, too; and in turns with a program that is as it was."""
    kinds = set()
    for seed in seeds:
        programs, shares = pair(seed)
        one = left(programs, shares)
        for kind, other in others(programs[0], Random(seed)):
            kinds.add(kind)
            alone = Machine(other, races=True)
            alone.run()
            assert alone.dram.data.tobytes() == one[0][0], (seed, kind)
            assert left([other, programs[1]], shares) == one, (seed, kind)
    assert kinds == {"removed", "added", "moved"}


def test_what_differs_is_seen():
    """Shares that have words in common, a wait that is left out, and a YIELD where a command is under way."""
    programs, (first, second) = pair(1)
    overlap = replace(second, first=(first.first[0], *second.first[1:]))    # of V
    assert left(programs, (first, overlap)) != left(programs, (first, second))
    made = with_yields(programs[0], set())
    number = next(n for n, each in enumerate(made.instructions) if each.opcode == Opcode.STORE and each.waits)
    racing = made.rewritten({number: replace(made.instructions[number], waits=())})
    with pytest.raises(MachineError, match="is read by it, and used by instruction"):
        Machine(racing, races=True).run()
    plain = [each for each in made.instructions if each != YIELD]
    drain = next(n for n, each in enumerate(plain) if each.opcode == Opcode.DRAIN)
    broken = replace(made, instructions=[*plain[:drain], Instruction(Opcode.YIELD, {}), *plain[drain:]])
    with pytest.raises(MachineError, match="must not be left uncompleted at a YIELD or HALT"):
        Machine(broken).run()
