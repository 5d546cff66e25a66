"""Dropout by position in models: which elements, by docs/numerics.md, section 6, whoever calls it."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import golden.nn as gn
from golden.position import dropout, dropout_key, step_key

SIDE = gn.Side(8)


class Several(nn.Module):
    """Dropouts by all names; ``shown`` has what each multiplies ones by."""

    def __init__(self):
        super().__init__()
        self.layer, self.drop, self.off = nn.Linear(6, 6), nn.Dropout(0.5), nn.Dropout(0.0)

    def forward(self, x):
        ones, own = torch.ones(3, 4, 40), torch.ones(3, 4, 40)
        self.shown = [self.drop(ones), F.dropout(ones, 0.25), torch.dropout(ones, 0.75, True),
                      F.dropout(own, 0.1, inplace=True)]
        assert self.shown[3] is own and torch.equal(F.dropout(ones, 0.5, training=False), ones)
        return self.drop(self.off(self.layer(x)))


def factors(number, shape, p, seed=5, step=0):
    return torch.from_numpy(dropout(dropout_key(seed, number) ^ step_key(seed, step), shape, p))


def test_dropouts_are_counted_through_the_model():
    """In the order of their calls, anew in each step; those that are off do not count."""
    model, x = gn.convert(Several(), noise="position", seed=5), torch.randn(7, 6)
    for step in (0, 3, 3):
        gn.begin_step(model, step)
        y = model(x)
        for number, (got, p) in enumerate(zip(model.shown, (0.5, 0.25, 0.75, 0.1), strict=True)):
            assert torch.equal(got, factors(number, (3, 4, 40), p, step=step)), (step, number)
        gn.begin_step(model, step)
        assert torch.equal(y, model(x)) and not torch.equal(y, model(x))     # the second goes on counting
        assert torch.equal(y, model.layer(x) * factors(4, (7, 6), 0.5, step=step))
    model.eval()
    assert torch.equal(model.drop(x), x)


def test_the_gradient_is_of_what_was_kept():
    model, x = gn.convert(nn.Sequential(nn.Dropout(0.3)), noise="position"), torch.randn(5, 33, requires_grad=True)
    gn.begin_step(model, 2)
    g = torch.randn(5, 33)
    model(x).backward(g)
    assert torch.equal(x.grad, g * factors(0, (5, 33), 0.3, 1, 2))


def test_side_arithmetic_flushes():
    """A subnormal, dropped or not, is +0 or -0; NaN and Inf are NaN where they are dropped."""
    x = torch.tensor([[1e-39, -1e-39, torch.inf, -torch.inf, torch.nan, 2.0] * 8])
    model = gn.convert(nn.Sequential(nn.Dropout(0.5)), noise="position", side=SIDE)
    gn.begin_step(model, 0)
    kept, y = factors(0, (1, 48), 0.5, 1).bool(), model(x)
    assert torch.equal(y[:, ::6], torch.zeros(1, 8)) and torch.equal(y[:, 1::6], torch.zeros(1, 8))
    want = torch.where(kept[:, 2::6], torch.inf, torch.nan)
    assert kept[:, 2::6].any() and not kept[:, 2::6].all() and torch.equal(y[:, 2::6].nan_to_num(7), want.nan_to_num(7))
    assert y[:, 4::6].isnan().all() and torch.equal(y[:, 5::6], 4.0 * kept[:, 5::6])


@pytest.mark.parametrize("make", [lambda: nn.MultiheadAttention(12, 2, dropout=0.5, batch_first=True),
                                  lambda: nn.TransformerEncoderLayer(12, 2, 16, dropout=0.5, batch_first=True),
                                  lambda: nn.LSTM(12, 12, num_layers=2, dropout=0.5, batch_first=True)])
def test_layers_drop_by_position(make):
    """Twins and the insides of torch's own layers: nothing is drawn of torch's generator, and each step is its own."""
    torch.manual_seed(0)
    model, x = gn.convert(make(), noise="position"), torch.randn(2, 5, 12)
    given = (x, x, x) if isinstance(model, nn.MultiheadAttention) else (x,)

    def run(step):
        gn.begin_step(model, step)
        y = model(*given)
        return y[0] if isinstance(y, tuple) else y
    before = torch.get_rng_state()
    first = run(0)
    assert torch.equal(first, run(0)) and not torch.equal(first, run(1))
    assert torch.equal(torch.get_rng_state(), before)


def test_passes_that_run_again_drop_the_same():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)) for _ in range(3))

        def forward(self, x):
            for part in self.parts:
                x = checkpoint(part, x, use_reentrant=False) if self.again else part(x)
            return x
    torch.manual_seed(0)
    model, found = gn.convert(Model(), noise="position"), []
    x = torch.randn(4, 8)
    for model.again in (False, True):
        model.zero_grad()
        gn.begin_step(model, 1)
        model(x).square().sum().backward()
        found.append([each.grad.clone() for each in model.parameters()])
    assert all(map(torch.equal, *found))


def test_without_position_torch_draws():
    model, x = gn.convert(nn.Sequential(nn.Dropout(0.5)), side=SIDE), torch.ones(64, 64)
    assert not torch.equal(model(x), model(x))
    with pytest.raises(ValueError, match="^Steps are for models with noise by position; golden.nn.convert"):
        gn.begin_step(model, 0)


def test_narrow_types_and_no_dimension():
    model = gn.convert(nn.Sequential(nn.Dropout(0.5)), noise="position")
    gn.begin_step(model, 0)
    y = model(torch.ones(3, 4, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16 and torch.equal(y.float(), factors(0, (3, 4), 0.5, 1))
    assert model(torch.tensor(3.0)) in (0, 6)
