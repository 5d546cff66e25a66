"""Steps of training give space in DRAM back, and are lowered without values.

Covers: golden/lower/training/space.py, golden/lower/memory.py, golden/lower/views.py, golden/lower/vectors.py.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.training import space
from golden.lower.training.step import lower_step
from tests.cases import sweep

from .steps import MACHINES, accelerator, follow, sgd

pytestmark = pytest.mark.filterwarnings("ignore")


class Small(nn.Module):
    """A convolution with batch norm and a path around it, whose channels fill words, and a layer whose do not."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.inner, self.head = nn.Linear(8, 12), nn.Linear(12, 5)

    def forward(self, x):
        x = x + torch.relu(self.norm(self.conv(x)))
        return self.head(torch.relu(self.inner(x.mean((2, 3)))))


def batches(count=1):
    generator = torch.Generator().manual_seed(3)
    return [((torch.randn(4, 8, 4, 4, generator=generator),), (torch.randint(5, (4,), generator=generator),))
            for _ in range(count)]


def model():
    torch.manual_seed(1)
    return Small()


@pytest.mark.parametrize("name", sweep(2, ["8-tiles", "8"]))
def test_space_that_is_given_out_again_changes_no_bit_of_any_step(name, monkeypatch):
    step = lower_step(model(), F.cross_entropy, sgd(), batches()[0], MACHINES[name])
    whole = step.lowered.program
    monkeypatch.setattr(space, "CROWDED", 0)
    again, _ = follow(model(), F.cross_entropy, batches(2), MACHINES[name])
    program = again.lowered.program
    assert program.limit - len(again.kept) < 0.8 * (whole.limit - len(step.kept))
    assert not any(tensor.address in again.kept for tensor in program.tensors.values() if tensor.role == "inner")
    assert len(program.instructions) == len(whole.instructions)
    kept = {each for each, tensor in whole.tensors.items() if tensor.role != "inner"}
    assert kept <= set(program.tensors) < set(whole.tensors)


def test_space_is_kept_where_all_tensors_fit(monkeypatch):
    step = lower_step(model(), F.cross_entropy, sgd(), batches()[0], MACHINES["8"])
    monkeypatch.setattr(space, "CROWDED", 10 ** 6)
    assert lower_step(model(), F.cross_entropy, sgd(), batches()[0],
                      MACHINES["8"]).lowered.program == step.lowered.program


@pytest.mark.parametrize("crowded", [1 << 31, 0])
def test_a_step_without_values_has_the_same_instructions(crowded, monkeypatch):
    monkeypatch.setattr(space, "CROWDED", crowded)
    one, other = (lower_step(model(), F.cross_entropy, sgd(), batches()[0], MACHINES["8"], values=values).lowered
                  for values in (True, False))
    assert other.program.instructions == one.program.instructions
    assert other.program.layers == one.program.layers and other.program.limit == one.program.limit
    assert set(other.expected) == {"target rows"} and sum(len(each.data) for each in other.program.memory) < sum(
        len(each.data) for each in one.program.memory)


@pytest.mark.parametrize("wide", [32, 40])
def test_sums_of_rows_longer_than_the_vector_units_are_cut(wide):
    """Rows have 4 words at most; a bias of 40 numbers has 5."""
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(8, wide), nn.ReLU(), nn.Linear(wide, 3))
    generator = torch.Generator().manual_seed(3)
    batch = (torch.randn(9, 8, generator=generator),), (torch.randn(9, 3, generator=generator),)
    step, _ = follow(layers, F.mse_loss, [batch], accelerator(row_words=4))
    layer = next(each for each in step.lowered.program.layers if each.name == "backward 0.bias")
    given = [each for each in step.lowered.program.instructions[layer.first:layer.stop] if each.opcode.name == "VECTOR"]
    assert len(given) == (2 if wide == 32 else 4)
