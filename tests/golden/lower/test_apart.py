"""Words of pixels come side by side, whatever lies between lines, and in fewer bursts than word by word."""

from dataclasses import replace

import numpy as np
import pytest

from golden.lower.apart import set_apart
from golden.lower.builder import Builder
from golden.lower.memory import Value, located
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.program import Program
from hbfp.system import Accelerator

pytestmark = pytest.mark.usefixtures("costs")

MACHINE = Accelerator(core=Design(format=HBFPFormat(block=(1, 8)), rows=8, cols=8), v_words=256, row_words=8)


@pytest.mark.parametrize(("sides", "stride", "machine", "whole"), [
    ((3, 4), 1, MACHINE, True), ((5, 6), 2, MACHINE, True), ((40, 1), 1, MACHINE, True), ((3, 5), 2, MACHINE, False),
    ((2, 6), 2, replace(MACHINE, v_words=64), False)])
def test_words_come_side_by_side(sides, stride, machine, whole):
    """Of two images with a border, and of what lies in V in several pieces, too; else each word is a burst."""
    build, (high, wide), channels = Builder(machine), sides, 24
    rng = np.random.default_rng(1)
    given = rng.standard_normal((2, high, wide, channels)).astype(np.float32)
    value = build.dram.constant(given).view(lambda where: where.permute(0, 3, 1, 2))
    across = -(-wide // stride)
    shape = 3, stride, 2, high + 2, across + 1, 8
    home = build.dram.home(int(np.prod(shape[:-1])), 8, 8)
    build.dram.zeros(home)
    strides = [int(np.prod(shape[at + 1:])) for at in range(6)]
    where = located(shape, strides, home.address)

    def place(word, first):
        return Value(where[word, first, :, 1:-1, :-(-(wide - first) // stride)], home)
    set_apart(build, value, stride, place)
    build.schedule.halt()
    program = Program(accelerator=machine, instructions=tuple(build.schedule.instructions), limit=4 * build.dram.end,
                      memory=tuple(sorted(build.dram.regions, key=lambda each: each.address)), tensors={}, layers=())
    device = Machine(program, races=True)
    device.run()
    found = device.dram.get(4 * home.address, 4 * int(np.prod(shape)))
    found = np.frombuffer(found, np.float32).reshape(shape)
    for word in range(3):
        for first in range(stride):
            own = given[:, :, first::stride, 8 * word:8 * word + 8]
            assert np.array_equal(found[word, first, :, 1:-1, :own.shape[2]], own)
    moves = [each for each in program.instructions if each.opcode in (Opcode.LOAD, Opcode.STORE)]
    assert all(each["count0"] % across == 0 for each in moves if not each["memory"]) == whole
    assert any(each.opcode == Opcode.VECTOR for each in program.instructions) == whole
