"""Matrix products that are left in FP32."""

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.nn import functional  # noqa: E402


class Mixed(torch.nn.Module):
    """Layers, and products of its own code."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.convolution = torch.nn.Conv1d(8, 8, 1)
        self.inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())

    def forward(self, x):
        y = self.inner(self.layer(x))
        y = y @ y.transpose(-1, -2) @ x
        scores = torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])
        return self.convolution(y.transpose(-1, -2)) + scores.sum()


def test_products_of_layers_and_of_code_are_listed():
    net, x = Mixed(), torch.randn(2, 4, 8)
    assert [name for name, _ in gn.fp32_products(net, x)] == ["layer", "inner.0", "", "", "convolution"]
    before = net.state_dict()
    gn.convert(net, exclude="convolution")
    assert [name for name, _ in gn.fp32_products(net, x)] == ["convolution"]
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not net._forward_hooks and not net.layer._forward_pre_hooks
    assert gn.fp32_products(gn.convert(net), x) == []


@pytest.mark.parametrize("order", ["block", "quick"])
@pytest.mark.parametrize("make, shape", [
    (lambda: torch.nn.Linear(8, 8), (3, 8)), (lambda: torch.nn.Conv2d(8, 8, 3), (2, 8, 5, 5)),
    (lambda: torch.nn.LSTM(8, 8), (3, 2, 8)),
    (lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8))],
    ids=["linear", "convolution", "lstm", "encoder"])
@pytest.mark.parametrize("train", [True, False])
def test_nothing_is_left_of_layers_that_convert(make, shape, order, train):
    net = torch.nn.Sequential(make()).train(train)
    x = torch.randn(shape)
    assert gn.fp32_products(net, x)
    assert gn.fp32_products(gn.convert(net, gn.HBFPFormat(block=(3, 3)), order=order), x) == []


def test_functional_forms_are_hbfp():
    class Net(torch.nn.Module):
        def forward(self, x):
            return functional.matmul(x, x.transpose(-1, -2), gn.HBFPFormat())
    assert gn.fp32_products(Net(), torch.randn(4, 4)) == []


def test_hooks_are_gone_after_an_error():
    net = torch.nn.Sequential(torch.nn.Linear(8, 8))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        gn.fp32_products(net, torch.randn(2, 7))
    assert not net._forward_hooks and not net[0]._forward_hooks and not net[0]._forward_pre_hooks


def test_wrong_module():
    with pytest.raises(TypeError, match=r"^module must be a torch.nn.Module, not str$"):
        gn.fp32_products("net")
