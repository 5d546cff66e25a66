"""The dispatcher in front of two contexts: requests in batches beside training, each bit, each cycle; faults.

Covers: rtl/accelerator/front.py, rtl/accelerator/control.py, rtl/accelerator/registers.py,
golden/perf/accelerator/colocate/dispatched.py, cosim/accelerator/dispatched.py.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from cosim.accelerator.device import Timing
from cosim.accelerator.dispatched import answered, ask, attach, counter, push
from cosim.accelerator.host import prepare, put, read, room, write
from cosim.accelerator.pair import Pair, execute
from golden.perf.accelerator import model
from golden.perf.accelerator.colocate.dispatched import Machine, quanta, serve
from golden.perf.dispatch.twin import Request, Twin
from golden.spec.dispatch import Counter, Policy
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.isa.registers import BY_NAME, Access, Cause, parameters, registers
from hbfp.program import Program, Region
from hbfp.system import Share
from rtl.accelerator.front import unit
from tests.cases import sweep

from .built import DISPATCHED, opened, renewed

pytestmark = pytest.mark.cosim
#: With a ring of descriptors, which is off here: test_descriptors.py has it on, on the same build.
SYSTEM = DISPATCHED
PART = SYSTEM.share(8)
HALVES = (Share.of_all(0, 8), Share.of_all(8, 8))
MEMORY = 20, SYSTEM.beat
YIELD, HALT = Instruction(Opcode.YIELD, {}), Instruction(Opcode.HALT, {})
ONE = {"count0": 1, "count1": 1, "count2": 1}
#: Words of a request's input and of its output; bytes of them: none lies across a page, which would take a burst more.
WORDS = 4
SIZE = WORDS * SYSTEM.beat
#: Requests that DRAM has inputs for, and where their outputs begin.
PLACES, OUTPUTS = 64, 64 * SIZE
#: What holds behind a reset.
OFF = Policy(inference=False, training=False, batch=1)
#: Where programs lie.
SECOND = 0x10000


def copies(batch):
    """A program that brings the input of each request of a batch to its output."""
    each = [ONE | {"count0": WORDS, "base": WORDS * n, "request": n + 1} for n in range(batch)]
    loads = [Instruction(Opcode.LOAD, values) for values in each]
    stores = [Instruction(Opcode.STORE, values, (Wait(Unit.LOAD, n + 1),)) for n, values in enumerate(each)]
    data = np.random.default_rng(batch).integers(0, 256, OUTPUTS, np.uint8).tobytes()
    return Program(accelerator=PART, limit=-(-2 * OUTPUTS // 4096) * 4096, instructions=(*loads, *stores, HALT),
                   memory=(Region(0, data),), requests=((0, OUTPUTS),))


def trains(lengths):
    """A program whose quanta load and store so many times, each behind the one before."""
    steps = []
    for length in lengths:
        for turn in range(length):
            steps += [Instruction(Opcode.LOAD, ONE | {"count0": 8}, (Wait(Unit.STORE, turn),) if turn else ()),
                      Instruction(Opcode.STORE, ONE | {"count0": 8, "offset": 4096}, (Wait(Unit.LOAD, turn + 1),))]
        steps.append(YIELD)
    return Program(accelerator=PART, limit=8192, instructions=(*steps[:-1], HALT), memory=(Region(0, bytes(4096)),))


@pytest.fixture(scope="module")
def built():
    manifest, device = opened(SYSTEM)
    with device:
        yield manifest, device


@pytest.fixture
def device(built):
    return renewed(built[1], *MEMORY)


def begin(device, serving, training=None, policy=None, watchdog=100_000):
    """Programs in DRAM and in registers, the dispatcher attached, in the cycle that comes back, and context 1 rung."""
    device.memory[:] = 0
    for context, program in enumerate((serving, training)):
        if program:
            put(program, device.memory[SECOND * context:])
            prepare(device, program, context, address=SECOND * context, share=HALVES[context], watchdog=watchdog)
    attach(device, policy or Policy(batch=1))
    counts = device.cycle - 1    # what was written counts from the cycle of its answer on
    if training:
        write(device, "control", 1, 1)
    return counts


def place(number):
    """The request of a number: its tag is made of it."""
    return Request(number * SIZE, OUTPUTS + number * SIZE, 0xABC00000 + 7 * number)


def copied(device, serving, number):
    """Whether the output of a request is its input."""
    base = room(serving)[1]
    data = device.memory[base:base + serving.limit]
    return np.array_equal(data[number * SIZE:][:SIZE], data[OUTPUTS + number * SIZE:][:SIZE])


def times_of(built, serving, training=None):
    """Dispatcher and control as the model has them, of these programs."""
    manifest, _ = built
    latency = manifest.data.latency
    return Machine(Twin(unit(SYSTEM.dispatch)), model.times(serving, latency, *MEMORY).cycles,
                   quanta(training, latency, *MEMORY) if training else None)


def test_every_register_that_is_written_is_read(device):
    """Those of both contexts, of the dispatcher and of its ring, all of them written before the first is read."""
    rng, found = np.random.default_rng(0), {}
    for one in registers(SYSTEM.contexts, dispatched=True, ringed=True):
        if one.access is Access.WRITE:
            found[one.address] = sum(int(rng.integers(0, 1 << each.width)) << each.low for each in one.fields) or int(
                rng.integers(0, 1 << 32))
    found |= {BY_NAME["policy"].address: 1 << 8, BY_NAME["ring_size"].address: 1}    # so that nothing begins
    for address, value in found.items():
        assert device.write(address, value) == 0
    assert {address: device.read(address) for address in found} == found
    expected = parameters(SYSTEM)
    assert {name: read(device, name) for name in expected} == expected
    first = read(device, "now")
    assert 0 < read(device, "now") - first < 10
    places = {one.address for one in registers(SYSTEM.contexts, dispatched=True, ringed=True)}
    assert not any(device.read(address) for address in range(0, max(places), 4) if address not in places)


def test_one_request(built, device):
    serving = copies(1)
    begin(device, serving)
    device.idle(1000)
    assert ask(device, place(5))
    device.idle(1000)
    (found,) = answered(device)
    assert found.completion.tag == place(5).tag and not found.failed and copied(device, serving, 5)
    (wanted,) = serve(times_of(built, serving), Policy(batch=1), [(found.completion.arrived, place(5))], 10_000)
    assert found.completion == wanted


def test_a_batch_that_is_not_full_touches_its_own_places_alone(device):
    """Those of the batch before it stay as they are, though the program computes as many as ever."""
    serving = copies(4)
    begin(device, serving, policy=Policy(batch=4, timeout=100))
    for number in range(4):
        assert ask(device, place(number))
    device.idle(1000)
    outputs = device.memory[room(serving)[1] + OUTPUTS:][:64 * SIZE]
    for count in (1, 3, 2):
        outputs[:] = 0
        for number in range(10, 10 + count):
            assert ask(device, place(number))
        device.idle(1000)
        assert [copied(device, serving, number) for number in range(10, 10 + count)] == [True] * count
        outputs[10 * SIZE:(10 + count) * SIZE] = 0
        assert not outputs.any()
    assert len(answered(device)) == 10


def test_places_are_there_before_instructions_that_read_them(device):
    """Also where the first one reads the last place, and DRAM answers at once."""
    device.set_timing(Timing(1, 8 * SYSTEM.beat))
    serving = copies(4)
    loads, stores = serving.instructions[:4], serving.instructions[4:8]
    last_first = [Instruction(Opcode.LOAD, dict(each.values)) for each in reversed(loads)]
    serving = replace(serving, instructions=(*last_first, *(
        replace(each, waits=(Wait(Unit.LOAD, 4),)) for each in reversed(stores)), HALT))
    begin(device, serving, policy=Policy(batch=4))
    for number in range(16):
        assert ask(device, place(number))
    device.idle(2000)
    assert len(answered(device)) == 16 and all(copied(device, serving, number) for number in range(16))


def play(device, serving, numbers, gaps):
    """Make requests with so many cycles before each, and take completions whenever there are some."""
    found = []
    for number, gap in zip(numbers, gaps, strict=True):
        device.idle(gap)
        while not ask(device, place(number)):
            found += answered(device)
        if read(device, "dispatch_status") & 1:
            found += answered(device)
    while len(found) < len(numbers):
        device.idle(50)
        found += answered(device)
    assert [each.completion.tag for each in found] == [place(number).tag for number in numbers]
    assert not any(each.failed for each in found) and all(copied(device, serving, number) for number in numbers)
    return [each.completion for each in found]


@pytest.mark.parametrize("seed", sweep(3, range(8)))
def test_requests_at_random_times_beside_training(built, device, seed):
    """Each completion to the cycle, of batches of every fill; training's end, too."""
    pick = Random(seed)
    batch = pick.randint(1, 4)
    serving = copies(batch)
    training = trains([pick.randint(1, 9) for _ in range(12)]) if seed else None
    policy = Policy(batch=batch, timeout=pick.choice((0, 300, 1000)), priority=pick.random() < 0.7,
                    share=pick.choice((16, 16, 9)), closes=pick.random() < 0.5)
    start = device.cycle    # the first one behind the reset
    counts = begin(device, serving, training, policy) - start
    rung = device.cycle - 2 - start
    numbers = list(range(24))
    completions = play(device, serving, numbers, [pick.choice((0, 0, 10, 200, 900)) for _ in numbers])
    device.idle(20_000)
    last = device.cycle - start
    machine, wanted = times_of(built, serving, training), []
    coming = {each.arrived: place(number) for number, each in zip(numbers, completions, strict=True)}
    for cycle in range(last):
        out = machine.step(policy if cycle >= counts else OFF, coming.get(cycle))
        if training and cycle == rung:
            machine.ring()
        if out.completion:
            wanted.append(out.completion)
    assert completions == wanted
    numbers = Counter.INFERENCE, Counter.TRAINING, Counter.QUANTA
    counted = [counter(device, number) for number in numbers]
    assert counted == [machine.twin.tally.values[number] for number in numbers]
    assert counted[2] == (12 if training else 0) and read(device, "status", 1) == (2 if training else 0)


