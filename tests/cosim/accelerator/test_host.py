"""Programs on the Verilated accelerator: every word of DRAM as on the golden machine, every cycle as in the model.

Covers: cosim/accelerator/host.py, golden/perf/accelerator/bus.py, golden/perf/accelerator/convert.py,
golden/perf/accelerator/decode.py, golden/perf/accelerator/drain.py, golden/perf/accelerator/load.py,
golden/perf/accelerator/machine.py, golden/perf/accelerator/model.py, golden/perf/accelerator/multiply.py,
golden/perf/accelerator/pieces.py, golden/perf/accelerator/programs.py, golden/perf/accelerator/queue.py,
golden/perf/accelerator/rows.py, golden/perf/accelerator/store.py, golden/perf/accelerator/units.py,
golden/perf/accelerator/vector.py, golden/perf/accelerator/walk.py, golden/perf/accelerator/weights.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.accelerator.device import BusError, Timing
from cosim.accelerator.host import execute, finish, place, read, ring, room, write
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from golden.perf.accelerator.model import times
from hbfp.isa.instructions import Instruction, Opcode, Unit
from hbfp.isa.registers import Cause
from hbfp.program import Program
from tests.cases import sweep

from .built import ACCELERATOR, FPGA, opened

pytestmark = pytest.mark.cosim
#: Random programs, each at a random latency and bandwidth.
SEEDS = range(12)
IDLE = Program(accelerator=ACCELERATOR, limit=4096, instructions=[
    *[Instruction(Opcode.NOP, {"unit": unit}) for unit in Unit], Instruction(Opcode.HALT, {})])


@pytest.fixture(scope="module")
def model():
    manifest, device = opened()
    with device:
        yield manifest, device


def matches(device, program, latency):
    """Run a program; whether DRAM is the golden machine's, and the model's times are those of the run."""
    rng = np.random.default_rng(len(program.instructions))
    timing = Timing(int(rng.integers(1, 60)), int(rng.integers(4, 70)))
    device.set_timing(timing)
    place(program, device.memory)
    result = execute(device, program)
    machine = Machine(program)
    machine.run()
    size, base = room(program)
    known = machine.dram.defined[:, 0]
    found = device.memory[base:size].view(np.uint32)
    return (result.cause is None and np.array_equal(found[known], machine.dram.data[known]),
            result.times == times(program, latency, timing.latency, timing.bandwidth))


@pytest.mark.parametrize("seed", sweep(3, SEEDS))
def test_random_programs(model, seed):
    manifest, device = model
    assert matches(device, random_program(ACCELERATOR, seed), manifest.data.latency) == (True, True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_many_random_programs(model, first):
    manifest, device = model
    for seed in range(first, first + 50):
        program = random_program(ACCELERATOR, seed)
        assert matches(device, program, manifest.data.latency) == (True, True), seed


@pytest.mark.slow
def test_random_programs_for_an_fpga():
    manifest, device = opened(FPGA)
    with device:
        for seed in range(40):
            program = random_program(FPGA, seed)
            assert matches(device, program, manifest.data.latency) == (True, True), seed


def test_counters_are_those_of_the_times(model):
    manifest, device = model
    program = random_program(ACCELERATOR, 3)
    place(program, device.memory)
    result = execute(device, program)
    units = np.array([each.unit or 0 for each in program.instructions])
    for unit in Unit:
        name = unit.name.lower()
        assert result.counters[f"{name}_completed"] == (units == unit).sum()
        assert result.counters[f"{name}_waiting"] == result.times.waited[units == unit].sum()
    assert result.cycles == result.times.cycles


def test_errors_are_told_and_the_next_program_runs(model):
    """A program without HALT, and one that loads from poisoned bytes; reads that never answer, and the watch-dog."""
    manifest, device = model
    place(IDLE, device.memory)
    endless = replace(IDLE, instructions=IDLE.instructions[:-1])
    result = execute(device, endless)
    assert (result.cause, result.error_pc, result.times) == (Cause.END, 7, None)
    load = replace(IDLE, instructions=[Instruction(Opcode.LOAD, {"count0": 2, "count1": 1, "count2": 1}),
                                       IDLE.instructions[-1]])
    place(load, device.memory)
    _, base = room(load)
    device.poison(base, base + 1)
    result = execute(device, load)
    assert (result.cause, result.error_pc) == (Cause.BUS, 0)
    device.heal()
    device.silence(base, base + 1)
    result = execute(device, load, watchdog=500)
    assert result.cause == Cause.WATCHDOG and 500 < result.cycles < 1000
    device.heal()
    device.reset()
    result = execute(device, load)
    assert result.cause is None and result.counters["words_loaded"] == 2


def test_a_program_that_hangs_is_an_error(model, monkeypatch):
    manifest, device = model
    monkeypatch.setattr("hbfp.cosim.accelerator.host._STRETCH", 2000)
    load = replace(IDLE, instructions=[Instruction(Opcode.LOAD, {"count0": 2, "count1": 1, "count2": 1}),
                                       IDLE.instructions[-1]])
    place(load, device.memory)
    _, base = room(load)
    device.silence(base, base + 1)
    ring(device, load, watchdog=0)
    with pytest.raises(BusError, match=r"^Cycle \d+: no interrupt, and nothing has gone on for 2000 cycles$"):
        finish(device)
    device.heal()
    device.reset()
    write(device, "watchdog", 7)
    assert read(device, "watchdog") == 7


def test_dram_around_a_program_stays(model):
    """Instructions lie in front of the base, and nothing else is written."""
    manifest, device = model
    program = random_program(ACCELERATOR, 5)
    place(program, device.memory)
    before = device.memory.copy()
    execute(device, program)
    size, base = room(program)
    assert np.array_equal(device.memory[:base], before[:base]) and np.array_equal(device.memory[size:], before[size:])
    assert base == -(-64 * len(program.instructions) // 4096) * 4096 and size == base + program.limit
