"""Layers that change their input in place, in jobs.

Covers: golden/nn/fused/each.py, golden/nn/fused/pointwise.py.
"""

import copy

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

import golden.nn as gn  # noqa: E402
from golden.nn import fused  # noqa: E402


class Scaled(nn.Module):
    """Own code that changes its input in place by a parameter, so that an input without gradients gets one."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(()))

    def forward(self, x):
        return x.mul_(self.scale)


LAYERS = {"ReLU": nn.ReLU(True), "ReLU6": nn.ReLU6(True), "Hardtanh": nn.Hardtanh(-0.5, 0.5, True),
          "LeakyReLU": nn.LeakyReLU(0.1, True), "Threshold": nn.Threshold(0.1, -1, True), "ELU": nn.ELU(inplace=True),
          "SELU": nn.SELU(True), "CELU": nn.CELU(inplace=True), "SiLU": nn.SiLU(True), "Mish": nn.Mish(True),
          "Hardswish": nn.Hardswish(True), "Hardsigmoid": nn.Hardsigmoid(True), "Dropout": nn.Dropout(0, True),
          "Scaled": Scaled(), "nested": nn.Sequential(nn.SiLU(True), nn.ReLU(True))}


class Used(nn.Module):
    """The input of a layer is used again after the layer has changed it, and perhaps before."""

    def __init__(self, layer, first):
        super().__init__()
        self.first = nn.Linear(6, 5) if first else None
        self.layer, self.last = copy.deepcopy(layer), nn.Linear(5, 4)

    def forward(self, x):
        y = self.first(x) if self.first else x[:, :5].clone()
        kept = y.clone()
        z = self.layer(y)
        return self.last(z * 2 + y + kept)


def same_training(nets, rows):
    """Outputs, gradients of inputs and of parameters of models and of their job, which must have equal bits."""
    job = fused.fuse(copy.deepcopy(nets))
    x = torch.randn(len(nets) * rows, 6, requires_grad=True)
    top = torch.randn(len(x), 4)
    alone = [part.detach().clone().requires_grad_() for part in x.chunk(len(nets))]
    for net, part, own in zip(nets, alone, top.chunk(len(nets)), strict=True):
        net(part).backward(own)
    job(x).backward(top)
    assert torch.equal(x.grad, torch.cat([part.grad for part in alone]))
    for net, other in zip(nets, job.models, strict=True):
        for p, q in zip(net.parameters(), other.parameters(), strict=True):
            assert torch.equal(p.grad.view(torch.int32), q.grad.view(torch.int32))


@pytest.mark.parametrize("rows", [3, 128])
@pytest.mark.parametrize("hbfp", [False, True], ids=["fp32", "hbfp"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_place(name, hbfp, rows):
    """A batch of 3, where models' parts end amid a vector, and one of 128, where none does."""
    torch.manual_seed(0)
    for first in (True, False):
        nets = [Used(LAYERS[name], first) for _ in range(3)]
        if hbfp:
            nets = [gn.convert(net, gn.HBFPFormat(mantissa=8, block=(1, 16)), seed=i) for i, net in enumerate(nets)]
        same_training(nets, rows)


def test_a_hooked_layer_in_place():
    """It runs model by model, whatever it is."""
    torch.manual_seed(0)
    nets = [Used(nn.ReLU(True), True) for _ in range(3)]
    alone = copy.deepcopy(nets)
    for net in (*nets, *alone):
        net.layer.register_forward_hook(lambda *_: None)
    job = fused.fuse(nets)
    x = torch.randn(9, 6)
    job(x).square().sum().backward()
    for net, other, part in zip(alone, nets, x.chunk(3), strict=True):
        net(part.clone()).square().sum().backward()
        assert all(torch.equal(p.grad, q.grad) for p, q in zip(net.parameters(), other.parameters(), strict=True))


def test_a_leaf_is_no_more_changed_in_place_than_alone():
    job = fused.fuse([nn.Sequential(nn.SiLU(True)) for _ in range(2)])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        job(torch.randn(6, 5, requires_grad=True))
    with torch.no_grad():
        x = torch.randn(6, 5)
        assert job(x).equal(x)