@pytest.mark.parametrize("closes", [False, True])
def test_a_batch_that_became_due_beside_a_quantum(device, closes):
    """With a policy that closes it has only what waited then, and else what has come since."""
    begin(device, copies(4), trains([40]), Policy(batch=4, timeout=300, closes=closes))
    for number in range(2):
        device.idle(600)
        assert ask(device, place(number)) and read(device, "dispatch_status") & 8
    device.idle(20_000)
    first, second = (each.completion.started for each in answered(device))
    assert (first != second) == closes


def test_a_full_queue_refuses(device):
    """Visibly: nothing that was taken is lost, nothing that was refused is done, and the order stays."""
    serving = copies(4)
    begin(device, serving, policy=Policy(batch=4, inference=False))
    taken = [ask(device, place(number)) for number in range(20)]
    assert taken == [True] * 16 + [False] * 4 and read(device, "refused") == 4 and not answered(device)
    attach(device, Policy(batch=4))
    device.idle(3000)
    found = answered(device)
    assert [each.completion.tag for each in found] == [place(number).tag for number in range(16)]
    assert [copied(device, serving, number) for number in range(20)] == taken
    assert ask(device, place(16)) and read(device, "refused") == 4


def test_completions_that_nobody_takes(device):
    """Service goes on until their queue is full, then it waits; all of them come in the end."""
    serving = copies(1)
    begin(device, serving)
    numbers = list(range(16 + 16))
    for number in numbers:
        while not ask(device, place(number)):
            device.idle(100)
    device.idle(10_000)
    assert not any(push(device, 0) for _ in range(3))
    found = answered(device)
    device.idle(10_000)
    found += answered(device)
    assert [each.completion.tag for each in found] == [place(number).tag for number in numbers]
    assert all(copied(device, serving, number) for number in numbers)


