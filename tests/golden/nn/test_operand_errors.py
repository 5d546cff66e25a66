"""Operands beside FP32, layer by layer: counted by hand, and by plain Python on what real models multiply."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import golden.nn as gn  # noqa: E402
from golden.bfp import encode  # noqa: E402
from golden.nn import fused  # noqa: E402
from golden.nn.inspect import names_running  # noqa: E402
from golden.nn.operand_errors import OperandError  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402

FMT = HBFPFormat(mantissa=4, block=(1, 4))           # magnitudes to 7


def counted(rows, fmt=FMT):
    x = np.array(rows, dtype=np.float32)
    operand = OperandError("layer", "linear", "hbfp4", "y", "x")
    operand.add(x, encode(x, fmt))
    return operand


def test_counted_by_hand():
    """A step is 1, 1 and 1/2 in the three blocks with numbers: both sides of 7 steps and of half a step."""
    found = counted([[7.25, 0.5, 0, 0.75], [7, 0.5625, -7.5, 1], [0, 0, 0, 0], [math.nan, 9, 2, 3],
                     [-3, 0.25, 2 ** -30, 0]])
    assert (found.elements, found.nonzero, found.saturated, found.flushed, found.invalid) == (20, 10, 2, 3, 1)
    assert found.exponents == {2: 1, 3: 2}
    assert found.signal == 53.375 + 106.56640625 + 9.0625 and found.noise == 0.375 + 0.44140625 + 0.0625
    assert found.qsnr == pytest.approx(10 * math.log10(169.00390625 / 0.87890625))
    assert (found.saturated_share, found.flushed_share) == (0.2, 0.3)


def test_exact():
    found = counted([[1, 2, 3, 0]])
    assert found.qsnr is None and found.noise == 0 and found.signal == 14


def test_nothing_to_count():
    found = counted([[0, 0, 0, 0], [math.inf, 1, 1, 1]])
    assert (found.qsnr, found.saturated_share, found.flushed_share, found.exponents) == (None, 0, 0, {})


def test_clamped_exponent_saturates():
    """Exponents of 5 bits end at 15: the largest magnitude is 7 * 2^12."""
    found = counted([[2 ** 16, 2 ** 15, 7 * 2 ** 12, 2 ** 14]], HBFPFormat(mantissa=4, exponent=5, block=(1, 4)))
    assert (found.saturated, found.flushed, found.exponents) == (2, 0, {15: 1})


def test_largest_subnormal_is_flushed_and_does_not_saturate():
    found = counted([[2.0 ** -126 - 2.0 ** -149, 0, 0, 0]])
    assert (found.saturated, found.flushed) == (0, 1)


def test_calls_add_up():
    found, x = counted([[7.25, 0.5, 0, 0.75]]), np.float32([[1, 2, 3, 100]])
    found.add(x, encode(x, FMT))
    assert (found.elements, found.nonzero, found.saturated, found.flushed) == (8, 7, 1, 4)
    assert found.exponents == {3: 1, 7: 1}


def plainly(matrix, width, length, axis):
    """Elements, numbers not 0, saturated, flushed, signal and noise by floats of Python; rounding is to even."""
    matrix = np.asarray(matrix.detach(), np.float64)
    total = [matrix.size, 0, 0, 0, 0.0, 0.0]
    for line in matrix if axis else matrix.T:
        for start in range(0, len(line), length):
            block = line[start:start + length]
            step = math.ldexp(1.0, math.frexp(max(abs(block)))[1] - (width - 1))
            for value in block:
                limit = 2 ** (width - 1) - 1
                after = max(-limit, min(limit, round(value / step))) * step
                for i, one in enumerate((value != 0, abs(value) > limit * step, value != 0 and after == 0,
                                         value * value, (value - after) ** 2), 1):
                    total[i] += one
    return total


def check(found, layer, product, role, matrix, axis, length=4):
    """What was found of an operand is what plain Python counts of a matrix with blocks along an axis."""
    one, = (each for each in found.operands if (each.layer, each.product, each.role) == (layer, product, role))
    *counts, signal, noise = plainly(matrix, 4, length, axis)
    assert [one.elements, one.nonzero, one.saturated, one.flushed] == counts, (layer, product, role)
    assert (one.signal, one.noise) == (pytest.approx(signal), pytest.approx(noise))
    assert one.nonzero > 10 and one.noise > 0


class Net(torch.nn.Module):
    """A layer, and a product of its own with a parameter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layer, self.own = torch.nn.Linear(10, 6), torch.nn.Parameter(torch.randn(6, 5))

    def forward(self, x):
        self.hidden = self.layer(x)
        return self.hidden @ self.own


