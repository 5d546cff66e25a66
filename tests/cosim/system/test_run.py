"""A RISC-V CPU beside the accelerator, both in Verilog: firmware recognises digits; firmware that is wrong is no hang.

Covers: cosim/system/top.py, cosim/system/running.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.accelerator.device import BusError
from cosim.simulate.verilator import BuildError
from cosim.system import firmware, run
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.program import Program, Tensor
from tests.cosim.accelerator.built import ACCELERATOR

from .test_firmware import elf

pytestmark = pytest.mark.cosim
#: A quick build, whose runs are quick enough.
LEVEL = "-O1"


@pytest.fixture(autouse=True)
def tools():
    try:
        run.picorv32(), firmware.compiler()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def network():
    """A small network for the first digits, images, classes of which it knows five of eight, and the output."""
    import torch

    from golden.lower.lowering import lower
    from golden.study.tasks import load

    torch.manual_seed(0)
    images = load("digits")[2][:8]
    lowered = lower(torch.nn.Sequential(torch.nn.Linear(64, 10)).eval(), (images,), ACCELERATOR)
    want, = (values for name, values in lowered.expected.items()
             if lowered.program.tensors[name].role == "output")
    classes = want.argmax(1)
    classes[:3] = (classes[:3] + 1) % 10
    return lowered.program, images.numpy(), classes, want


def recognised(ran, want):
    """Every number is PyTorch's, and the count is; the cycles of all that the firmware tells of."""
    assert ran.said.startswith("5 of 8 digits recognised; ") and ran.code == 0
    assert np.array_equal(ran.scores.view(np.uint32), want.view(np.uint32))
    accelerator, whole = (int(word) for word in ran.said.partition("; ")[2].split() if word.isdigit())
    assert 100 < accelerator < whole < ran.cycles
    return whole


def test_firmware_recognises_digits(network):
    """Every number is PyTorch's, and the count is; an interrupt ends a sleep long before its 10000 cycles."""
    program, images, classes, want = network
    took = []
    for interrupts in (True, False):
        ran = run.recognise(program, images, classes, interrupts=interrupts, level=LEVEL, limit=3_000_000)
        took.append(recognised(ran, want))
    assert abs(took[0] - took[1]) < 5000


def test_firmware_for_another_machine(network, monkeypatch):
    other = firmware.build(replace(ACCELERATOR, queue=2))
    monkeypatch.setattr(run.firmware, "build", lambda accelerator: other)
    ran = run.recognise(*network[:3], level=LEVEL, limit=3_000_000)
    assert (ran.said, ran.code) == ("the program was made for another machine\n", 7)


@pytest.mark.parametrize("words, line", [
    ((0,), "Cycle [0-9]+: the CPU has stopped at an illegal instruction"),
    ((0xB0000537, 0x00052503), "Cycle [0-9]+: the CPU asks for address 0xb0000000, where nothing is"),
    ((0x0000006F,), "Cycle 5000: the firmware has not ended")])
def test_firmware_that_is_wrong(monkeypatch, tmp_path, words, line):
    """An instruction that is none, an address where nothing is (lui, lw), and a loop."""
    program = Program(accelerator=ACCELERATOR, limit=4096, instructions=(Instruction(Opcode.HALT, {}),),
                      tensors={"y": Tensor(0, (1, 1), role="output")})
    (tmp_path / "wrong.elf").write_bytes(elf((0, words)))
    monkeypatch.setattr(run.firmware, "build", lambda accelerator: tmp_path / "wrong.elf")
    with pytest.raises(BusError, match=f"^{line}$"):
        run.recognise(program, np.zeros(1), np.zeros(1), level=LEVEL, limit=5000)


def test_a_cpu_that_is_missing(monkeypatch):
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match=r"^pythondata-cpu-picorv32 is missing: pip install 'hbfp\[cpu\]'$"):
        run.picorv32()
