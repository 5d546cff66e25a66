"""The C library on the Verilated accelerator: whole networks, contexts, training, the dispatcher; faults, interrupts.

Covers: runtime/training.py, runtime/dispatch.py.
"""

import json
import re
from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest

from cosim.__main__ import main
from cosim.accelerator.board import Simulated, recognise
from cosim.accelerator.device import Timing
from golden.lower.command import lowered
from golden.lower.training.source import training
from golden.lower.training.step import lower_step
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp.isa.descriptors import Refusal
from hbfp.isa.instructions import Instruction, Opcode, Unit
from hbfp.program import Program, Region
from hbfp.system import Share
from runtime.device import Device, DeviceError
from runtime.dispatch import Dispatcher, Policy
from runtime.training import Training

from .built import ACCELERATOR, DISPATCHED, LEVEL, renewed
from .test_dispatched import OUTPUTS, PART, SIZE, copies, trains
from .test_training import FILE

pytestmark = pytest.mark.cosim
HALVES = Share.of_all(0, 8), Share.of_all(8, 8)
#: Where the accelerator sees its DRAM; addresses have 64 bits.
FIRST = 0x12_8000_0000


class Wild(Simulated):
    """A board whose interrupts are random: lost, without a reason, early and late."""
    pick, random, lost, spurious, told = Random(1), False, 0, 0, 0

    def sleep(self):
        if not self.random:
            return super().sleep()
        raised = self.device.run(self.pick.randint(1, 60))
        said = self.pick.random() < 0.5
        self.lost += raised and not said
        self.spurious += said and not raised
        self.told += said and raised
        return said


@pytest.fixture(scope="module")
def built():
    """One of each kind of machine, with as much memory as the largest program here needs."""
    ways = {each: Wild(each, 1 << 21, address=FIRST, level=LEVEL) for each in (ACCELERATOR, DISPATCHED)}
    yield ways
    for way in ways.values():
        way.close()


@pytest.fixture
def board(built):
    """From an accelerator to a board that has forgotten what was before."""
    def opened(accelerator=ACCELERATOR, **options):
        way = built[accelerator]
        renewed(way.device, 20, accelerator.beat)
        way.device.place(FIRST)
        way.random, way.memory[:] = False, 0xCD
        return Device(way, accelerator, **options)
    return opened


def equal(loaded):
    """Whether all bytes of a program's DRAM that it defines are those of the golden machine."""
    golden = Machine(loaded.program)
    golden.run()
    base = loaded._program.base
    found = loaded.device.transport.memory[base:base + loaded.program.limit].view(np.uint32)
    known = golden.dram.defined[:, 0]
    return known.any() and not np.flatnonzero((found != golden.dram.data) & known).size


def refused(name, text, call, *arguments):
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$") as caught:
        call(*arguments)
    assert caught.value.name == name


def test_c_recognises_digits(board):
    """A whole network, images included, which the host writes over others."""
    from golden.study.tasks import load

    network = lowered("mlp", ACCELERATOR)
    program, (want,) = network.program, (values for name, values in network.expected.items()
                                         if network.program.tensors[name].role == "output")
    _, _, images, classes = load("digits")
    other = replace(program, memory=tuple(
        Region(each.address, bytes(len(each.data))) if each.address == program.tensors["input"].address else each
        for each in program.memory))
    device = board()
    found, scores = recognise(device.transport, other, images.numpy(), classes.numpy())
    assert np.array_equal(scores.view(np.uint32), want.view(np.uint32))
    assert (found.images, found.right) == (360, (want.argmax(1) == classes.numpy()).sum()) and found.right > 300
    assert found.cycles > 10_000


@pytest.mark.parametrize("interrupts", [True, False])
def test_random_programs(board, interrupts):
    """By interrupt or by poll, one behind the other in the memory; counters are there at the end."""
    device = board(interrupts=interrupts)
    for seed in range(2):
        loaded = device.load(random_program(ACCELERATOR, seed, 10))
        ended = loaded.run()
        assert equal(loaded) and ended.cycles > 100
        assert ended.counters["load_completed"] == sum(
            each.unit == Unit.LOAD for each in loaded.program.instructions)
        loaded.device.transport.memory[loaded._program.base:][:loaded.program.limit] = 0xCD
    assert device.taken == 2 * interrupts


def test_a_thousand_random_interrupts(board):
    """What was told does not matter, what is does: no program is missed, and none is seen twice."""
    device, runs = board(), 0
    way, program = device.transport, random_program(ACCELERATOR, 3, 5)
    way.random, way.lost, way.spurious, way.told = True, 0, 0, 0
    loaded = device.load(program)
    ended = loaded.run()
    assert equal(loaded)
    while way.lost + way.spurious < 1000:
        way.memory[loaded._program.base:][:program.limit] = 0xCD
        loaded = device.load(program, place=0)
        assert loaded.run().cycles == ended.cycles and equal(loaded)
        runs += 1
    assert runs > 5 and way.lost > 1 and way.spurious > 500 and way.told > 1


