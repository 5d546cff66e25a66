"""Layers that train in MXFP8, MXFP6 and INT8: their three products are those of rounded operands."""

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.study.comparison import imitate  # noqa: E402
from golden.study.quantisers import NAMES, quantised  # noqa: E402


def rounded(x, name, axis):
    return torch.from_numpy(quantised(np.ascontiguousarray(x.detach().numpy()), name, axis=axis))


@pytest.mark.parametrize("name", NAMES)
def test_linear(name):
    layer = torch.nn.Linear(40, 33)
    weight = layer.weight
    imitate(layer, name)
    assert layer.parametrizations.weight.original is weight       # an optimiser made before stays valid
    x, g = torch.randn(3, 5, 40, requires_grad=True), torch.randn(3, 5, 33)
    y = layer(x)
    y.backward(g)
    xq, wq, gq = rounded(x, name, -1), rounded(weight, name, 1), rounded(g, name, -1)
    assert torch.equal(y, torch.nn.functional.linear(xq, wq, layer.bias))
    assert torch.equal(x.grad, gq @ wq) and not torch.equal(x.grad, g @ wq)
    torch.testing.assert_close(weight.grad, gq.flatten(0, 1).T @ xq.flatten(0, 1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind, size", [(torch.nn.Conv1d, 1), (torch.nn.Conv2d, 2), (torch.nn.Conv3d, 3)])
def test_convolution(name, kind, size):
    """Blocks lie along the channels, with a batch and without."""
    layer = kind(40, 3, 2, bias=False)
    weight = layer.weight
    plain = kind(40, 3, 2, bias=False)
    imitate(layer, name)
    for shape in ((2, 40, *[3] * size), (40, *[3] * size)):
        x = torch.randn(shape, requires_grad=True)
        other = rounded(x, name, len(shape) - size - 1).requires_grad_()
        plain.weight = torch.nn.Parameter(rounded(weight, name, 1))
        weight.grad, y = None, layer(x)
        want = plain(other)
        g = torch.randn_like(y)
        y.backward(g)
        want.backward(rounded(g, name, len(shape) - size - 1))
        assert torch.equal(y, want) and torch.equal(x.grad, other.grad) and torch.equal(weight.grad, plain.weight.grad)


def test_page_runs(capsys):
    page = (Path(__file__).parents[3] / "docs/golden.md").read_text()
    code, = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "imitate" in block]
    exec(compile(code, "docs/golden.md", "exec"), {})
    assert capsys.readouterr().out == "torch.Size([32, 64])\n"


def test_models_learn():
    torch.manual_seed(0)
    x, t = torch.randn(64, 8), torch.arange(64) % 4
    losses = {}
    for name in NAMES:
        torch.manual_seed(1)
        net = imitate(torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)), name)
        optimiser = torch.optim.Adam(net.parameters(), 0.02)
        for _ in range(60):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), t)
            loss.backward()
            optimiser.step()
        losses[name] = loss.item()
    assert max(losses.values()) < 0.7 and len(set(losses.values())) == len(NAMES)


@pytest.mark.parametrize("make, name, message", [
    (lambda: torch.nn.Linear(2, 2), "mxfp4", f"Format must be one of {', '.join(NAMES)}, not 'mxfp4'"),
    (lambda: gn.convert(torch.nn.Sequential(torch.nn.Linear(2, 2)), "hbfp8"), "int8",
     "Layer '0' must be one of torch's own, without a format, not HBFPLinear"),
    (lambda: imitate(torch.nn.Sequential(torch.nn.Linear(2, 2)), "int8"), "int8",
     "Layer '0' must be one of torch's own, without a format, not ParametrizedLinear")])
def test_wrong_use(make, name, message):
    net = make()
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        imitate(net, name)
