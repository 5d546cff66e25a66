"""Products of operands rounded to any format: each of the three has its own conversions, and torch's sums."""

import re
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import golden.nn as gn
from golden.formats import names
from golden.nn.rounded import rounded
from golden.spec.numbers import NUMBERS

NAMES = ["mxfp8", "mxint8", "nvfp4", "int8", "int8-row", "bf16"]


def q(x, name, axis):
    """A tensor as a format holds it, with no part of the products' own code but the conversion."""
    fmt = names.read(name)
    if isinstance(axis, tuple) and NUMBERS.get(name) is not NUMBERS["int8-row"]:
        axis = axis[0]
    return rounded(x.detach(), fmt, axis) if isinstance(axis, tuple) else gn.quantise(x.detach(), fmt,
                                                                                                 axis=axis)


def clone(x):
    return x.detach().clone().requires_grad_()


@pytest.mark.parametrize("name", NAMES)
def test_linear(name):
    torch.manual_seed(0)
    layer = gn.convert(torch.nn.Linear(40, 33), name)
    x, g = torch.randn(3, 5, 40, requires_grad=True), torch.randn(3, 5, 33)
    y = layer(x)
    y.backward(g)
    w, rows = layer.weight, g.flatten(0, 1)
    assert torch.equal(y, F.linear(q(x.flatten(0, 1), name, -1), q(w, name, -1)).view(3, 5, 33) + layer.bias)
    assert torch.equal(x.grad, (q(rows, name, -1) @ q(w, name, 0)).view(3, 5, 40))
    assert torch.equal(w.grad, q(rows, name, 0).T @ q(x.flatten(0, 1), name, 0))
    assert not torch.equal(x.grad, g @ w)
    total = torch.zeros(33)
    for row in rows:                                       # docs/numerics.md, section 9: from the first to the last
        total += row
    assert torch.equal(layer.bias.grad, total)


@pytest.mark.parametrize("shape", [(60, 40), (3, 20, 40), (2, 3, 10, 40), (40,), (0, 40), (3, 0, 40)])
def test_bits_of_rows_are_those_of_any_shape(shape):
    """Gradients of the bias, too, however the same rows are laid out; formats by name have the rule of HBFP."""
    torch.manual_seed(0)
    x, g = torch.randn(shape), torch.randn(*shape[:-1], 33)
    found = []
    for rows in (lambda t: t, lambda t: t.reshape(t.shape[:-1].numel(), t.shape[-1])):
        torch.manual_seed(1)
        layer, given = gn.convert(torch.nn.Linear(40, 33), "mxfp8"), clone(x)
        y = layer(rows(given))
        y.backward(rows(g))
        found.append([y.detach().flatten(), given.grad, layer.weight.grad, layer.bias.grad])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("name", NAMES)
def test_attention_like(name):
    """Two operands that are no weights: b has the role of w."""
    a, b, g = torch.randn(2, 3, 20, 40), torch.randn(2, 3, 40, 17), torch.randn(2, 3, 20, 17)
    a, b = clone(a), clone(b)
    y = gn.functional.matmul(a, b, name)
    y.backward(g)
    assert torch.equal(y, q(a, name, -1) @ q(b, name, -2))
    assert torch.equal(a.grad, q(g, name, -1) @ q(b, name, -1).mT)
    assert torch.equal(b.grad, q(a, name, -2).mT @ q(g, name, -2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size, transposed, groups", [(1, False, 1), (2, False, 2), (3, False, 1), (2, True, 1),
                                                      (2, True, 2), (1, True, 1), (3, True, 1)])
def test_convolutions(name, size, transposed, groups):
    """Blocks lie along the channels, and along the images for the weights' gradient; a row is all of a sum."""
    torch.manual_seed(0)
    kind = getattr(torch.nn, f"Conv{'Transpose' * transposed}{size}d")
    layer = kind(40, 6, 3, stride=2, padding=1, groups=groups, bias=False)
    w = layer.weight
    model = gn.convert(torch.nn.Sequential(layer), name)
    x = torch.randn(5, 40, *[6] * size, requires_grad=True)
    y = model(x)
    g = torch.randn_like(y)
    y.backward(g)
    pixels = tuple(range(2, 2 + size))
    image, batch = (1, *pixels), (0, *pixels)
    into, out = (batch, image) if transposed else (image, batch)
    run = getattr(F, f"conv{'_transpose' * transposed}{size}d")

    def grads(xs, ws, gs):
        xs, ws = clone(xs), clone(ws)
        found = run(xs, ws, stride=2, padding=1, groups=groups)
        found.backward(gs)
        return found.detach(), xs.grad, ws.grad
    torch.testing.assert_close(y, grads(q(x, name, image), q(w, name, into), g)[0])
    torch.testing.assert_close(x.grad, grads(x, q(w, name, out), q(g, name, image))[1])
    torch.testing.assert_close(w.grad, grads(q(x, name, batch), w, q(g, name, batch))[2])


