"""Relations of programs that take turns on the Verilog: contexts change places, YIELDs are at other places.

The bits are the same, with other cycles. Nothing here knows what a program computes, and nothing is asked of the golden
machine but where a YIELD may stand.
"""

from random import Random

import pytest

from cosim.accelerator.host import execute as alone
from cosim.accelerator.host import place, room
from cosim.accelerator.pair import Pair, execute
from cosim.accelerator.programs import shares_of
from golden.machine.random_programs import random_program
from tests.cases import slow
from tests.golden.machine.yields import others

from .built import DISPATCHED, opened, renewed

pytestmark = pytest.mark.cosim
PART = DISPATCHED.share(4)
SEEDS = [range(1), *(slow(range(first, first + 20)) for first in range(0, 200, 20))]


@pytest.fixture(scope="module")
def built():
    _, device = opened(DISPATCHED)
    with device:
        yield device


@pytest.fixture
def device(built):
    return renewed(built, 20, DISPATCHED.beat)


def ran(device, pair, after):
    """What each program of a pair leaves in DRAM, in which all memories are by then; cycles of both."""
    pair.place(device.memory)
    ended = execute(device, pair, after=after)
    assert [each.cause for each in ended.results] == [None, None]
    return [pair.dram(device.memory, context).tobytes() for context in (0, 1)], ended.cycles


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_contexts_change_places(device, seeds):
    """With their shares, and shares alone; either first, and with priority."""
    for seed in seeds:
        pick = Random(seed)
        programs = tuple(random_program(PART, 2 * seed + n, yields=0.3) for n in range(2))
        shares = shares_of(pick, 4)
        one, _ = ran(device, Pair(programs, shares), (0, 0))
        for priority in (False, True):
            found, _ = ran(device, Pair(programs[::-1], shares[::-1], priority), (0, pick.choice((0, 300))))
            assert found[::-1] == one, seed
        assert ran(device, Pair(programs, shares[::-1]), (0, 0))[0] == one, seed


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_yields_at_other_places(device, seeds):
    """Alone, and beside another program: the same bits of both, in other cycles as a rule."""
    same = []
    for seed in seeds:
        pick = Random(seed)
        programs = tuple(random_program(PART, 2 * seed + n, yields=0.3) for n in range(2))
        shares = shares_of(pick, 4)
        one, cycles = ran(device, Pair(programs, shares), (0, 0))
        place(programs[0], device.memory)
        first = alone(device, programs[0], share=shares[0])
        for kind, other in others(programs[0], pick):
            both, turns = ran(device, Pair((other, programs[1]), shares), (0, 0))
            assert both == one, (seed, kind)
            place(other, device.memory)
            found, base = alone(device, other, share=shares[0]), room(other)[1]
            assert found.cause is None, (seed, kind)
            assert device.memory[base:base + other.limit].tobytes() == one[0], (seed, kind)
            same += [turns == cycles, found.cycles == first.cycles]
    assert sum(same) < len(same) / 10
