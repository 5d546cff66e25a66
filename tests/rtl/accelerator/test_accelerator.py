"""The accelerator at its buses: transfers against the golden machine, registers, faults, the watch-dog.

Covers: rtl/accelerator/control.py, rtl/accelerator/registers.py, rtl/accelerator/reader.py, rtl/accelerator/writer.py,
rtl/accelerator/fetch.py, rtl/accelerator/load.py, rtl/accelerator/store.py, rtl/accelerator/axi.py.
"""

from contextlib import suppress

import numpy as np
import pytest

from cosim.accelerator.device import BusError, Device, Timing
from gen.emit import Emitter, verilog
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.isa.registers import BY_NAME, REGISTERS, Access, Cause, parameters
from hbfp.program import Program, Region
from hbfp.system import Accelerator
from rtl.accelerator.accelerator import Accelerator as Top

pytestmark = pytest.mark.cosim
SYSTEM = Accelerator(core=Design(rows=8, depth=16, format=HBFPFormat(block=(1, 16), mantissa=4)), v_words=128,
                     x_words=64, w_words=64, p_words=32, reads=3, burst=6, row_words=2, vector_rows=2)
SIZE, CODE, BASE, LIMIT = 1 << 17, 0x400, 0x8000, 0x10000
HALT = Instruction(Opcode.HALT, {})


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    emitter = Emitter()
    top = emitter.convert(Top.of(SYSTEM))
    text = tmp_path_factory.mktemp("accelerator") / f"{top}.v"
    text.write_text(verilog(emitter))
    memory = np.zeros(SIZE, np.uint8)
    with Device(text, top, beat=SYSTEM.beat, memory=memory, burst=SYSTEM.burst, level="-O1") as device:
        yield device


@pytest.fixture
def device(opened):
    opened.heal()
    opened.reset()
    opened.set_pauses(0)
    opened.set_timing(Timing(10, SYSTEM.beat))
    opened.memory[:] = np.random.default_rng(0).integers(0, 256, SIZE)
    return opened


def write(device, **values):
    for name, value in values.items():
        assert device.write(BY_NAME[name].address, value) == 0


def read(device, *names):
    values = tuple(device.read(BY_NAME[name].address) for name in names)
    return values if len(values) > 1 else values[0]


def start(device, instructions, **registers):
    """Put a program into DRAM and ring the doorbell; words may be numbers."""
    code = b"".join((one if isinstance(one, int) else one.encode()).to_bytes(64, "little") for one in instructions)
    device.memory[CODE:CODE + len(code)] = np.frombuffer(code, np.uint8)
    write(device, **{"program_low": CODE, "program_high": 0, "base_low": BASE, "base_high": 0, "limit": LIMIT,
                     "instructions": len(instructions), "watchdog": 3000, "interrupt_enable": 3, "interrupt_status": 3}
          | registers)
    write(device, control=1)


def finish(device, limit=50_000):
    """The status after the interrupt, (done, cause, error_pc)."""
    assert device.run(limit)
    status, cause, number = read(device, "status", "cause", "error_pc")
    assert status in (2, 4) and read(device, "interrupt_status") == status >> 1
    return status == 2, cause, number


def transfer(opcode, waits=(), **values):
    counts = {f"count{n}": 1 for n in range(3)}
    return Instruction(opcode, counts | values, tuple(Wait(*wait) for wait in waits))


def load(waits=(), **values):
    return transfer(Opcode.LOAD, waits, **values)


def store(waits=(), **values):
    return transfer(Opcode.STORE, waits, **values)


def strides(rng, least, counts, unit, spread):
    """Strides of three loops, multiples of a unit, that keep pieces of ``least`` apart; and what all of it reaches."""
    found = []
    for count in counts:
        found.append(least + unit * int(rng.integers(0, spread)))
        least = found[-1] * (count - 1) + least
    return found, least


