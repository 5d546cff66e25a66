"""Registers and memories of a Verilated accelerator from outside: what is there when power comes makes no difference.
"""

import numpy as np
import pytest

from cosim.accelerator.device import Timing
from cosim.accelerator.host import execute, place, read, ring, room
from cosim.accelerator.state import StateDevice
from cosim.emit import emit_accelerator
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp.isa.instructions import Unit
from hbfp.isa.registers import Cause
from tests.cases import sweep

from .built import ACCELERATOR, DISPATCHED, LEVEL, SIZE

pytestmark = pytest.mark.cosim


@pytest.fixture(scope="module", params=[ACCELERATOR, pytest.param(DISPATCHED, marks=pytest.mark.slow)],
                ids=["one context", "dispatched"])
def built(request):
    """An accelerator, its DRAM, and what a program leaves there: golden, and where it is defined."""
    system, memory = request.param, np.zeros(SIZE, np.uint8)
    manifest, program = emit_accelerator(system), random_program(system, 3)
    machine = Machine(program)
    machine.run()
    with StateDevice(manifest.verilog, manifest.top, beat=system.beat, memory=memory, burst=system.burst,
                     contexts=system.contexts, level=LEVEL) as device:
        device.set_timing(Timing(7, 40))
        yield device, program, machine.dram


def differs(device, program, dram):
    """Words of DRAM that are not golden."""
    base, known = room(program)[1], dram.defined[:, 0]
    return int(((device.memory[base:base + program.limit].view(np.uint32) != dram.data) & known).sum())


@pytest.mark.parametrize("seed", sweep(20, range(100)))
def test_what_is_there_when_power_comes_makes_no_difference(built, seed):
    """Every bit of every register and memory is random before the reset: DRAM and cycles are as ever."""
    device, program, dram = built
    first = execute_anew(device, program, lambda: None)
    found = execute_anew(device, program, lambda: device.scatter(seed))
    assert found.cause is None and differs(device, program, dram) == 0
    assert found.times == first.times and found.counters == first.counters


def execute_anew(device, program, change):
    """Reset a device whose state was changed, and run the program."""
    change()
    device.reset()
    place(program, device.memory)
    return execute(device, program)


def state(device, name):
    """A register or memory by its name."""
    return next(each for each in device.states if each.name == name)


def run_to(device, program, cycles):
    """Begin a program anew, and stop somewhere."""
    device.reset()
    place(program, device.memory)
    ring(device, program)
    device.idle(cycles)


def test_a_bit_that_turns_round_is_seen(built):
    """In some words of V it comes to DRAM where there is no parity; in the limit it is an error."""
    device, program, dram = built
    words, wrong = state(device, "v_memory.ram0.contents" if program.accelerator.single else "v_memory.ram.contents"), 0
    for word in range(0, words.places, words.places // 8):
        run_to(device, program, 1500)
        words.flip(word, 77)
        assert device.run(100_000)
        if program.accelerator.parity:
            wrong += ended(device) == (4, Cause.PARITY)
        else:
            wrong += differs(device, program, dram) > 0
    assert wrong > 0
    run_to(device, program, 200)
    limit = state(device, "registers.limit" if device.contexts == 1 else "registers.limit_value")
    limit.flip(0, program.limit.bit_length() - 1)
    assert device.run(100_000) and ended(device) == (4, Cause.ADDRESS)


def ended(device):
    """How the program has ended."""
    return read(device, "status"), read(device, "cause")


#: Who reads a memory.
READERS = {"v": {Unit.CONVERT, Unit.VECTOR, Unit.STORE, Unit.DRAIN}, "x": {Unit.MULTIPLY}, "w": {Unit.WEIGHTS},
           "p": {Unit.VECTOR}}


@pytest.mark.parametrize("memory", READERS)
def test_no_bit_of_a_memory_turns_round_in_silence(built, memory):
    """Of words, of the bits of parity, and of what was read: DRAM is golden, or the program ends with its cause.

    The instruction is one of a unit that reads this memory. Behind a reset the program runs as ever.
    """
    device, program, dram = built
    if not program.accelerator.parity:
        pytest.skip("no parity")
    states = [each for each in device.states if each.part == f"{memory}_memory" and (
        each.places > 1 or each.name.endswith("r_data"))]
    pick, told = np.random.default_rng(ord(memory)), dict.fromkeys({each.places > 1 for each in states}, 0)
    for number in range(24):
        each = states[number % len(states)]
        run_to(device, program, int(pick.integers(100, 1900)))
        for word in range(each.places) if number < 12 else [int(pick.integers(each.places))]:
            each.flip(word, int(pick.integers(each.bits)))
        assert device.run(100_000)
        if (how := ended(device)) == (4, Cause.PARITY):
            told[each.places > 1] += 1
            assert program.instructions[read(device, "error_pc")].unit in READERS[memory]
        else:
            assert how == (2, 0) and differs(device, program, dram) == 0
    assert min(told.values()) > 0, told
    assert execute_anew(device, program, lambda: None).cause is None and differs(device, program, dram) == 0


def test_states_are_registers_and_memories(built):
    device, *_ = built
    parts = {each.part for each in device.states}
    assert {"registers", "control", "reader", "writer", "fetch", "issue", "load", "store", "convert", "core"} <= parts
    assert sum(each.bits * each.places for each in device.states) > 100_000
    for each in device.states:
        assert each.data.shape == (each.places, each.data.shape[1]) and 8 * each.data.shape[1] >= each.bits