def clients(device, requests, seed):
    """Two clients ask as fast as they can, each for its own places, with its own tags and its own new data."""
    pick, serving, numbers = Random(seed), copies(4), np.random.default_rng(seed)
    begin(device, serving, trains([1, 2, 3]), Policy(batch=4, timeout=pick.choice((0, 200))))
    data = device.memory[room(serving)[1]:]
    asked, got, given = ([], []), ([], []), {}
    while sum(map(len, got)) < requests:
        client = pick.random() < 0.5
        number = len(asked[client]) % 32 + 32 * client
        tag = client << 31 | len(asked[client]) << 8 | number
        if sum(map(len, asked)) < requests and len(asked[client]) - len(got[client]) < 32:
            wanted = numbers.integers(0, 256, SIZE, np.uint8)
            data[number * SIZE:][:SIZE] = wanted
            if ask(device, place(number)._replace(tag=tag)):
                asked[client].append(tag)
                given[tag] = wanted
        for each in answered(device) if pick.random() < 0.4 else ():
            tag = each.completion.tag
            assert not each.failed
            assert np.array_equal(data[OUTPUTS + (tag & 0xFF) * SIZE:][:SIZE], given.pop(tag))
            got[tag >> 31].append(tag)
    assert asked == got


def test_tags_of_two_clients_are_never_mixed(device):
    clients(device, 300, 1)


