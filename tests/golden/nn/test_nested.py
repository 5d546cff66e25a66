"""Nested tensors of layout ``torch.jagged``: each sample has the bits that it has alone."""

import re

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.nn import functional, fused, nested  # noqa: E402

F = torch.nn.functional
LENGTHS = 5, 1, 7, 0, 5
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


class Own(torch.nn.Module):
    """Products of its own code: rows by a matrix, and attention."""

    def __init__(self, is_causal=False):
        super().__init__()
        self.qkv, self.out = torch.nn.Parameter(torch.randn(32, 96) / 6), torch.nn.Parameter(torch.randn(32, 32) / 6)
        self.bias, self.is_causal = torch.nn.Parameter(torch.randn(32)), is_causal

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (4, 8)).transpose(1, 2) for each in (x @ self.qkv).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return x + F.linear(y.transpose(1, 2).flatten(-2), self.out, self.bias)


class Attention(torch.nn.Module):
    """A layer of torch.nn, called as a transformer's layer calls it."""

    def __init__(self, is_causal=False):
        super().__init__()
        self.layer, self.is_causal = torch.nn.MultiheadAttention(32, 4, batch_first=True), is_causal

    def forward(self, x):
        return self.layer(x, x, x, need_weights=False, is_causal=self.is_causal)[0]


NETS = {
    "linear": lambda: torch.nn.Sequential(torch.nn.Linear(32, 24), torch.nn.GELU(), torch.nn.LayerNorm(24),
                                          torch.nn.Linear(24, 32, bias=False)),
    "encoder layer": lambda: torch.nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True),
    "encoder": lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(
        32, 4, 64, 0.0, F.gelu, batch_first=True, norm_first=True), 2, enable_nested_tensor=False),
    "own code": Own, "own code, causal": lambda: Own(True),
    "attention": Attention, "attention, causal": lambda: Attention(True)}


def samples(lengths=LENGTHS):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(length, 32, generator=generator) for length in lengths]


def together(net, parts):
    """Results of the samples as one nested tensor, and gradients: of the samples and of parameters."""
    net.zero_grad()
    x = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    y = net(x)
    assert y.is_nested and y.layout == torch.jagged and y.shape[1] == x.shape[1]          # (x + y) works
    (y * y).values().sum().backward()
    return list(y.detach().unbind()), list(x.grad.unbind()), [p.grad.clone() for p in net.parameters()]


@pytest.mark.parametrize("name, fmt", [*((name, "hbfp8_1x16") for name in NETS), ("encoder layer", "mxfp6"),
                                       ("own code", "hbfp4_1x8")])
@pytest.mark.parametrize("train", [True, False])
def test_each_sample_has_the_bits_that_it_has_alone(name, fmt, train):
    torch.manual_seed(0)
    net = gn.convert(NETS[name](), fmt, strict=True).train(train)
    parts = [part for part in samples() if len(part) or fmt.startswith("hbfp")]
    y, gx, gw = together(net, parts)
    alone = [part[None].requires_grad_() for part in parts]
    want = [net(part)[0] for part in alone]
    assert all(map(torch.equal, y, want))
    for each, part in zip(want, alone, strict=True):
        net.zero_grad()
        (each * each).sum().backward()
        assert torch.equal(gx.pop(0), part.grad[0])
    rows = sum(map(len, parts))
    assert all(g.isfinite().all() for g in gw) and len(gw) == len(list(net.parameters())) and rows == sum(LENGTHS)


def test_gradients_of_weights_are_those_of_all_rows():
    """One product sums over the rows of all samples, as it does over those of a dense batch."""
    layer, parts = gn.HBFPLinear(32, 8, fmt="hbfp8_1x16"), samples()
    _, _, (gw, gb) = together(layer, parts)
    layer.zero_grad()
    y = layer(torch.cat(parts))
    (y * y).sum().backward()
    assert torch.equal(gw, layer.weight.grad) and torch.equal(gb, layer.bias.grad)


def test_reports_frozen_layers_and_graphs():
    parts = samples()
    x = torch.nested.nested_tensor(parts, layout=torch.jagged)
    net = gn.convert(NETS["linear"](), "hbfp8").eval()
    want = [net(part) for part in parts]
    assert gn.report(net, x).left == [] and [entry.operation for entry in gn.report(net, x).entries] == ["linear"] * 2
    assert len(gn.errors(net, x).operands) == 4
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        for run in (net, gn.freeze(net), compiled):
            assert all(map(torch.equal, run(x).unbind(), want))


@pytest.mark.parametrize("call, line", [
    (lambda x: gn.HBFPMultiheadAttention(32, 4, batch_first=True)(x, x, x), nested.PLAIN),
    (lambda x: gn.HBFPMultiheadAttention(32, 4)(x, x, x, need_weights=False), nested.PLAIN),
    (lambda x: gn.HBFPMultiheadAttention(32, 4, batch_first=True)(
        x, x, x, need_weights=False, key_padding_mask=torch.zeros(5, 7)), nested.PLAIN),
    (fused.fuse([gn.HBFPLinear(32, 4) for _ in range(2)]), "A job takes padded tensors, not nested ones"),
    (gn.HBFPConv2d(32, 4, 1), "Operands of HBFP products must be dense tensors, not a nested tensor"),
    (gn.HBFPLSTM(32, 4), "Operands of HBFP products must be dense tensors, not a nested tensor"),
    (lambda x: functional.matmul(x, x), "Operands of HBFP products must be dense tensors, not a nested tensor"),
    (lambda x: gn.HBFPLinear(32, 4)(torch.nested.narrow(torch.ones(2, 9, 32), 1, torch.tensor([1, 2]), torch.tensor(
        [3, 4]), layout=torch.jagged)), "Operands of HBFP products must be dense tensors, not a nested tensor")])
def test_what_cannot_be_is_one_line(call, line):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(line)}$"):
        call(torch.nested.nested_tensor(samples(), layout=torch.jagged))
