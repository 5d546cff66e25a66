"""hbfp.Device and the C library on registers that do nothing: what is written where, and what is refused in words."""

import re
from dataclasses import replace

import numpy as np
import pytest

import hbfp
from hbfp.index import machine
from hbfp.program import Region, Tensor
from hbfp.system import Share
from runtime.device import COUNTERS, Device, DeviceError

from .machines import HALT, MACHINE, PROGRAM, Registers

TWO = replace(MACHINE, contexts=2, x_words=256, w_words=256, v_words=512)
DONE, ERROR = 2, 4


@pytest.fixture
def device():
    with Device(Registers(), MACHINE) as found:
        yield found


def refused(line, name, call, *arguments, **options):
    with pytest.raises(DeviceError, match=f"^{re.escape(line)}$") as caught:
        call(*arguments, **options)
    assert caught.value.name == name


def test_it_stands_at_the_top():
    assert hbfp.Device is Device


def test_a_program_goes_where_it_is_told(device):
    """Instructions at a page, data in the page behind them, what was there before stays; all registers are set."""
    memory = device.transport.memory
    memory[:] = 0xEE
    loaded = device.load(PROGRAM, place=8192)
    base = 8192 + 8192    # 70 instructions are more than a page
    want = np.full_like(memory, 0xEE)
    for start, data in ((8192, PROGRAM.words()), (base, b"abc"), (base + 64, bytes(range(200)))):
        want[start:start + len(data)] = np.frombuffer(data, np.uint8)
    assert np.array_equal(memory, want) and device.end == base + PROGRAM.limit
    loaded.tell([5])
    device.transport.put("status", DONE)
    ended = loaded.run()
    has = device.transport.has
    assert [has(name) for name in ("program_low", "program_high", "base_low", "base_high", "limit", "instructions",
                                   "argument1", "argument2", "argument3", "interrupt_enable")] == [
        8192, 1, base, 1, 8192, 70, 5, 0xFFFFFFFF, None, 3]
    assert ended.cycles == 0 and set(ended.counters) == set(COUNTERS) and len(COUNTERS) == 23


def test_programs_lie_behind_each_other_and_in_files(device, tmp_path):
    PROGRAM.save(tmp_path / "a.hbfp")
    first = device.load(tmp_path / "a.hbfp")
    assert device.load(PROGRAM)._program.place == first._program.end == device.end // 2


@pytest.mark.parametrize("name", ["x", "apart", "one"])
def test_tensors_there_and_back(device, name):
    """Each number in its place, and nothing beside it."""
    loaded, tensor = device.load(PROGRAM), PROGRAM.tensors[name]
    memory, base = device.transport.memory, device.end - PROGRAM.limit
    memory[base:] = 0x55
    values = np.random.default_rng(1).standard_normal(tensor.shape).astype(np.float32)
    want = memory.copy()
    rows = values.reshape(-1, values.shape[-1] if values.shape else 1)
    for number, row in enumerate(rows):
        start = base + tensor.address + number * tensor.row_bytes(MACHINE)
        want[start:start + row.nbytes] = np.frombuffer(row.tobytes(), np.uint8)
    loaded.write(name, values)
    assert np.array_equal(memory, want)
    found = loaded.read(name)
    assert found.shape == tensor.shape and np.array_equal(found, values)
    loaded.write(name, -values, 64)
    assert np.array_equal(loaded.read(name, 64), -values)


def test_tensors_that_are_refused(device):
    loaded = device.load(PROGRAM)
    refused("hbfp_read: the program has no tensor of this name", "NAME", loaded.read, "y")
    refused("hbfp_write: the tensor has another number of values", "SIZE", loaded.write, "x", np.zeros(59))
    refused("hbfp_write: the tensor has another number of values", "SIZE", loaded.write, "x", np.zeros(61))
    refused("hbfp_read: the tensor is of weights as the array takes them, not of numbers", "LAYOUT", loaded.read, "w")
    refused("hbfp_write: an argument is none that this call takes", "ARGUMENT", loaded.write, "x", np.zeros(60), 8000)
    loaded.write("x", np.zeros(60), -64)


def test_machines_that_are_none():
    none = Registers()
    none.put("id", 0)
    refused("hbfp_open: no accelerator answers at this address: register id is 0x0, not 0x50464248", "DEVICE", Device,
            none, MACHINE)
    old = Registers()
    old.put("version", 2)
    refused("hbfp_open: made for another version of registers, instructions or program files: register version is 0x2, "
            "not 0x3", "VERSION", Device, old, MACHINE)
    refused("hbfp_open: the program was made for another machine: register contexts is 0x2, not 0x1", "MACHINE", Device,
            Registers(TWO), MACHINE)
    refused("hbfp_open: an argument is none that this call takes", "ARGUMENT", Device, Registers(address=2048), MACHINE)


def test_a_machine_that_hangs_is_no_hang():
    """Its status is busy for ever: neither opening it nor a wait takes for ever."""
    stuck = Registers()
    stuck.put("status", 1)
    refused("hbfp_open: the program did not end in time; it goes on until it is stopped", "TIMEOUT", Device, stuck,
            MACHINE)
    with Device(Registers(), MACHINE) as device:
        loaded = device.load(PROGRAM)
        loaded.start()
        device.transport.put("status", 1)
        refused("hbfp_wait: the program did not end in time; it goes on until it is stopped", "TIMEOUT", loaded.wait, 9)
        assert device.transport.slept == 9
        refused("hbfp_start: the context is busy", "BUSY", loaded.start)


