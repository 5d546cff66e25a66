"""Activations and losses that are made of others: close to torch's own, forward and backward, at every size of number.

Covers: golden/ops/activations.py, golden/ops/distances.py, golden/ops/losses.py.
"""

import pytest
import torch
from torch.nn import functional as F

from golden.nn.side import DESIGN_SIDE, sided
from golden.ops.operation import Unsupported
from golden.ops.table import operation_of

aten = torch.ops.aten
NUMBERS = torch.cat([torch.linspace(-6, 6, 97), torch.tensor([-90.0, -30.0, -1e-3, 0.0, 1e-3, 30.0, 90.0])])


def aim(x):
    """Targets near numbers."""
    return x.detach() * 0.7


def share(x):
    """Probabilities."""
    return x.detach().sigmoid() * 0.5


FUNCTIONS = {
    "gelu": lambda x: F.gelu(x, approximate="tanh"), "softplus": F.softplus, "log sigmoid": F.logsigmoid,
    "beta": lambda x: F.softplus(x, beta=2), "mish": F.mish, "log sum": lambda x: x.reshape(8, 13).logsumexp(-1),
    "kept": lambda x: x.reshape(8, 13).logsumexp(-1, keepdim=True), "clamp": lambda x: x.detach().clamp(-1, 2) * x,
    "below": lambda x: x.detach().clamp(max=1) * x, "smooth": lambda x: F.smooth_l1_loss(x, aim(x), beta=0.5),
    "absolute": lambda x: F.smooth_l1_loss(x, aim(x), beta=0), "huber": lambda x: F.huber_loss(x, aim(x), delta=0.5),
    "each": lambda x: F.huber_loss(x, aim(x), reduction="none"),
    "sum": lambda x: F.smooth_l1_loss(x, aim(x), reduction="sum"),
    "binary": lambda x: F.binary_cross_entropy_with_logits(x, share(x)),
    "weighted": lambda x: F.binary_cross_entropy_with_logits(x, share(x), x.detach().abs(), reduction="none",
                                                             pos_weight=torch.tensor(3.0))}


def found(function, x):
    """What a function of numbers gives, and its gradient."""
    x = x.clone().requires_grad_()
    y = function(x)
    y.backward(torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape))
    return y.detach(), x.grad


@pytest.mark.parametrize("name", FUNCTIONS)
def test_close_to_torch(name):
    wanted = found(FUNCTIONS[name], NUMBERS.double())
    with sided(DESIGN_SIDE):
        given = found(FUNCTIONS[name], NUMBERS)
    for one, other in zip(given, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=3e-6, atol=3e-6)


def test_what_they_are_made_of_is_the_tables():
    """Under the accelerator's arithmetic the bits are those of its own exp and log, not torch's."""
    x = torch.linspace(-3, 3, 1001)
    with sided(DESIGN_SIDE):
        assert torch.equal(F.softplus(x), torch.relu(x) + torch.log(torch.exp(-x.abs()) + 1))
        assert not torch.equal(F.softplus(x), F.softplus(x.double()).float())


def test_classes_of_sequences_are_rows():
    torch.manual_seed(1)
    logs, classes, weight = torch.randn(3, 5, 7).log_softmax(1), torch.randint(5, (3, 7)), torch.arange(1.0, 6)
    classes[1, 2] = -100
    with sided(DESIGN_SIDE):
        for reduction in ("mean", "sum", "none"):
            found = F.nll_loss(logs, classes, weight=weight, reduction=reduction)
            rows = F.nll_loss(logs.mT.flatten(0, 1), classes.flatten(), weight=weight, reduction=reduction)
            assert torch.equal(found.flatten(), rows.flatten())


def test_whole_numbers_and_truths_are_numbers():
    x = torch.tensor([7.0, -3.0, 1.0])
    with sided(DESIGN_SIDE):
        assert torch.equal(x / torch.tensor([3, 5, 7]), x / torch.tensor([3.0, 5.0, 7.0]))
        assert torch.equal(x * torch.tensor([True, False, True]), torch.tensor([7.0, -0.0, 1.0]))
    assert not torch.equal(x / torch.tensor([3, 5, 7]), x * (1 / torch.tensor([3.0, 5.0, 7.0])))


def test_what_has_no_formula():
    x = torch.ones(2, 3)
    with pytest.raises(Unsupported, match="^its bounds are tensors$"):
        operation_of(aten.clamp).form(x, x)
    assert operation_of(aten.gelu).apart(x, approximate="sinus") is NotImplemented
