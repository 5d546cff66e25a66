"""What masks choose in a step of training: PyTorch's numbers, whether constants, a batch, or nothing decides them.

Covers: golden/lower/training/rewrite.py, golden/lower/training/inserted.py, golden/ops/choices.py.
"""

from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.nn.side import DESIGN_SIDE, sided
from tests.cases import sweep

from .steps import MACHINES, follow

pytestmark = pytest.mark.filterwarnings("ignore")


class Attention(nn.Module):
    """One head over five places, with a mask, which may be the batch's."""

    def __init__(self, attend):
        super().__init__()
        self.attend, self.layer, self.classes = attend, nn.Linear(11, 24), nn.Linear(8, 10)

    def forward(self, x, *mask):
        q, k, v = self.layer(x).chunk(3, -1)
        mask = mask[0][:, None] if mask else torch.ones(5, 5, dtype=torch.bool).tril()
        return self.classes(self.attend(q, k, v, mask).mean(1))


def scores(q, k):
    return q @ k.transpose(-1, -2) / 8 ** 0.5


def scaled(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask)


def filled(q, k, v, mask):
    return scores(q, k).masked_fill(~mask, -1e9).softmax(-1) @ v


def chosen(q, k, v, mask):
    return torch.where(mask, scores(q, k), float("-inf")).softmax(-1) @ v


def both(q, k, v, mask):
    return torch.where(mask, scores(q, k), scores(k, q)).softmax(-1) @ v


def closed(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask & (torch.arange(5) != 2)[:, None])


def batch(*lengths):
    """With masks that leave the first places of each sample, if there are lengths."""
    x, classes = torch.randn(3, 5, 11), torch.randint(10, (3,))
    masks = (torch.arange(5) < torch.tensor(lengths)[:, None],) if lengths else ()
    return (x, *masks), (classes,)


@pytest.mark.parametrize("attend", [scaled, both, *(pytest.param(each, marks=pytest.mark.slow)
                                                    for each in (filled, chosen, closed))])
@pytest.mark.parametrize("lengths", [[(), ()], pytest.param([(5, 3, 1), (2, 5, 4)], marks=pytest.mark.slow)])
def test_masks(attend, lengths):
    torch.manual_seed(1)
    follow(Attention(attend), F.cross_entropy, [batch(*each) for each in lengths])


def test_a_later_batch_may_leave_nothing_of_a_row():
    """golden.nn gives zeros for a query that takes part in nothing: here the second batch decides so."""
    torch.manual_seed(1)
    step, _ = follow(Attention(scaled), F.cross_entropy, [batch(5, 3, 1), batch(2, 0, 4)], MACHINES["8-tiles"])
    assert len(step.host.writes(batch(5, 5, 5))) > 3


def test_a_mask_that_closes_nothing_costs_nothing():
    """The zeros of golden.nn for rows that take part in nothing need no instruction where a mask leaves all rows."""
    torch.manual_seed(1)
    names = [[layer.name for layer in follow(Attention(each), F.cross_entropy, [batch()])[0].lowered.program.layers]
             for each in (scaled, closed)]
    assert len(names[0]) + 2 == len(names[1])


@pytest.mark.parametrize("shape", sweep(2, ["numbers", "truths"]))
def test_a_mask_that_a_model_keeps(shape):
    """A buffer that no step changes is a constant, whose closed row counts."""
    class Kept(Attention):
        def __init__(self):
            super().__init__(None)
            mask = torch.ones(5, 5, dtype=torch.bool).tril() & (torch.arange(5) != 2)[:, None]
            self.register_buffer("mask", mask if shape == "truths" else torch.zeros(5, 5).masked_fill(
                ~torch.ones(5, 5, dtype=torch.bool).tril(), float("-inf")))

        def forward(self, x):
            q, k, v = self.layer(x).chunk(3, -1)
            return self.classes(F.scaled_dot_product_attention(q, k, v, self.mask).mean(1))
    torch.manual_seed(1)
    follow(Kept(), F.cross_entropy, [batch(), batch()])


def test_zeros_of_both_signs_and_nans_are_chosen():
    """Bit for bit, whatever the other is; ``choose`` wants -0 of what is not chosen, and gives +0 for a -0 that is."""
    values = [0.0, -0.0, 1.5, -2.0, float("inf"), float("-inf"), float("nan")]
    gate, x, other = torch.tensor(list(product((0.0, 1.0), values, values))).unbind(1)
    nothing = torch.where(gate > 0, -0.0, other)
    with sided(DESIGN_SIDE):
        found = torch.ops.hbfp.select(gate, x, other), torch.ops.hbfp.choose(gate, x, nothing)
    wanted = torch.where(gate > 0, x, other)
    for each, right in zip(found, (wanted, torch.where(gate + wanted.abs() > 0, wanted, wanted + 0)), strict=True):
        assert torch.equal(each.isnan(), right.isnan())
        assert torch.equal(each.nan_to_num().view(torch.int32), right.nan_to_num().view(torch.int32))


@pytest.mark.parametrize("number", [-0.0, 0.0, 2.5])
def test_numbers_that_fill(number):
    """A mask fills with any number, a zero with its sign: 1 / y tells it."""
    class Filled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.arange(1.0, 12))

        def forward(self, x):
            return (x * self.weight).masked_fill(torch.arange(11) % 2 == 0, number)
    follow(Filled(), lambda y: (1 / y).clamp(-9, 9).detach().sum() + (y * y).sum(), [((torch.ones(2, 11),), ())])


def test_a_mask_of_real_numbers():
    follow(nn.Linear(11, 10), lambda y, t: F.cross_entropy(torch.where(y > 0.5, y, 0.0), t),
           [((torch.randn(3, 11),), (torch.randint(10, (3,)),))])