def test_programs_for_other_machines(device):
    other = replace(MACHINE, core=replace(MACHINE.core, rows=16))
    refused("hbfp_load: the program was made for another machine: register rows is 0x8, not 0x80010", "MACHINE",
            device.load, replace(PROGRAM, accelerator=other))
    larger = replace(MACHINE, v_words=512)
    refused("hbfp_load: the program was made for another machine: register v_words is 0x100, not 0x200", "MACHINE",
            device.load, replace(PROGRAM, accelerator=larger))
    slower = replace(MACHINE, queue=2)    # no register says so
    refused("hbfp_load: the program was made for another machine: the hash of what registers do not say is "
            f"0x{machine(MACHINE):x}, not 0x{machine(slower):x}", "MACHINE", device.load,
            replace(PROGRAM, accelerator=slower))
    assert device.end == 0


def test_shares():
    """A program for half of a machine runs in half of it or more, in any context."""
    with Device(Registers(TWO, 1 << 18), TWO) as device:
        half = replace(PROGRAM, accelerator=TWO.share(8))
        for context in (0, 1):
            device.share(context, Share.of_all(8 * context, 8))
            device.load(half, context)
            device.load(replace(PROGRAM, accelerator=TWO.share(4)), context)
        device.load(half, 1, 0).start()
        assert (device.transport.has("share_first_1"), device.transport.has("share_size_1")) == (
            0x08080808, 0x08080808)
        device.share(1, Share((0, 0, 0, 8), (8, 8, 8, 4)))
        refused("hbfp_load: the program was made for another machine: register p_words is 0x80, not 0x100", "MACHINE",
                device.load, half, 1, 0)
        refused("hbfp_load: an argument is none that this call takes", "ARGUMENT", device.load, half, 2)
        refused("hbfp_share: an argument is none that this call takes", "ARGUMENT", device.share, 0,
                Share(size=(0,) * 4))
    with Device(Registers(), MACHINE) as device:
        device.share(0, Share())
        refused("hbfp_share: an argument is none that this call takes", "ARGUMENT", device.share, 0,
                Share.of_all(0, 8))


def test_memory_that_is_too_small():
    with Device(Registers(size=16383), MACHINE) as device:
        refused("hbfp_load: the memory is too small for the program: 16384 bytes are needed, and 16383 are there",
                "MEMORY", device.load, PROGRAM)
    with Device(Registers(size=16384), MACHINE) as device:
        device.load(PROGRAM)
        refused("hbfp_load: an argument is none that this call takes", "ARGUMENT", device.load, PROGRAM, place=64)
        refused("hbfp_load: the memory is too small for the program: 20480 bytes are needed, and 16384 are there",
                "MEMORY", device.load, PROGRAM, place=4096)


def test_files_that_are_none(device, tmp_path):
    for data, name, text in (
            (b"", "FORMAT", "no program file, or one without index.bin: write it anew"),
            (PROGRAM.to_bytes().replace(bytes(range(190, 200)), bytes(10)), "DAMAGED",
             "the program file is damaged: its check sum differs")):
        (tmp_path / "a.hbfp").write_bytes(data)
        refused(f"hbfp_load: {text}", name, device.load, tmp_path / "a.hbfp")


def test_ends_of_programs(device):
    loaded = device.load(PROGRAM)
    refused("hbfp_wait: nothing was started, or it was stopped", "IDLE", loaded.wait)
    for name, value in (("status", ERROR), ("cause", 4), ("error_pc", 3)):
        device.transport.put(name, value)
    refused("The program has stopped at instruction 3: DRAM answered with an error (bus)", "PROGRAM", loaded.run)


def test_a_bus_that_fails(device):
    """What the transport raises comes out; what it answers with an error is one."""
    loaded = device.load(PROGRAM)
    device.transport.failing = 0x44
    with pytest.raises(OSError, match="^bus$"):
        loaded.start()
    device.transport.failing = 0x60
    refused("hbfp_start: a register or the memory could not be read or written", "BUS", loaded.start)
    device.transport.failing = None
    loaded.start()


def test_arguments_and_seed(device):
    loaded = device.load(PROGRAM)
    refused("hbfp_argument: an argument is none that this call takes", "ARGUMENT", loaded.tell, range(9))
    loaded.tell(range(8), seed=3)
    loaded.start()
    assert [device.transport.has(f"argument{n}") for n in (1, 8)] == [0, 7]


def test_interrupts_that_nobody_raised(device):
    assert not device.interrupt() and device.taken == 0
    device.transport.put("interrupt_status", 1)
    assert device.interrupt() and device.taken == 1


def test_programs_without_tensors_and_with_none_to_load(device):
    empty = replace(PROGRAM, tensors={}, memory=(), instructions=(HALT,), arguments=(), limit=0)
    refused("hbfp_read: the program has no tensor of this name", "NAME", device.load(empty).read, "x")
    names = {"": Tensor(0, (1,)), "n" * 300: Tensor(64, (1,)), "\N{GREEK SMALL LETTER MU}": Tensor(128, (1,))}
    loaded = device.load(replace(PROGRAM, tensors=names, memory=(Region(128, np.float32(3).tobytes()),)))
    assert loaded.read("\N{GREEK SMALL LETTER MU}") == 3 and loaded.read("n" * 300).shape == (1,)