def test_faults_have_texts(board):
    """A bus that fails, a memory that does not answer, an instruction that is none; the next program runs."""
    device = board()
    program = random_program(ACCELERATOR, 1, 10)
    loaded, model = device.load(program), device.transport.device
    at = loaded._program.base
    model.poison(at, at + program.limit)
    with pytest.raises(DeviceError, match=r"^The program has stopped at instruction \d+: DRAM answered with an error "
                                          r"\(bus\)$"):
        loaded.run()
    model.heal()
    model.silence(at, at + program.limit)
    loaded._program.watchdog = 500
    with pytest.raises(DeviceError, match=r"nothing went on for as long as the watchdog waits \(watchdog\)$"):
        loaded.run()
    renewed(model, 20, ACCELERATOR.beat)    # the memory owes an answer that never comes
    model.place(FIRST)
    halt = Instruction(Opcode.HALT, {})
    wrong = device.load(Program(accelerator=ACCELERATOR, limit=4096, instructions=(halt,)), place=0)
    device.transport.memory[:64] = 0xFF
    refused("PROGRAM", "The program has stopped at instruction 0: an instruction is illegal (illegal)", wrong.run)
    loaded = device.load(program, place=0)
    loaded.run()
    assert equal(loaded)


def test_a_program_that_does_not_end(board):
    """A memory that never answers, and no watchdog: the wait ends, the context is busy, a stop frees it."""
    device = board()
    program = random_program(ACCELERATOR, 1, 10)
    loaded, model = device.load(program), device.transport.device
    loaded._program.watchdog = 0
    model.silence(loaded._program.base, loaded._program.base + program.limit)
    loaded.start()
    refused("TIMEOUT", "hbfp_wait: the program did not end in time; it goes on until it is stopped", loaded.wait, 5)
    refused("BUSY", "hbfp_start: the context is busy", loaded.start)
    loaded.stop()
    refused("IDLE", "hbfp_wait: nothing was started, or it was stopped", loaded.wait)


def test_what_ran_before_is_stopped(board):
    device = board()
    loaded = device.load(random_program(ACCELERATOR, 1, 10))
    loaded.start()
    again = Device(device.transport, ACCELERATOR)
    loaded = again.load(loaded.program)
    loaded.run()
    assert equal(loaded)


def test_two_contexts(board):
    """Each has half of the memories; both are rung, and each is what it is alone."""
    device, loaded = board(DISPATCHED), []
    for context in (0, 1):
        device.share(context, HALVES[context])
        loaded.append(device.load(random_program(DISPATCHED.share(8), context, 5, yields=0.3), context))
    for each in loaded:
        each.start()
    for each in loaded[::-1]:
        each.wait()
    assert all(map(equal, loaded)) and 1 <= device.taken <= 2


def test_training(board, tmp_path, capsys):
    """From a file and its place, as the command keeps and prints them: losses of each step, and parameters behind all,
    are PyTorch's; a step that fails is done again."""
    (tmp_path / "mine.py").write_text(FILE)
    source = training(str(tmp_path / "mine.py"))
    names = {name: str(tmp_path / name) for name in ("mine.py", "step.hbfp", "a.json")}
    assert main(["train", names["mine.py"], *ACCELERATOR.words(), "--machine", "--steps", "1", "--quiet",
                 "--program", names["step.hbfp"], "--json", names["a.json"]]) == 0
    first, size = json.loads((tmp_path / "a.json").read_text())["place"]
    assert f"place:    {first}, {size} bytes\n" in capsys.readouterr().out
    batches = list(islice(source.batches(), 3))
    step = lower_step(source.model, source.loss, source.optimiser, batches[0], ACCELERATOR)
    device = board()
    loaded = device.load(names["step.hbfp"])
    steps = Training(loaded, range(first, first + size))
    for number, batch in enumerate(batches):
        for name, values in step.writes(batch).items():
            steps.write(name, values)
        assert {name: steps.further(name) for name in loaded.program.tensors} == {
            name: step.shift(name, step.arguments()) % (1 << 32) for name in loaded.program.tensors}
        told, seed = step.arguments()[2:], step.key
        if number == 1:
            model = device.transport.device
            model.poison(loaded._program.base, loaded._program.base + loaded.program.limit)
            with pytest.raises(DeviceError, match=r"\(bus\)$"):
                steps.step(told, seed)
            model.heal()
        steps.step(told, seed)
        expected = step.advance(batch)
        assert steps.done == number + 1
        assert np.array_equal(loaded.read("loss"), expected["loss"])
    names = [name for name in loaded.program.tensors if f"{name} after" in loaded.program.tensors]
    assert len(names) > 4
    for name in names:
        assert np.array_equal(steps.read(name), np.reshape(expected[f"{name} after"], steps.read(name).shape)), name