@pytest.mark.slow
def test_ten_thousand_tags_of_two_clients(device):
    clients(device, 10_000, 2)


def serves(device, serving, numbers):
    """Whether requests are served, one after the other, each well."""
    for number in numbers:
        assert ask(device, place(number))
        device.idle(600)
        (found,) = answered(device)
        assert found.completion.tag == place(number).tag and not found.failed and copied(device, serving, number)


def test_training_that_does_not_yield_is_stopped(device):
    """Within patience nothing happens; then it stops, with a cause of its own, and inference goes on."""
    serving, training = copies(1), trains([2, 200])
    for patience in (40_000, 700):
        device.reset()
        begin(device, serving, training, Policy(batch=1, patience=patience))
        device.idle(500)
        assert ask(device, place(1))
        device.idle(30_000)
        (found,) = answered(device)
        stopped = patience == 700
        assert not found.failed and copied(device, serving, 1)
        assert (found.completion.finished - found.completion.arrived < 700 + 600) == stopped
        assert [read(device, name, 1) for name in ("status", "cause")] == ([4, Cause.OVERDUE] if stopped else [2, 0])
        assert read(device, "dispatch_error") == stopped and read(device, "dispatch_status") == 2 * stopped
        serves(device, serving, range(2, 6))
    write(device, "control", 1, 1)
    device.idle(2000)
    assert read(device, "status", 1) == 9    # barred
    write(device, "dispatch_error", 1)
    assert read(device, "dispatch_error") == 0
    serves(device, serving, range(6, 9))
    device.idle(3000)
    assert read(device, "cause", 1) == Cause.OVERDUE and counter(device, Counter.QUANTA) > 1


