"""Mapped memory, with a file in the place of /dev/mem, and a pipe's end in that of an interrupt."""

import mmap
import os
import re

import numpy as np
import pytest

from hbfp.isa.registers import BY_NAME, parameters
from runtime.device import Device
from runtime.transport import REGISTERS, Mapped

from .machines import MACHINE, PROGRAM

PAGE = 1 << 16
SIZE = 1 << 16


@pytest.fixture
def mem(tmp_path):
    """A file with registers in its third page of 64 KiB, which say what the machine is, and memory behind them."""
    data = np.zeros(3 * PAGE + SIZE, np.uint8)
    words = data[2 * PAGE:2 * PAGE + REGISTERS].view("<u4")
    for name, value in (parameters(MACHINE) | {"status": 2, "cycles": 99}).items():
        words[BY_NAME[name].address // 4] = value
    path = tmp_path / "mem"
    data.tofile(path)
    return path


def test_a_program_through_a_file(mem):
    """Registers and memory are where they were said to be, and the file has what was written."""
    values = np.random.default_rng(0).standard_normal((2, 3, 10)).astype(np.float32)
    with Device(Mapped(2 * PAGE, 3 * PAGE, SIZE, path=mem, address=0x4000_0000), MACHINE, interrupts=False) as device:
        loaded = device.load(PROGRAM, place=4096)
        loaded.write("x", values)
        assert loaded.run().cycles == 99
        assert np.array_equal(loaded.read("x"), values)
    found = np.fromfile(mem, np.uint8)
    words = found[2 * PAGE:2 * PAGE + REGISTERS].view("<u4")
    names = "program_low", "base_low", "control", "interrupt_enable"
    assert [words[BY_NAME[name].address // 4] for name in names] == [0x4000_1000, 0x4000_3000, 1, 0]
    assert found[3 * PAGE + 4096:][:64 * 70].tobytes() == PROGRAM.words()
    assert found[3 * PAGE + 3 * 4096 + 64:][:200].tobytes() == bytes(range(200))


def test_the_interrupt_of_uio(mem, tmp_path, monkeypatch):
    """It is let through, waited for, and taken; one that does not come takes no longer than was said."""
    uio = tmp_path / "uio"
    os.mkfifo(uio)
    with Mapped(2 * PAGE, 3 * PAGE, SIZE, path=mem, uio=uio, patience=0) as way:
        assert way.sleep() and way.address == 3 * PAGE    # a pipe gives back the word that lets one through
        monkeypatch.setattr(os, "write", lambda file, data: len(data))
        assert not way.sleep()
    with Mapped(2 * PAGE, 3 * PAGE, SIZE, path=mem) as way:
        assert not way.sleep()


@pytest.mark.parametrize("registers, memory, line", [
    (2048, PAGE, "Address of registers must be a multiple of {page}, not 0x800"),
    (PAGE, 3 * PAGE + 4, "Address of memory must be a multiple of {page}, not 0x30004")])
def test_addresses_that_are_refused(mem, registers, memory, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line.format(page=mmap.ALLOCATIONGRANULARITY))}$"):
        Mapped(registers, memory, SIZE, path=mem)


def test_memory_that_is_not_there(mem):
    with pytest.raises(OSError):
        Mapped(2 * PAGE, 3 * PAGE, SIZE, path=mem.with_name("none"))
    with pytest.raises((OSError, ValueError)):
        Mapped(2 * PAGE, 3 * PAGE, 10 * SIZE, path=mem)
