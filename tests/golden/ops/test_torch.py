"""Operations with the accelerator's bits mean what torch's own mean: near its numbers, in place and with ``out``, too.

That the device has the same bits as ``golden.nn`` says nothing of it: the table is what both read.
"""

import random

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves, tree_map_only

from golden.nn.side import DESIGN_SIDE, SideMode
from golden.ops.table import OPERATIONS
from tests.golden.lower.test_same import values

#: They take gates of 1 and 0; ``test_choices.py`` and trainings with masks have them.
GATES = "choose", "select", "kept"
SHAPES = (2, 8), (2, 8, 4), (2, 3, 4, 4)
CALLS = [getattr(call, name) for each in OPERATIONS if not each.gradient and each.name not in GATES
         for call in each.calls for name in call.overloads()
         if name != "no_stats" and "out" not in name.split("_")]    # torch itself crashes on what does not fit


def drawn(target, trial):
    """Arguments of an overload, for each shape: some of those that need not be given are, too."""
    rng = random.Random(trial)
    first, *others = target._schema.arguments
    for shape in SHAPES:
        given = {each.name: values(each, rng, shape) for each in others
                 if not each.has_default_value() or rng.random() < 0.4}
        generator = torch.Generator().manual_seed(trial)
        x = torch.randint(-3, 4, shape, generator=generator).float() if trial % 2 else torch.randn(
            shape, generator=generator)
        yield ([x, x.flip(0)] if "List" in str(first.type) else x), given


def near(own, other):
    """Whether results are near torch's; places of equal numbers may be others."""
    own, other = tree_leaves(own), tree_leaves(other)
    return len(own) == len(other) and all(one.shape == two.shape and one.dtype == two.dtype and (
        one.dtype == torch.int64 or torch.allclose(one.double(), two.double(), rtol=2e-4, atol=1e-4, equal_nan=True))
        for one, two in zip(own, other, strict=True))


def test_every_overload_means_what_torch_means():
    compared, found = 0, []
    for target in (each for each in CALLS if each._schema.returns):
        for trial in range(4):
            for x, given in drawn(target, trial):
                def call(x=x, given=given, target=target):
                    x, given = tree_map_only(torch.Tensor, torch.clone, (x, given))
                    return target(x, **given), x                                # in place it is changed
                try:
                    own = call()
                except (RuntimeError, IndexError, TypeError, ValueError):
                    continue
                with torch.no_grad(), SideMode(DESIGN_SIDE):
                    other = call()
                compared += 1
                if not near(own, other):
                    found.append(f"{target} {given} of {x}")
    assert not found, found[0]
    assert compared > 2000


def gradients(target, x, given):
    """Of all that an overload reads, for one of its first real result; None where that has none."""
    x, given = tree_map_only(torch.Tensor, torch.clone, (x, given))
    read = [each for name, each in [("x", x), *given.items()] if name != "mask" and "running" not in name]
    read = [each.requires_grad_() for each in tree_leaves(read) if isinstance(each, torch.Tensor) and
            each.is_floating_point()]
    found = [each for each in tree_leaves(target(x, **given)) if isinstance(each, torch.Tensor) and each.requires_grad]
    if not found:
        return None
    found[0].backward(torch.linspace(-1, 1, found[0].numel()).reshape(found[0].shape))
    return [torch.zeros(()) if each.grad is None else each.grad for each in read]


@pytest.mark.filterwarnings("ignore")
def test_every_gradient_means_what_torch_means():
    compared, found = 0, []
    for target in (each for each in CALLS if each._schema.returns and not each._schema.is_mutable):
        name = target.overloadpacket.__name__
        for trial in range(0, 2, 1 + (name == "topk")):              # of equal numbers topk may take any
            for x, given in drawn(target, trial):
                if name in ("smooth_l1_loss", "huber_loss") and given["target"].shape != x.shape:
                    continue                                     # torch divides by the numbers of the smaller one
                try:
                    own = gradients(target, x, given)
                except (RuntimeError, IndexError, TypeError, ValueError):
                    continue
                with SideMode(DESIGN_SIDE):
                    other = gradients(target, x, given)
                compared += own is not None
                if (own is None) != (other is None) or own is not None and not near(own, other):
                    found.append(f"{target} {given} of {x}")
    assert not found, found[0]
    assert compared > 500


def test_what_is_written_into_a_tensor_that_is_given():
    x, found = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)), []
    for side in (False, True):
        with SideMode(DESIGN_SIDE) if side else torch.no_grad():
            y, places = torch.empty(4, 2), torch.empty(4, 2, dtype=torch.int64)
            rows = [torch.add(x, 1, out=torch.empty(0)), torch.exp(x, out=torch.empty(4, 8)),
                    torch.exp2(x, out=torch.empty(4, 8)), *torch.topk(x, 2, out=(y, places))]
            assert rows[3] is y and rows[4] is places
        found.append(rows)
    assert near(*found)


@pytest.mark.parametrize("function", [
    F.logsigmoid, lambda x: F.softplus(x, threshold=0.5), lambda x: F.softplus(x, 2, 0.5),
    lambda x: F.max_pool3d(x, 2), lambda x: F.adaptive_max_pool3d(x, 2), lambda x: F.avg_pool3d(x, 2),
    lambda x: F.max_pool2d(x[:, :, 0], 2), lambda x: F.mish(x * 1, inplace=True), lambda x: F.celu(x * 1, inplace=True),
    lambda x: F.embedding_bag(torch.tensor([[0, 1], [1, 1]]), x[0, 0, 0])])
def test_gradients_that_read_more_than_the_first_result(function):
    """Where autograd keeps what an operation gives beside its result, or changes in place."""
    grads = []
    for side in (False, True):
        x = torch.randn(2, 3, 4, 4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
        with SideMode(DESIGN_SIDE) if side else torch.enable_grad():
            y = function(x)
            y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape))
        grads.append((y.detach(), x.grad))
    assert near(*grads)