FAULTS = {
    "illegal": (Instruction(Opcode.LOAD, ONE | {"count1": 0}), Cause.ILLEGAL),
    "request": (Instruction(Opcode.LOAD, ONE | {"request": 5}), Cause.ILLEGAL),
    "address": (Instruction(Opcode.LOAD, ONE | {"offset": 8192}), Cause.ADDRESS),
    "bus": (Instruction(Opcode.LOAD, ONE | {"offset": 4096 + 2048}), Cause.BUS),
    "stuck": (Instruction(Opcode.LOAD, ONE, (Wait(Unit.VECTOR, 9),)), Cause.WATCHDOG),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_training_end_its_quantum(device, fault):
    serving, training = copies(1), trains([1, 1, 2])
    instruction, cause = FAULTS[fault]
    training = replace(training, instructions=(*training.instructions[:-1], instruction, HALT))
    base = SECOND + room(training)[1]
    device.poison(base + 4096 + 2048, base + 4096 + 2048 + 32)
    begin(device, serving, training, watchdog=500)
    device.idle(5000)
    assert (read(device, "status", 1), read(device, "cause", 1)) == (4, cause) and read(device, "dispatch_status") == 0
    serves(device, serving, range(5))
    for again in range(2):    # and the next training is one like any other
        write(device, "control", 1, 1)
        serves(device, serving, range(5 + 5 * again, 10 + 5 * again))
    device.idle(2000)
    assert read(device, "cause", 1) == cause and counter(device, Counter.QUANTA) == 9


@pytest.mark.parametrize("fault", ["bus", "address", "stop"])
def test_faults_of_a_batch_are_its_requests(device, fault):
    """They are reported as failed; the batch behind them is not touched."""
    serving, training = copies(2), trains([1, 2, 3, 4])
    begin(device, serving, training, Policy(batch=2, timeout=100, inference=False))
    base = room(serving)[1]
    device.poison(base + 3 * SIZE, base + 3 * SIZE + 32)
    bad = place(3) if fault == "bus" else place(5)._replace(input=serving.limit) if fault == "address" else place(5)
    for each in (place(0), bad, place(7), place(8)):
        assert ask(device, each)
    attach(device, Policy(batch=2, timeout=100))
    if fault == "stop":
        while not read(device, "dispatch_status") & 4:
            pass
        write(device, "control", 2)
    found = []
    while len(found) < 2:
        found += answered(device)
    assert [each.failed for each in found[:2]] == [True, True]
    device.idle(2000)
    found += answered(device)
    assert [each.failed for each in found[2:]] == [False, False] and len(found) == 4
    assert copied(device, serving, 7) and copied(device, serving, 8)
    device.heal()
    serves(device, serving, range(10, 14))
    assert read(device, "status", 1) == 2


@pytest.mark.parametrize("context", sweep(2, [1, 0]))
def test_a_stop_at_any_cycle_leaves_all_going(device, context):
    serving, training = copies(2), trains([1, 2, 1])
    for cycles in range(0, 500, 29):
        device.reset()
        begin(device, serving, training, Policy(batch=2))
        assert ask(device, place(0)) and ask(device, place(1))
        device.idle(cycles)
        write(device, "control", 2, context)
        device.idle(2500)
        assert len(answered(device)) == 2 and read(device, "dispatch_status") & 0b11100 == 0
        attach(device, Policy(batch=1))
        serves(device, serving, range(2, 4))
        assert read(device, "status", 1) in ((2,) if context == 0 else (0, 2, 4))


def test_reset_in_mid_batch(device):
    serving, training = copies(4), trains([1, 5, 1])
    for cycles in range(5, 700, 47):
        begin(device, serving, training, Policy(batch=4, timeout=50))
        for number in range(6):
            ask(device, place(number))
        device.idle(cycles)
        device.reset()
        names = "policy", "refused", "dispatch_status", "dispatch_error", "completion", "status"
        assert [read(device, name) for name in names] == [0x100, 0, 0, 0, 0, 0]
    begin(device, serving, training, Policy(batch=4, timeout=50))
    serves(device, serving, range(10, 14))


def test_the_interrupt_is_there_as_long_as_its_cause(device):
    serving = copies(1)
    begin(device, serving)
    write(device, "interrupt_enable", 0)    # of HALTs of context 0
    write(device, "dispatch_enable", 1)
    assert not device.run(50)
    assert ask(device, place(3)) and device.run(1000) and device.run(10)
    assert len(answered(device)) == 1 and not device.run(50)
    attach(device, Policy(batch=5))    # more than a batch may have
    assert not device.run(10) and read(device, "dispatch_error") == 4
    write(device, "dispatch_enable", 2)
    assert device.run(10)
    attach(device, Policy(batch=1))
    write(device, "dispatch_error", 4)
    assert not device.run(50) and read(device, "dispatch_error") == 0


def test_without_the_dispatcher_contexts_are_as_ever(built, device):
    manifest, _ = built
    both = Pair((trains([1, 2, 3]), trains([3, 1])), HALVES)
    both.place(device.memory)
    ended = execute(device, both)
    turns = model.together(both.programs, manifest.data.latency, *MEMORY, rung=ended.rung, accelerator=SYSTEM)
    assert [each.cycles for each in ended.results] == [each.owned for each in turns]
    assert not ask(device, place(0)) or read(device, "dispatch_status") == 0
