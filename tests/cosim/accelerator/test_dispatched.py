"""The dispatcher in front of two contexts: requests in batches beside training, each bit, each cycle; faults.

Covers: rtl/accelerator/front.py, rtl/accelerator/control.py, rtl/accelerator/registers.py,
golden/perf/accelerator/colocate/dispatched.py, cosim/accelerator/dispatched.py.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from cosim.accelerator.device import Timing
from cosim.accelerator.dispatched import answered, ask, attach, counter
from cosim.accelerator.host import prepare, put, read, room, write
from golden.perf.accelerator import model
from golden.perf.accelerator.colocate.dispatched import Machine, quanta, serve
from golden.perf.dispatch.twin import Request, Twin
from golden.spec.dispatch import Counter, Policy
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.program import Program, Region
from hbfp.system import Share
from rtl.accelerator.front import unit

from .built import TWO, opened

pytestmark = pytest.mark.cosim
SYSTEM = replace(TWO, dispatch=16, dispatch_batch=4)
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
    """It has forgotten what was before."""
    _, device = built
    device.heal()
    device.reset()
    device.set_timing(Timing(*MEMORY))
    return device


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


@pytest.mark.parametrize("seed", range(8))
def test_requests_at_random_times_beside_training(built, device, seed):
    """Each completion to the cycle, of batches of every fill; training's end, too."""
    pick = Random(seed)
    batch = pick.randint(1, 4)
    serving = copies(batch)
    training = trains([pick.randint(1, 9) for _ in range(12)]) if seed else None
    policy = Policy(batch=batch, timeout=pick.choice((0, 300, 1000)), priority=pick.random() < 0.7,
                    share=pick.choice((16, 16, 9)))
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
