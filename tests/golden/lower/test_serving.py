"""Programs that serve: each request's answer, wherever inputs and answers lie, is what PyTorch says of it alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from golden.lower.errors import LoweringError
from golden.lower.graph import reference
from golden.lower.serving import PAGE, lower_serving
from golden.machine.dram import Dram
from golden.machine.errors import MachineError
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from tests.cases import cover

SYSTEM = Accelerator(core=Design(rows=4, cols=4, depth=32, format=HBFPFormat(mantissa=8, block=(1, 4))), contexts=2,
                     dispatch=8, dispatch_batch=4).share(8)
SQUARE = replace(SYSTEM, core=replace(SYSTEM.core, format=HBFPFormat(mantissa=8, block=(4, 4))))


class _Sum(nn.Module):
    """Two inputs, two outputs, of several rows."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(6, 5), nn.Linear(3, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, 2, 6), (N, 3) -> (N, 2, 5), (N, 5)."""
        both = self.one(x) + self.two(y)[:, None]
        return torch.relu(both), both.sum(1)


MODELS = {"linear": (lambda: nn.Linear(9, 6), ((9,),)),
          "images": (lambda: nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(100, 3)),
                     ((1, 5, 5),)),
          "planes": (lambda: nn.Conv2d(4, 4, 3, padding=1), ((4, 4, 4),)),
          "several": (_Sum, ((2, 6), (3,)))}


def made(name, batch=4):
    """A model, its inputs, and the program that serves with it."""
    torch.manual_seed(3)
    make, shapes = MODELS[name]
    model, inputs = make().eval(), tuple(torch.randn(batch, *shape) for shape in shapes)
    return model, inputs, lower_serving(model, inputs, SYSTEM)


def served(serving, samples, slots, count=9):
    """The answers to samples in these slots of so many."""
    program = serving.batch_of(slots, count)
    dram = Dram(program.limit, [each for each in program.memory if each.address not in {
        part.tensor.address for part in serving.inputs}])
    for slot, sample in zip(slots, samples, strict=True):
        dram.put(serving.addresses(slot)[0], serving.request(sample))
    Machine(program, races=True, dram=dram).run()
    return [serving.answer(dram.get(serving.addresses(slot)[1], serving.sizes[1])) for slot in slots], dram


@pytest.mark.parametrize("slots, name", cover([(5, 0, 8, 3), (7, 2), (4,)], MODELS, turns=1))
def test_as_each_alone(name, slots):
    """In any order, in batches of any fill, every bit; accesses are ordered by waits."""
    model, inputs, serving = made(name)
    alone, samples = reference(model, SYSTEM), [[each[n:n + 1] for each in inputs] for n in range(len(slots))]
    for sample, answer in zip(samples, served(serving, samples, slots)[0], strict=True):
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(alone(*sample))
        assert [each.tobytes() for each in answer] == [each.numpy().tobytes() for each in wanted]


def test_nothing_else_is_written():
    """Other requests' slots stay undefined; a request that is not there is an error."""
    _, inputs, serving = made("linear")
    samples = [[inputs[0][:1]]]
    _, dram = served(serving, samples, (4,))
    for slot in (0, 3, 5, 8):
        with pytest.raises(MachineError, match="nothing has written"):
            dram.get(serving.addresses(slot)[1], serving.sizes[1])
    with pytest.raises(MachineError, match="place of request 1 is read"):
        Machine(serving.program).run()


def test_slots_lie_alike_to_pages():
    """None of them crosses a page that another does not, so that every batch takes the same cycles."""
    for name in MODELS:
        serving = made(name)[2]
        assert serving.slot >= sum(serving.sizes) and (PAGE % serving.slot == 0 or serving.slot % PAGE == 0)
        assert all(place % SYSTEM.beat == 0 for slot in range(3) for place in serving.addresses(slot))


def test_large_samples_take_turns_in_v():
    """A sample that V does not hold at a time is copied in pieces."""
    model, inputs = nn.Linear(8, 4).eval(), (torch.randn(2, 40, 8),)
    small = replace(SYSTEM, v_words=64)
    serving = lower_serving(model, inputs, small)
    loads = [each for each in serving.program.instructions if each.opcode == Opcode.LOAD and each["request"] == 1]
    assert len(loads) > 1 and sum(each["count0"] for each in loads) * small.beat == serving.sizes[0]
    answers, _ = served(serving, [[inputs[0][:1]], [inputs[0][1:]]], (1, 0))
    with torch.no_grad():
        assert np.array_equal(np.concatenate([each[0] for each in answers]), reference(model, small)(*inputs).numpy())


@pytest.mark.parametrize(("model", "inputs", "system", "line"), [
    (nn.Linear(4, 4), (torch.ones(5, 4),), SYSTEM, "--dispatch-batch 5 would do"),
    (nn.Linear(4, 4), (torch.ones(5, 4),), replace(SYSTEM, dispatch=0), "Requests need --dispatch"),
    (nn.Embedding(4, 4), (torch.ones(2, 3, dtype=torch.int64),), SYSTEM, "whole numbers are the program's own"),
    (nn.Flatten(0), (torch.ones(2, 4),), SYSTEM, "cannot be of several requests"),
    (nn.Linear(4, 4), (torch.ones(2, 4),), SQUARE, "share exponents")])
def test_refused(model, inputs, system, line):
    with pytest.raises(LoweringError, match=line):
        lower_serving(model.eval(), inputs, system)