def test_layer_and_functional_product():
    net = gn.convert(Net(), FMT)
    x = torch.randn(7, 10, requires_grad=True)
    found = gn.errors(net, x, loss=lambda y: y.square().sum())
    y = net(x)
    g = 2 * y
    hidden = net.hidden.detach()
    below, = torch.autograd.grad(y.square().sum(), net.hidden)
    for layer, rows, weights, top in (("layer", x, net.layer.weight.T, below), ("", hidden, net.own, g)):
        check(found, layer, "y", "x", rows, 1)
        check(found, layer, "y", "w", weights, 0)
        check(found, layer, "gx", "g", top, 1)
        check(found, layer, "gx", "w", weights, 1)
        check(found, layer, "gw", "g", top, 0)
        check(found, layer, "gw", "x", rows, 0)
    assert len(found.operands) == 12


def test_forward_alone():
    found = gn.errors(gn.convert(Net(), FMT), torch.ones(3, 10))
    assert [(each.layer, each.operation, each.product, each.role) for each in found.operands] == [
        ("layer", "linear", "y", "x"), ("layer", "linear", "y", "w"), ("", "matmul", "y", "x"),
        ("", "matmul", "y", "w")]


def test_stacked_matrices():
    net = gn.convert(Stacked(), FMT)
    x = torch.randn(2, 3, 9)
    found = gn.errors(net, x, loss=lambda y: y.square().sum())
    a, b = x * net.scale, x.mT
    g = 2 * net(x)
    check(found, "", "y", "x", a.flatten(0, 1), 1)
    check(found, "", "y", "w", b.mT.flatten(0, 1), 1)
    check(found, "", "gx", "g", g.flatten(0, 1), 1, 4)
    check(found, "", "gw", "x", a.mT.flatten(0, 1), 1)
    check(found, "", "gw", "g", g.mT.flatten(0, 1), 1)


