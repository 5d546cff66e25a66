"""A training with sparse weights has the bits of golden.nn with the same masks, whether they stay or are made anew.

Covers: golden/lower/formats.py, golden/lower/training/rewrite.py.
"""

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import golden.nn as gn
from golden.lower.errors import LoweringError
from golden.lower.training.job import lower_job_step
from golden.lower.training.step import lower_step
from golden.nn.sparse import Sparse
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from tests.cases import sweep

from .steps import follow, followed, sgd

pytestmark = pytest.mark.filterwarnings("ignore")


def accelerator(block=(1, 16), sparse=(2, 4), rounding="rne", **sizes):
    return Accelerator(core=Design(rows=8, sparse=sparse, depth=32, format=HBFPFormat(block=block, rounding=rounding)),
                       **{"x_words": 256, "w_words": 512, "v_words": 256} | sizes)


PLAIN = accelerator()


def mlp():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(52, 24), nn.ReLU(), nn.Linear(24, 10))


def batches(count=3):
    torch.manual_seed(5)
    return [((torch.randn(12, 52),), (torch.randint(10, (12,)),)) for _ in range(count)]


def used(step, opcode, *names):
    return {tuple(each[name] for name in names) for each in step.lowered.program.instructions
            if each.opcode == opcode and (opcode != Opcode.CONVERT or each["to_w"])}


@pytest.mark.parametrize("anew", sweep(2, [True, False]))
@pytest.mark.parametrize("machine, options", sweep(3, [
    (accelerator((1, 32), (1, 4)), {}), (PLAIN, {}), (accelerator((16, 16)), {}),
    (accelerator(rounding="stochastic"), {"stochastic": ("x", "w", "g")})]), ids=["1:4", "2:4", "tiles", "stochastic"])
def test_masks(machine, options, anew):
    """Forward is sparse, gradients are dense; the gradient of a weight goes to what is pruned, too."""
    step, _ = follow(mlp(), F.cross_entropy, batches(), machine, anew=anew, **options)
    assert used(step, Opcode.MULTIPLY, "sparse") == {(0,), (1,)}
    assert used(step, Opcode.CONVERT, "prune", "sparse") == {(0, 0), (1, 1)} | ({(1, 0)} if anew else set())
    model = step.reference.model
    for layer in (model[0], model[2]):
        assert bool(layer.weight.grad[~layer.weight_mask].any()) and layer.weight_mask.float().mean() < 0.6


def test_masks_that_stay_are_those_of_the_start():
    """While weights change so much that others would be the largest; those that are made anew follow them."""
    first = [layer.weight_mask.clone() for _, layer in gn.hbfp_layers(lower_step(
        mlp(), F.cross_entropy, sgd(), batches()[0], PLAIN).reference.model)]
    for anew in (False, True):
        step, _ = follow(mlp(), F.cross_entropy, batches(), PLAIN, sgd(lr=2.0), anew=anew)
        now = [layer.weight_mask for _, layer in gn.hbfp_layers(step.reference.model)]
        assert all(torch.equal(*each) for each in zip(first, now, strict=True)) is not anew


@pytest.mark.parametrize("anew", sweep(2, [True, False]))
def test_several_models(anew):
    """Each with masks of its own."""
    models = [mlp(), nn.Sequential(nn.Linear(52, 10))]
    job = lower_job_step(models, F.cross_entropy, [sgd(), sgd()], [batches()[0]] * 2, PLAIN, anew=anew)
    followed(job, [[each] * 2 for each in batches(2)])
    assert used(job, Opcode.MULTIPLY, "sparse") == {(0,), (1,)}


class Net(nn.Module):
    """A convolution and a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(16, 8, 3, padding=1), nn.Linear(128, 10)

    def forward(self, x):
        return self.last(torch.relu(self.conv(x)).flatten(1))


def images(count=1):
    torch.manual_seed(7)
    return [((torch.randn(4, 16, 4, 4),), (torch.randint(10, (4,)),)) for _ in range(count)]


def test_convolutions():
    """Their forward products take half of the passes where they are pruned, which by default they are not."""
    for model, pruned, passes in ((Net(), 1, (0, 18)), (gn.sparsify(gn.convert(Net(), PLAIN.core.format)), 2, (1, 9))):
        step, _ = follow(model, F.cross_entropy, images(2), PLAIN)
        assert sum(isinstance(layer, Sparse) for _, layer in gn.hbfp_layers(step.reference.model)) == pruned
        found = used(step, Opcode.MULTIPLY, "sparse", "tiles")
        assert passes in found and ((1, 9) in found) == (pruned == 2)


CONVOLUTION = ("The masks of a convolution's weights cannot be made anew in each step; masks that stay would do")
OTHERS = ("Layer 'conv' has a mask of 1:4, sparsify-quantise, which an accelerator of 2:4 does not make anew; 2:4, "
          "sparsify-quantise would do")
ORDER = "A sparse weight that is quantised before it is pruned cannot be trained; order 'sparsify-quantise' would do"


@pytest.mark.parametrize("sparsity, order, anew, line", [
    ("2:4", "sparsify-quantise", True, CONVOLUTION), ("1:4", "sparsify-quantise", True, OTHERS),
    ("2:4", "quantise-sparsify", False, ORDER)])
def test_refusals(sparsity, order, anew, line):
    model = gn.sparsify(gn.convert(Net(), PLAIN.core.format), sparsity, order)
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        lower_step(model, F.cross_entropy, sgd(), images()[0], PLAIN, anew=anew)