def test_roles_and_layers_have_formats_of_their_own():
    net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32), torch.nn.Linear(32, 4))
    gn.convert(net, "mxfp8", w="mxfp4", g="mxfp8-e5m2", layers={"1": "hbfp6_1x16", "2": "int8-channel"})
    assert [str(layer) for layer in net] == [
        "HBFPLinear(in_features=32, out_features=32, bias=True, x=mxfp8-e4m3, w=mxfp4, g=mxfp8-e5m2)",
        ("HBFPLinear(in_features=32, out_features=32, bias=True, x=hbfp6, w=hbfp6, g=hbfp6, block=(1, 16), "
         "order='block')"),
        "HBFPLinear(in_features=32, out_features=4, bias=True, x=int8, w=int8-row, g=int8)"]
    shown = [entry.format for entry in gn.report(net, torch.randn(2, 32)).entries]
    assert shown == ["mxfp8-e4m3 / mxfp4 / mxfp8-e5m2", "hbfp6 (1, 16)", "int8 / int8-row / int8"]
    for layer in net:
        assert gn.Formats.read(layer.formats.text) == layer.formats


def test_hbfp_beside_numbers_is_rounded_too():
    """One role of HBFP: its values are those of HBFP, the product is torch's."""
    layer = gn.convert(torch.nn.Linear(64, 8, bias=False), "mxfp4", w="hbfp8")
    x = torch.randn(5, 64)
    assert layer.formats.mode == "values"
    assert torch.equal(layer(x), gn.quantise(x, "mxfp4") @ gn.quantise(layer.weight, "hbfp8").T)


@pytest.mark.parametrize("name", ["mxfp6", "int8-token"])
def test_traced(name):
    """Exported and compiled programs have the bits of the model, forward and backward."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(128, 5))
    gn.convert(net, name, strict=True)
    x = torch.randn(4, 3, 6, 6)
    program = torch.export.export(net.eval(), (x,))
    assert torch.equal(program.module()(x), net(x))
    assert {str(node.target) for node in program.graph.nodes if "hbfp" in str(node.target)} >= {
        "hbfp.conv2d.default", "hbfp.linear.default"}
    found = []
    for run in (net.train(), torch.compile(net, backend="aot_eager")):
        net.zero_grad()
        run(x).square().sum().backward()
        found.append([parameter.grad.clone() for parameter in net.parameters()])
    assert all(map(torch.equal, *found))


def test_errors_of_operands():
    torch.manual_seed(0)
    net = gn.convert(torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)), "mxfp4",
                     w="hbfp8")
    x, t = torch.randn(16, 64), torch.arange(16) % 4
    found = gn.errors(net, x, loss=lambda y: F.cross_entropy(y, t)).operands
    assert [(each.layer, each.product, each.role, each.format) for each in found[:2]] == [
        ("0", "y", "x", "mxfp4"), ("0", "y", "w", "hbfp8 (1, 32)")]
    assert {(each.product, each.role) for each in found} == {("y", "x"), ("y", "w"), ("gx", "g"), ("gx", "w"),
                                                             ("gw", "g"), ("gw", "x")}
    first = found[0]
    became = gn.quantise(x, "mxfp4")
    assert first.noise == pytest.approx(float((x.double() - became.double()).square().sum()))
    assert first.flushed == int(((became == 0) & (x != 0)).sum()) and first.elements == x.numel()
    tops = x.view(16, 2, 32).abs().amax(-1)
    powers = (torch.frexp(tops)[1] - 1 - 2).flatten().tolist()
    assert first.exponents == {each: powers.count(each) for each in sorted(set(powers))}
    step = torch.exp2(torch.tensor(powers, dtype=torch.float32)).view(16, 2, 1)
    assert first.saturated == int((x.view(16, 2, 32).abs() > 6 * step).sum()) > 0


def test_what_has_no_values():
    net = gn.convert(torch.nn.Linear(8, 4), "nvfp4")
    assert net(torch.randn(0, 8)).shape == (0, 4)
    assert net.to("meta")(torch.randn(3, 8, device="meta")).shape == (3, 4)


@pytest.mark.parametrize("call, message", [
    (lambda: gn.convert(torch.nn.Linear(2, 2), "mxfp4", accumulate="aligned"),
     "Mode 'values' has torch's own sums: neither order nor accumulation can be chosen"),
    (lambda: gn.convert(torch.nn.Linear(2, 2), "mxfp4@fp24"),
     "Mode 'values' has torch's own sums: neither order nor accumulation can be chosen"),
    (lambda: gn.convert(torch.nn.Linear(2, 2), "mxfp4", mode="emulator"),
     "Mode 'emulator' needs HBFP formats, not mxfp4"),
    (lambda: gn.convert(torch.nn.Linear(2, 2), "mxfp4", w="hbfp4-sr"),
     "Mode 'values' needs rounding 'rne' or 'truncate', not hbfp4 (1, 32) stochastic"),
    (lambda: gn.Formats.of("mxfp4").with_mantissa(4), "A mantissa width needs HBFP formats, not mxfp4"),
    (lambda: gn.convert(torch.nn.Linear(2, 2), "hbfp8@fp12"),
     "Accumulation must be one of fp32, aligned, fp24, bf16, not 'fp12'")])
def test_wrong_formats(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_the_page_runs(capsys):
    page = (Path(__file__).parents[3] / "docs/formats.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "docs/formats.md", "exec"), {})
    assert "mxfp4" in capsys.readouterr().out


def test_sums_by_name():
    assert gn.Formats.of("hbfp8_1x16@fp24").accumulate == "fp24"
    assert gn.Formats.of("hbfp8@aligned", growth=4).growth == 4
