"""Networks that yield behind each layer, and steps that yield within them: the same bits, and no race.

Covers: golden/lower/rewriting.py.
"""

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from golden.lower.rewriting import rewritten
from golden.lower.training.step import lower_step
from golden.lower.yields import cut, followed, places
from golden.vector.programs import length, load, register, scalar, single, vector
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.golden.lower.lowering import lower, lower_job
from hbfp.golden.machine.errors import MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.system import Accelerator

from .training.steps import sgd

SYSTEM = Accelerator(core=Design(rows=8, cols=8, depth=32, format=HBFPFormat(mantissa=8, block=(1, 8))), contexts=2,
                     x_words=512, w_words=512, v_words=512, p_words=256, row_words=4)


class Small(nn.Module):
    """A linear layer, GELU, a norm, a convolution, a linear layer."""

    def __init__(self):
        super().__init__()
        self.first, self.conv, self.last = nn.Linear(12, 16), nn.Conv1d(1, 3, 3), nn.Linear(42, 6)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        x = self.norm(torch.nn.functional.gelu(self.first(x)))
        return self.last(self.conv(x.unsqueeze(1)).flatten(1))


def small(seed):
    torch.manual_seed(seed)
    return Small(), (torch.randn(5, 12),)


def computed(lowered):
    """Whether every tensor is PyTorch's; waits order all accesses."""
    machine = Machine(lowered.program, races=True)
    machine.run()
    return all(np.array_equal(machine.get(name).view(np.uint32), np.ascontiguousarray(values).view(np.uint32))
               for name, values in lowered.expected.items())


def yields(lowered):
    """Numbers of the YIELDs."""
    return [number for number, each in enumerate(lowered.program.instructions) if each.opcode == Opcode.YIELD]


def test_a_yield_behind_each_layer():
    model, inputs = small(0)
    plain, made = (lower(model, inputs, SYSTEM.share(8), yields=each) for each in (False, True))
    assert computed(made) and not yields(plain)
    layers = made.program.layers
    assert yields(made) == [layer.stop for layer in layers[:-1]] and len(layers) > 3
    assert [layer.first for layer in layers[1:]] == [layer.stop + 1 for layer in layers[:-1]]
    assert len(made.program.instructions) <= len(plain.program.instructions) + len(yields(made))


def test_jobs_yield_behind_each_turn():
    models, inputs = zip(*map(small, (1, 2)), strict=True)
    made = lower_job(models, inputs, SYSTEM.share(8), yields=True)
    alone = lower(models[0], inputs[0], SYSTEM.share(8), yields=True)
    assert computed(made) and len(yields(made)) == len(yields(alone))


def ran(program):
    """Bits of all tensors behind a program; waits order all accesses."""
    machine = Machine(program, races=True)
    machine.run()
    return np.concatenate([machine.get(name).view(np.uint32).reshape(-1) for name in program.tensors])


@cache
def step():
    """A step of training, whose norm keeps rows in the vector unit from one instruction to the next."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    return lower_step(net, nn.functional.cross_entropy, sgd(), ((torch.randn(6, 12),), (torch.arange(6) % 4,)),
                      SYSTEM.share(8)).lowered.program


def test_a_yield_may_stand_wherever_nothing_is_under_way():
    program = step()
    may = [number for number in np.flatnonzero(places(program)).tolist() if number]
    assert len(may) > len(program.instructions) // 2
    made = cut(program, may)
    assert [each.opcode for each in made.program.instructions].count(Opcode.YIELD) == len(may)
    assert all(made.program.instructions[made.numbers[number] - 1].opcode == Opcode.YIELD for number in may)
    np.testing.assert_array_equal(ran(made.program), ran(program))


def test_a_yield_elsewhere_is_refused():
    """Where something is under way, before the first instruction, and behind the last."""
    program = step()
    count = len(program.instructions)
    for number in (0, int(np.flatnonzero(~places(program))[0]), count, count + 1):
        with pytest.raises(ValueError, match=f"^A YIELD must not stand before instruction {number}: "):
            cut(program, [number])


@pytest.mark.parametrize(("program", "reads", "leaves"), [
    ([vector(sum=3)], {("length", 0)}, {("scalar", 3)}), ([vector(to=2)], {("length", 0)}, {("register", 2)}),
    ([vector(register(1), scalar(4), to="out")], {("length", 0), ("register", 1), ("scalar", 4)}, set()),
    ([single(scalar(1), to=5)], {("scalar", 1)}, {("scalar", 5)}),
    ([length(9), load(1, 0.5), vector(scalar(1), to=0)], set(), {("length", 0), ("scalar", 1), ("register", 0)})])
def test_what_is_read_and_left_in_the_vector_unit(program, reads, leaves):
    """A pass leaves a scalar where it reduces, and nowhere else; what a program has set itself it does not find."""
    uses, _ = followed([each.encode() for each in program], 64)
    assert (set(uses.reads), set(uses.writes)) == (reads, leaves)


@pytest.mark.slow
def test_elsewhere_something_is_lost():
    """Of the places that are refused, each that has the vector unit's or the core's work before it fails."""
    program = step()
    refused = np.flatnonzero(~places(program)).tolist()
    failed = []
    for number in refused:
        with pytest.raises(ValueError, match=f"must not stand before instruction {number}: "):
            cut(program, [number])
        made = rewritten(program, {number: [Instruction(Opcode.YIELD, {}), program.instructions[number]]})
        try:
            np.testing.assert_array_equal(ran(made.program), ran(program))
        except (MachineError, AssertionError):
            failed.append(number)
    assert len(refused) > 10 and failed == refused


def test_layers_keep_their_instructions():
    program = step()
    may = [number for number in np.flatnonzero(places(program)).tolist() if number]
    made = cut(program, may)
    for old, new in zip(program.layers, made.program.layers, strict=True):
        own = [each.opcode for each in program.instructions[old.first:old.stop]]
        now = [each.opcode for each in made.program.instructions[new.first:new.stop] if each.opcode != Opcode.YIELD]
        assert own == now
        assert not now or made.program.instructions[new.first].opcode != Opcode.YIELD
