"""Two contexts: programs that yield, alone and in pairs, each bit and each cycle; and faults that stay where they are.

Covers: cosim/accelerator/pair.py, golden/perf/accelerator/control.py, golden/perf/accelerator/model.py,
golden/perf/accelerator/steps.py, golden/perf/accelerator/times.py, rtl/accelerator/control.py,
rtl/accelerator/fetch.py, rtl/accelerator/memories.py.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from cosim.accelerator.device import Timing
from cosim.accelerator.host import execute as alone
from cosim.accelerator.host import finish, place, read, result, ring, room, write
from cosim.accelerator.pair import Pair, execute
from cosim.accelerator.programs import shares_of
from golden.machine.machine import Machine, together
from golden.machine.random_programs import random_program
from golden.perf.accelerator import model as cycle_model
from hbfp.isa.instructions import Instruction, Memory, Opcode, Unit, Wait
from hbfp.isa.registers import Cause
from hbfp.program import Program, Region
from hbfp.system import Share
from tests.cases import sweep
from tests.rtl.accelerator.test_accelerator import FIRST, WRONG, start
from tests.rtl.accelerator.test_accelerator import finish as wrong

from .built import DISPATCHED, TWO, opened, renewed

pytestmark = pytest.mark.cosim
#: What the programs of a pair are made for, a share of :data:`TWO`.
PART = TWO.share(4)
HALVES = (Share.of_all(0, 8), Share.of_all(8, 8))
YIELD, HALT = Instruction(Opcode.YIELD, {}), Instruction(Opcode.HALT, {})
ONE = {"count0": 1, "count1": 1, "count2": 1}


@pytest.fixture(scope="module", params=[DISPATCHED, pytest.param(TWO, marks=pytest.mark.slow)],
                ids=["beside a dispatcher", "alone"])
def built(request):
    """With a dispatcher that is off it is the build of test_dispatched.py."""
    manifest, device = opened(request.param)
    with device:
        yield manifest, device


@pytest.fixture
def device(built):
    return renewed(built[1], 20, TWO.beat)


def right(memory, machine, program):
    """Whether DRAM from a program's base on is that of the golden machine."""
    known = machine.dram.defined[:, 0]
    return np.array_equal(memory[:program.limit].view(np.uint32)[known], machine.dram.data[known])


@pytest.mark.parametrize("name", ["bit", "word", "memory", "elements", "words", "run", "beat", "number", "few results",
                                  "results", "factors", "conversion"])
def test_what_is_wrong_has_its_cause_and_number(device, name):
    """As with one context; the other is told nothing."""
    cause, number, more = WRONG[name]
    start(device, [*FIRST, *more, HALT])
    assert wrong(device) == (False, cause, number)
    assert read(device, "status", 1) == read(device, "interrupt_status", 1) == 0