def test_the_dispatcher(board):
    """Batches of requests beside training; a queue that is full says so, and completions come once each."""
    device = board(DISPATCHED)
    way, model = device.transport, device.transport.device
    model.set_timing(Timing(20, DISPATCHED.beat))
    for context in (0, 1):
        device.share(context, HALVES[context])
    serving, trained = device.load(copies(2)), device.load(trains((3, 2, 4)), 1)
    assert serving.program.accelerator == PART
    dispatcher = Dispatcher(device, serving, Policy(batch=2, timeout=500, training=True))
    trained.start()
    asked = taken = 0
    found, base = [], serving._program.base
    while asked < 40:
        if dispatcher.request(asked * SIZE, OUTPUTS + asked * SIZE, asked):
            asked += 1
        else:
            taken += 1
            assert way.sleep()    # until one is done
            assert device.interrupt() and not model.run(1)    # it would last
            found += dispatcher.completions()
    for _ in range(20):
        way.sleep() and device.interrupt()
        found += dispatcher.completions()
    trained.wait()
    assert taken and [each.tag for each in found] == list(range(40))
    assert all(each.arrived < each.started < each.finished and not each.failed for each in found)
    data = way.memory[base:base + serving.program.limit]
    assert np.array_equal(data[OUTPUTS:OUTPUTS + 40 * SIZE], data[:40 * SIZE])
    dispatcher.detach()
    refused("ARGUMENT", "hbfp_attach: an argument is none that this call takes", Dispatcher, device, serving,
            Policy(batch=64))


@pytest.mark.parametrize("cycles", [20, 20_000])
def test_answers_to_who_asked_before_are_forgotten(board, cycles):
    """Requests are done, or their first batch is under way, when a driver opens the device anew."""
    device = board(DISPATCHED)
    way, found = device.transport, []
    device.share(0, HALVES[0])
    old = Dispatcher(device, device.load(copies(2)), Policy(batch=2))
    for tag in range(4):
        assert old.request(tag * SIZE, OUTPUTS + tag * SIZE, tag)
    way.device.idle(cycles)
    again = Device(way, DISPATCHED)
    again.share(0, HALVES[0])
    new = Dispatcher(again, again.load(copies(2)), Policy(batch=1, inference=False))
    assert new.completions() == []
    if cycles > 20:    # those that no batch had taken yet are still in the queue of the device
        new = Dispatcher(again, again.load(copies(2)), Policy(batch=1))
        assert new.request(0, OUTPUTS, 77)
        for _ in range(20):
            way.sleep() and again.interrupt()
            found += new.completions()
        assert [each.tag for each in found] == [77]


def test_a_ring_of_descriptors(board):
    """More laps than one, a full ring, numbers that begin where the device is; a place that is refused says why."""
    device = board(DISPATCHED)
    way = device.transport
    device.share(0, HALVES[0])
    serving = device.load(copies(2))
    dispatcher = Dispatcher(device, serving, Policy(batch=2, timeout=200))
    base, found, place = serving._program.base, [], 0x80000
    refused("ARGUMENT", "hbfp_ring: an argument is none that this call takes", dispatcher.ring, place + 64, 4)
    refused("ARGUMENT", "hbfp_ring: an argument is none that this call takes", dispatcher.ring, place, 3)
    refused("MEMORY", f"hbfp_ring: the memory is too small for the program: {(1 << 21) + 512} bytes are needed, and "
            f"{1 << 21} are there", dispatcher.ring, 1 << 21, 4)
    for last in (OUTPUTS + 63 * SIZE, OUTPUTS + 10 * SIZE):
        dispatcher.ring(place, 4, 0, last)
        asked = full = 0
        while asked < 40:
            if dispatcher.lay(asked * SIZE, OUTPUTS + asked * SIZE, asked):
                asked += 1
                continue
            full += 1
            dispatcher.tell()
            way.sleep() and device.interrupt()
            found += dispatcher.completions()
        dispatcher.tell()
        for _ in range(20):
            way.sleep() and device.interrupt()
            found += dispatcher.completions()
        assert full and sorted(each.tag for each in found) == list(range(40))
        good = {each.tag for each in found if not each.refused}
        assert good == {n for n in range(40) if OUTPUTS + n * SIZE <= last}
        assert {each.refused for each in found} <= {0, Refusal.OUTSIDE}
        data = way.memory[base:base + serving.program.limit]
        assert all(np.array_equal(data[OUTPUTS + n * SIZE:][:SIZE], data[n * SIZE:][:SIZE]) for n in good)
        found.clear()