class Stacked(torch.nn.Module):
    """Scores of its own, without a parameter as operand."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return (x * self.scale) @ x.mT


def patches(x, size, **options):
    """Rows of patches, K in the order kernel row, kernel column, channel."""
    columns = F.unfold(x, size, **options)
    return columns.unflatten(1, (x.shape[1], -1)).permute(0, 3, 2, 1).flatten(2).flatten(0, 1)


@pytest.mark.parametrize("channels", [3, 4])           # 4: blocks fit them
def test_convolution(channels):
    torch.manual_seed(0)
    net = gn.convert(torch.nn.Conv2d(channels, 4, 3, padding=1), FMT)
    x = torch.randn(2, channels, 5, 5, requires_grad=True)
    found = gn.errors(net, x, loss=lambda y: y.square().sum())
    g = 2 * net(x).detach()
    weights = net.weight.permute(2, 3, 1, 0).flatten(0, 2)
    check(found, "", "y", "x", patches(x, 3, padding=1), 1)
    check(found, "", "y", "w", weights, 0)
    check(found, "", "gx", "g", patches(g, 3, padding=1), 1)
    check(found, "", "gx", "w", net.weight.flip(2, 3).permute(2, 3, 0, 1).flatten(0, 2), 0)
    check(found, "", "gw", "x", patches(x, 3, padding=1), 0)
    check(found, "", "gw", "g", g.permute(0, 2, 3, 1).flatten(0, 2), 0)


def test_transposed_convolution_and_its_roles():
    torch.manual_seed(0)
    net = gn.convert(torch.nn.ConvTranspose2d(3, 4, 2, stride=2), FMT)
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    found = gn.errors(net, x, loss=lambda y: y.square().sum())
    g = 2 * net(x).detach()
    check(found, "", "gx", "g", patches(g, 2, stride=2), 1)
    check(found, "", "gw", "g", patches(g, 2, stride=2), 0)
    check(found, "", "gw", "x", x.permute(0, 2, 3, 1).flatten(0, 2), 0)


def test_volumes_and_groups_are_seen_whole():
    net = gn.convert(torch.nn.Sequential(torch.nn.Conv3d(4, 4, 2, groups=2), torch.nn.Flatten(2),
                                         torch.nn.Conv1d(4, 4, 3, groups=4)), FMT)
    found = gn.errors(net, torch.randn(2, 4, 3, 3, 3), loss=lambda y: y.square().sum())
    assert [(each.layer, each.product, each.role) for each in found.operands] == [
        ("0", "y", "x"), ("0", "y", "w"), ("2", "y", "x"), ("2", "y", "w"), ("2", "gx", "g"), ("2", "gx", "w"),
        ("2", "gw", "x"), ("2", "gw", "g"), ("0", "gw", "x"), ("0", "gw", "g")]
    first = {(each.product, each.role): each.elements for each in found.operands if each.layer == "0"}
    assert first == {("y", "x"): 512, ("y", "w"): 64, ("gw", "x"): 512, ("gw", "g"): 64}


def test_roles_with_formats_of_their_own():
    fmt6, fmt8 = HBFPFormat(mantissa=6, block=(1, 4)), HBFPFormat(mantissa=8, block=(1, 4))
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ConvTranspose1d(3, 4, 2), torch.nn.Conv1d(4, 4, 2))
    net = gn.convert(net, FMT, w=fmt6, g=fmt8)
    found = gn.errors(net, torch.randn(2, 3, 4), loss=lambda y: y.square().sum())
    assert {(each.role, each.format) for each in found.operands} == {
        ("x", "hbfp4 (1, 4)"), ("w", "hbfp6 (1, 4)"), ("g", "hbfp8 (1, 4)")}
    assert len(found.operands) == 16                   # 6 each, and the first layer's input has no gradient


def test_frozen_layers_are_seen():
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Unflatten(1, (1, 2, 2)), torch.nn.Conv2d(1, 3, 2))
    net = gn.freeze(gn.convert(net, FMT))
    assert [each.layer for each in gn.errors(net, torch.randn(2, 8)).operands] == ["0", "0", "2", "2"]


def test_checkpoints_count_once():
    plain = gn.convert(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)), FMT)
    x = torch.randn(3, 8, requires_grad=True)

    class Twice(torch.nn.Module):
        reentrant = False

        def __init__(self):
            super().__init__()
            self.layers = plain

        def forward(self, x):
            return checkpoint(self.layers, x, use_reentrant=self.reentrant)
    found, wanted = (gn.errors(net, x, loss=lambda y: y.square().sum()) for net in (Twice(), plain))
    counts = [[(each.product, each.role, each.elements, each.noise) for each in one.operands]
              for one in (found, wanted)]
    assert counts[0] == counts[1] and len(counts[0]) == 12
    Twice.reentrant = True
    with pytest.raises(ValueError, match="^Gradients cannot be seen behind torch.utils.checkpoint with "
                                         "use_reentrant=True; use_reentrant=False works$"):
        gn.errors(Twice(), x, loss=torch.sum)


def test_products_of_a_loss():
    """A network that judges is no part of the model, and is told apart."""
    judge = gn.convert(torch.nn.Linear(5, 1), FMT)
    found = gn.errors(gn.convert(Net(), FMT), torch.randn(2, 10), loss=lambda y: judge(y).sum())
    assert [each.product for each in found.operands if each.layer == "(loss)"] == ["y", "y", "gx", "gx", "gw", "gw"]


def test_model_stays_as_it_is():
    fmt = HBFPFormat(mantissa=4, block=(1, 4), rounding="stochastic")
    net = gn.convert(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)), fmt)
    net[0].eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = gn.errors(net, torch.randn(3, 4), loss=lambda y: y.sum())
    assert found.operands[0].format == "hbfp4 (1, 4)"  # as in evaluation: to nearest
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert net.training and not net[0].training and all(p.grad is None for p in net.parameters())


def test_output_is_the_models():
    """What listens to a model changes nothing, its output either."""
    net, x = gn.convert(Net(), FMT), torch.randn(2, 10)
    seen = []
    gn.errors(net, x, loss=lambda y: seen.append(y) or y.sum())
    assert torch.equal(seen[0], net(x))
    with names_running(net):
        assert torch.equal(net(x), seen[0])


TABLE = """\
layer    operation  product  operand  format        elements  QSNR dB  saturated %  flushed %  exponents  invalid
(model)  linear     y        x        hbfp4 (1, 4)         8    24.08        0.000     12.500    3, 3, 3        0
(model)  linear     y        w        hbfp4 (1, 4)         4    exact        0.000      0.000    1, 1, 1        0"""


def test_table_and_json():
    net = gn.convert(torch.nn.Linear(4, 1, bias=False), FMT)
    with torch.no_grad():
        net.weight.fill_(1.0)
    found = gn.errors(net, torch.tensor([[4, 4, 4, 4], [4, 0.5, 4, 4.]]))
    signal, noise = 7 * 16 + 0.25, 0.25
    assert str(found) == TABLE.replace("24.08", f"{10 * math.log10(signal / noise):.2f}")
    assert json.loads(found.json())["operands"][0] == {
        "layer": "", "operation": "linear", "format": "hbfp4 (1, 4)", "product": "y", "role": "x", "elements": 8,
        "nonzero": 8, "saturated": 0, "flushed": 1, "signal": signal, "noise": noise, "exponents": {"3": 2},
        "invalid": 0, "qsnr": 10 * math.log10(signal / noise), "saturated_share": 0.0, "flushed_share": 0.125}
    assert json.loads(found.json())["operands"][1]["qsnr"] is None


def test_example_of_the_page(capsys):
    page = (Path(__file__).parents[3] / "docs/golden.md").read_text()
    code = re.search(r"## Errors, layer by layer\n.*?```python\n(.*?)```", page, re.S)[1]
    exec(compile(code, "docs/golden.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 10 + 1 and re.fullmatch(r"[02] (y|gx|gw) [xwg] \{.*\}", lines[-1])


def test_refused():
    x = torch.randn(2, 2, 10)
    nothing = "No product of the model is HBFP: convert it first; of a fused job give one of its models"
    for net, options, message in (
            (Net(), {}, nothing), (fused.fuse([gn.convert(torch.nn.Linear(10, 2), FMT) for _ in "ab"]), {}, nothing),
            (gn.convert(Net().requires_grad_(False), FMT), {"loss": torch.sum},
             "A loss needs a parameter with requires_grad, and the model has none"),
            (gn.convert(Net(), HBFPFormat(mantissa=4, block=(4, 4)), mode="emulator"), {},
             ("Operands of layer 'layer' cannot be seen in mode 'emulator'; "
              "errors() needs mode 'hbfp' or 'values' on the CPU")),
            (torch.compile(gn.convert(Net(), FMT), backend="eager"), {},
             "Operands cannot be seen in a graph of torch.compile or in a fused job: give the model itself")):
        with pytest.raises(ValueError) as error:
            gn.errors(net, x, **options)
        assert str(error.value) == message
    with pytest.raises(TypeError, match="^module must be a torch.nn.Module, not function$"):
        gn.errors(lambda x: x)