@pytest.mark.parametrize("instructions", [0, 1 << 24])
def test_a_program_of_no_length_or_too_long(device, instructions):
    start(device, [HALT], instructions=instructions)
    assert wrong(device) == (False, Cause.END, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_program_that_yields_alone(built, device, seed):
    """The bits of the golden machine, the cycles of the model."""
    manifest, _ = built
    timing = Timing(1 + 17 * seed, 8 + 11 * seed)
    device.set_timing(timing)
    program = random_program(PART, seed, yields=0.3)
    assert program.instructions.count(YIELD) > 1
    place(program, device.memory)
    found = alone(device, program, share=Share.of_all(3 + seed, 5))
    machine = Machine(program, races=True)
    machine.run()
    assert found.cause is None and right(device.memory[room(program)[1]:], machine, program)
    assert found.times == cycle_model.times(program, manifest.data.latency, timing.latency, timing.bandwidth)
    assert found.cycles == found.times.cycles


def of_pair(built, seed):
    """Run two random programs; the pair, what came of it, what the machine and the model say."""
    manifest, device = built
    pick = Random(seed)
    timing = Timing(pick.randint(1, 60), pick.randint(4, 70))
    device.set_timing(timing)
    pair = Pair(tuple(random_program(PART, 2 * seed + n, yields=pick.choice((0, 0.1, 0.4))) for n in range(2)),
                shares_of(pick, 4), pick.random() < 0.3)
    pair.place(device.memory)
    ended = execute(device, pair, after=(0, pick.choice((0, 5, 400, 2000))))
    machines = together(TWO, pair.programs, pair.shares, priority=pair.priority)
    model = cycle_model.together(pair.programs, manifest.data.latency, timing.latency, timing.bandwidth,
                                 rung=ended.rung, priority=pair.priority)
    return pair, ended, machines, model


def check(device, pair, ended, machines, model):
    """Every word of DRAM, in which all memories lie by then; every cycle, of both."""
    for context, (result_, machine, turns) in enumerate(zip(ended.results, machines, model, strict=True)):
        assert result_.cause is None
        assert right(pair.dram(device.memory, context), machine, pair.programs[context])
        assert (ended.begun[context], result_.cycles) == (turns.begun, turns.owned)
        assert result_.times == turns.times
        for unit in Unit:
            units = np.array([each.unit == unit for each in pair.programs[context].instructions])
            assert result_.counters[f"{unit.name.lower()}_completed"] == units.sum()
            assert result_.counters[f"{unit.name.lower()}_waiting"] == result_.times.waited[units].sum()


@pytest.mark.parametrize("seed", sweep(3, range(12)))
def test_pairs(built, device, seed):
    check(device, *of_pair(built, seed))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_many_pairs(built, device, first):
    for seed in range(first, first + 50):
        check(device, *of_pair(built, seed))


def copier(count, words=8, more=(), end=HALT):
    """A program that brings words of DRAM into V and back, ``count`` times, with a YIELD between."""
    size = words * TWO.beat
    data = np.random.default_rng(count).integers(0, 256, count * size, np.uint8).tobytes()
    steps = []
    for turn in range(count):
        steps += [Instruction(Opcode.LOAD, ONE | {"count0": words, "offset": turn * size}),
                  Instruction(Opcode.STORE, ONE | {"count0": words, "offset": (count + turn) * size},
                              (Wait(Unit.LOAD, 1),)), YIELD]
    limit = -(-2 * count * size // 4096) * 4096
    return Program(accelerator=PART, limit=limit, instructions=(*steps, *more, end), memory=(Region(0, data),))


def copied(pair, device, context):
    """Whether a copier's copy is right."""
    found = pair.dram(device.memory, context)
    data = np.frombuffer(pair.programs[context].memory[0].data, np.uint8)
    return np.array_equal(found[len(data):2 * len(data)], data)


BEYOND = {
    "v": Instruction(Opcode.LOAD, ONE | {"base": 120, "count0": 9}),
    "v read": Instruction(Opcode.STORE, ONE | {"base": 128}),
    "x": Instruction(Opcode.CONVERT, {"words": 1, "rows": 2, "target": 127, "target_row": 1}),
    "x read": Instruction(Opcode.MULTIPLY, {"first": 1, "last": 1, "tiles": 1, "columns": 1, "rows0": 1, "rows1": 1,
                                            "passes0": 1, "passes1": 1, "passes2": 1, "base": 128}),
    "w": Instruction(Opcode.LOAD, ONE | {"memory": Memory.W, "base": 120, "count0": 2}),
    "w read": Instruction(Opcode.WEIGHTS, {"base": 128, "tiles": 1, "repeats": 1}),
    "w converted": Instruction(Opcode.CONVERT, {"words": 1, "rows": 8, "stride": 1, "to_w": 1, "columns": 1,
                                                "target": 128}),
    "p": Instruction(Opcode.LOAD, ONE | {"memory": Memory.P, "base": 15, "count0": 2}),
    "p read": Instruction(Opcode.VECTOR, {"count0": 1, "count1": 1, "program": 64, "body": 1}),
}


@pytest.mark.parametrize("fault", BEYOND)
@pytest.mark.parametrize("context", [0, 1])
def test_an_address_beyond_the_share(device, context, fault):
    """Cause, instruction; the other program's bits; and its share of the memories is as it was."""
    programs = [copier(5), copier(6)]
    programs[context] = copier(3, more=[BEYOND[fault]])
    pair = Pair(tuple(programs), HALVES)
    pair.place(device.memory)
    ended = execute(device, pair)
    assert (ended.results[context].cause, ended.results[context].error_pc) == (Cause.ADDRESS, 9)
    assert ended.results[1 - context].cause is None
    assert copied(pair, device, 0) and copied(pair, device, 1)


def test_shares_that_end_beyond_a_memory(device):
    program = copier(1)
    place(program, device.memory)
    for place_ in range(4):
        ring(device, program)
        finish(device)
        assert result(device, program).cause is None
        write(device, "share_first", 9 << 8 * place_)
        write(device, "share_size", 8 << 8 * place_)
        write(device, "control", 1)
        finish(device)
        found = result(device, program)
        assert (found.cause, found.error_pc) == (Cause.ADDRESS, 0)
        write(device, "share_first", 0)
        write(device, "share_size", Share().registers()["share_size"])


def test_what_the_memories_hold_stays(device):
    """Two programs in one share: the second stores what the first has loaded."""
    first, second = copier(1), copier(1)
    second = replace(second, instructions=(Instruction(Opcode.STORE, ONE | {"count0": 8}), HALT), memory=())
    pair = Pair((first, second), (Share(), Share()))
    pair.place(device.memory)
    assert [each.cause for each in execute(device, pair).results] == [None, None]
    assert np.array_equal(pair.dram(device.memory, 1)[:256], pair.dram(device.memory, 0)[:256])


def both(device, pair):
    """Prepare and ring both doorbells."""
    pair.place(device.memory)
    for context, program in enumerate(pair.programs):
        ring(device, program, context, address=pair.second * context, share=pair.shares[context])


def ends(device, pair):
    """What comes of both, by context."""
    found = {}
    while len(found) < 2:
        finish(device)
        for context in (0, 1):
            if context not in found and read(device, "interrupt_status", context):
                found[context] = read(device, "status", context), read(device, "cause", context), read(
                    device, "error_pc", context)
                write(device, "interrupt_status", 3, context)
    return found[0], found[1]


STUCK = Instruction(Opcode.LOAD, ONE, (Wait(Unit.VECTOR, 9),))


@pytest.mark.parametrize("value, cause", [(1, Cause.BUSY), (2, Cause.STOPPED)])
@pytest.mark.parametrize("context", [0, 1])
def test_doorbell_and_stop_end_one_program(device, context, value, cause):
    """Of the one that has the machine, and of the one that waits; at many cycles of the turns."""
    pair = Pair((copier(4), copier(4)), HALVES)
    seen = set()
    for cycles in range(0, 700, 23):
        both(device, pair)
        device.idle(cycles)
        seen.add(read(device, "status", context))
        write(device, "control", value, context)
        found = ends(device, pair)
        assert found[1 - context] == (2, 0, 0) and copied(pair, device, 1 - context)
        assert found[context][:2] == (4, cause) and found[context][2] <= 13
    assert seen == {1, 9}
    both(device, pair)
    assert ends(device, pair) == ((2, 0, 0),) * 2 and copied(pair, device, 0) and copied(pair, device, 1)


@pytest.mark.parametrize("context", [0, 1])
def test_errors_of_one_leave_the_other_alone(device, context):
    """Illegal words, bus errors of loads and of fetch, data that never come, and a program without HALT."""
    illegal = Instruction(Opcode.LOAD, ONE | {"count1": 0})
    far = Instruction(Opcode.LOAD, ONE | {"count0": 16, "offset": 0x4000})
    cases = [(copier(3, more=[illegal]), Cause.ILLEGAL, 9), (copier(3, end=YIELD), Cause.END, 10),
             (copier(3, more=[STUCK]), Cause.WATCHDOG, 11), (copier(3, more=[far]), Cause.BUS, 9),
             (replace(copier(3), limit=4096 + 32), Cause.MISALIGNED, 0)]
    for program, cause, number in cases:
        programs = [copier(9), copier(9)]
        program = replace(program, limit=0x8000) if cause == Cause.BUS else program
        programs[context] = program
        pair = Pair(tuple(programs), HALVES)
        pair.place(device.memory)
        if cause == Cause.BUS:
            base = pair.second * context + room(program)[1]
            device.poison(base + 0x4000, base + 0x4020)
        for place_, each in enumerate(pair.programs):
            address = pair.second * place_ + (32 if cause == Cause.MISALIGNED and place_ == context else 0)
            ring(device, each, place_, address=address, share=HALVES[place_], watchdog=600)
            if cause == Cause.MISALIGNED:
                write(device, "base_low", address // 64 * 64 + room(each)[1], place_)
        found = ends(device, pair)
        device.heal()
        assert found[context] == (4, cause, number), cause
        assert found[1 - context] == (2, 0, 0) and copied(pair, device, 1 - context), cause
        if cause in (Cause.ILLEGAL, Cause.BUS, Cause.WATCHDOG):
            assert copied(pair, device, context)


def test_priority(device):
    """Context 0 keeps the machine through its YIELDs; at those of context 1 it comes back."""
    for priority in (False, True):
        pair = Pair((copier(6), copier(6)), HALVES, priority)
        pair.place(device.memory)
        first, second = execute(device, pair).results
        assert copied(pair, device, 0) and copied(pair, device, 1)
        overlap = (first.times.completed.max() > first.cycles)
        assert overlap != priority


def test_a_doorbell_while_the_other_runs(device):
    """Without YIELD it waits for the other's HALT; an interrupt of each, and what is enabled of each."""
    long, short = copier(1, words=64), copier(1)
    pair = Pair((replace(long, instructions=(*long.instructions[:2], HALT)), short), HALVES)
    pair.place(device.memory)
    ring(device, pair.programs[0], share=HALVES[0])
    ring(device, pair.programs[1], 1, address=pair.second, share=HALVES[1])
    assert (read(device, "status"), read(device, "status", 1)) == (1, 9)
    finish(device)
    assert (read(device, "interrupt_status"), read(device, "interrupt_status", 1)) == (1, 0)
    assert read(device, "status") == 2
    write(device, "interrupt_status", 1)
    finish(device)
    assert (read(device, "interrupt_status"), read(device, "interrupt_status", 1)) == (0, 1)
    assert copied(pair, device, 0) and copied(pair, device, 1)


def test_reset_in_the_midst(device):
    pair = Pair((copier(4), copier(4)), HALVES)
    for cycles in range(20, 400, 37):
        both(device, pair)
        device.idle(cycles)
        device.reset()
        for context in (0, 1):
            assert [read(device, name, context) for name in ("status", "cause", "limit", "share_first")] == [0] * 4
            assert read(device, "share_size", context) == 0x10101010
    both(device, pair)
    assert ends(device, pair) == ((2, 0, 0),) * 2 and copied(pair, device, 0) and copied(pair, device, 1)


def test_places_of_programs(device):
    """Programs that begin and yield at any place of a burst, at doorbells that come one after the other."""
    nops = [Instruction(Opcode.NOP, {"unit": 1 + n % 7}) for n in range(20)]
    for first in range(0, 20, 3):
        programs = tuple(copier(2, more=nops[:count]) for count in (first, 19 - first))
        programs = tuple(replace(one, instructions=(*nops[:first % 7], YIELD, *one.instructions)) for one in programs)
        pair = Pair(programs, HALVES)
        pair.place(device.memory)
        assert [each.cause for each in execute(device, pair).results] == [None, None]
        assert copied(pair, device, 0) and copied(pair, device, 1)