def copies(rng, count):
    """Loads and stores of words and runs, each after all before it; reads below 0x8000, writes above."""
    words, lanes = SYSTEM.v_words, SYSTEM.lanes
    found = [load(offset=32 * int(rng.integers(0, 500)), count0=words)]
    given = {Unit.LOAD: 1, Unit.STORE: 0}
    for _ in range(count):
        waits = [(unit, done) for unit, done in given.items() if done]
        elements, loads = (int(value) for value in rng.integers(0, 2, 2))
        counts = [int(rng.integers(1, 4)) for _ in range(3)]
        run = int(rng.integers(1, lanes + 1))
        if not elements:
            counts[0] = int(rng.integers(1, 12))
        size, room = (run, words * lanes) if elements and loads else (1, words)
        buffer, far = strides(rng, size, counts, 1, 5 if elements else 1)
        dram, end = strides(rng, 4 * run if elements else 32, counts, 4 if elements else 32, 9 if elements else 1)
        if not elements:    # rows of words lie together
            (buffer[1:], far), (dram[1:], end) = strides(rng, counts[0], counts[1:], 1, 5), strides(
                rng, 32 * counts[0], counts[1:], 32, 30)
        if loads and rng.random() < 0.3:    # backwards, in other words the same
            dram[2] = -dram[2]
        low = (0 if loads else 0x8000) - min(0, dram[2] * (counts[2] - 1))
        values = {"elements": elements, "run": elements * run, "base": int(rng.integers(0, room - far + 1)),
                  "offset": low + (4 if elements else 32) * int(rng.integers(0, (0x7800 - end) // 32))}
        for n in range(3):
            values |= {f"count{n}": counts[n]}
            if elements or n:
                values |= {f"dram{n}": dram[n], f"buffer{n}": buffer[n]}
        unit = Unit.LOAD if loads else Unit.STORE
        found.append((load if loads else store)(waits, **values))
        given[unit] += 1
    return [*found, store([(Unit.LOAD, given[Unit.LOAD])], offset=0xF000, count0=words), HALT]


@pytest.mark.parametrize("seed, timing, pauses", [(0, Timing(1, 64), 0), (1, Timing(40, 24), 0.4), (2, Timing(9, 32), 0),
                                                  (3, Timing(3, 16), 0.1)])
def test_transfers_are_those_of_the_golden_machine(device, seed, timing, pauses):
    """Every byte of DRAM, and what V holds at the end."""
    rng = np.random.default_rng(seed)
    device.set_timing(timing)
    device.set_pauses(pauses, seed + 1)
    for _ in range(3):
        instructions = copies(rng, 40)
        machine = Machine(Program(accelerator=SYSTEM, instructions=instructions, limit=LIMIT,
                                  memory=[Region(0, device.memory[BASE:BASE + LIMIT].tobytes())]))
        start(device, instructions)
        before = device.memory.copy()
        machine.run()
        assert finish(device) == (True, 0, 0)
        expected = np.frombuffer(machine.dram.get(0, LIMIT), np.uint8)
        assert np.array_equal(device.memory[BASE:BASE + LIMIT], expected)
        assert np.array_equal(np.delete(device.memory, range(BASE, BASE + LIMIT)),
                              np.delete(before, range(BASE, BASE + LIMIT)))
        for unit in (Unit.LOAD, Unit.STORE):
            given = sum(one.unit == unit for one in instructions)
            assert read(device, f"{unit.name.lower()}_completed") == given
        assert read(device, "words_loaded", "words_stored") == moved(instructions)


def moved(instructions):
    """Beats read and written."""
    beats = {Opcode.LOAD: 0, Opcode.STORE: 0}
    for one in instructions[:-1]:
        for i2, i1, i0 in np.ndindex(*(one[f"count{n}"] for n in (2, 1, 0))):
            first = one["offset"] + i2 * one["dram2"] + i1 * one["dram1"] + i0 * one["dram0"]
            beats[one.opcode] += -(-(first % 32 // 4 + one["run"]) // 8) if one["elements"] else 1
    return tuple(beats.values())
