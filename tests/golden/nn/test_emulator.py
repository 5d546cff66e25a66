"""Training with the research emulator's semantics: each layer is torch's product between the emulator's roundings."""

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import emulate  # noqa: E402
from golden.nn import emulator  # noqa: E402

F = torch.nn.functional
TILES = gn.HBFPFormat(mantissa=5, block=(6, 6))


def q(t, noise=None):
    return torch.from_numpy(emulate(t.detach().contiguous().numpy(), 4, 6, None if noise is None else noise.numpy()))


#: Layer, the product without bias, and the input's shape.
LAYERS = {
    "linear": (lambda: torch.nn.Linear(13, 7), lambda layer: F.linear, (9, 13)),
    "conv": (lambda: torch.nn.Conv2d(5, 7, 3, 2, 1), lambda layer: lambda x, w: F.conv2d(x, w, None, 2, 1),
             (2, 5, 8, 9)),
    "conv1d": (lambda: torch.nn.Conv1d(5, 7, 3), lambda layer: F.conv1d, (2, 5, 8)),
    "transposed": (lambda: torch.nn.ConvTranspose2d(5, 7, 3), lambda layer: F.conv_transpose2d, (2, 5, 4, 4))}


@pytest.mark.parametrize("rounding", ["rne", "stochastic"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, rounding, monkeypatch):
    """Output and gradients, with the noise captured: x, w, then the gradient of the output."""
    torch.manual_seed(0)
    make, product, shape = LAYERS[name]
    layer, x = make(), torch.randn(shape).requires_grad_()
    captured = []

    def capture(shape):
        captured.append(torch.rand(shape) - 0.5)
        return captured[-1]
    monkeypatch.setattr(emulator, "uniform", capture)
    fmt = gn.HBFPFormat(mantissa=5, block=(6, 6), rounding=rounding)
    hbfp = gn.convert(torch.nn.Sequential(layer), fmt, mode="emulator", strict=True)
    assert gn.fp32_products(hbfp.eval(), x) == [] and not captured
    y = hbfp.train()(x)
    g = torch.randn_like(y)
    y.backward(g)
    u = [*captured, None, None, None][:3]
    assert len(captured) == (3 if rounding == "stochastic" else 0)
    weight = layer.weight.detach()
    shaped = [None if n is None else n.reshape(t.shape) for n, t in zip(u, (x, weight, y), strict=True)]
    qx, qw = q(x, shaped[0]).requires_grad_(), q(weight, shaped[1]).requires_grad_()
    want = product(layer)(qx, qw)
    gx, gw = torch.autograd.grad(want, (qx, qw), q(g, shaped[2]))
    bias = layer.bias.detach().view(-1, *[1] * (y.dim() - 2)) if y.dim() > 2 else layer.bias.detach()
    assert torch.equal(y, want + bias)
    assert torch.equal(x.grad, gx) and torch.equal(layer.weight.grad, gw)


def test_evaluation_draws_nothing_and_training_repeats_under_a_seed():
    net = gn.convert(torch.nn.Sequential(torch.nn.Linear(13, 7)),
                     gn.HBFPFormat(mantissa=5, block=(6, 6), rounding="stochastic"), mode="emulator")
    x = torch.randn(9, 13)
    assert torch.equal(net.eval()(x), F.linear(q(x), q(net[0].weight), net[0].bias)) and "0.noise_state" not in \
        net.state_dict()
    net.train()
    torch.manual_seed(3)
    first = net(x)
    torch.manual_seed(3)
    assert torch.equal(net(x), first) and not torch.equal(net(x), first)


@pytest.mark.parametrize("call, message", [
    (lambda: gn.Formats.of("hbfp8", mode="emulator"),
     r"^Mode 'emulator' needs square tiles such as \(24, 24\), not \(1, 32\)$"),
    (lambda: gn.Formats.of(TILES, mode="emulate"),
     r"^Mode must be one of hbfp, emulator, values, fp32, bf16, fp16, int8, not 'emulate'$"),
    (lambda: gn.Formats.of(TILES, mode="emulator", order="quick"),
     r"^Mode 'emulator' has torch's own sums: neither order nor accumulation can be chosen$"),
    (lambda: gn.Formats.of(gn.HBFPFormat(block=(6, 6), exponent=8), mode="emulator"),
     r"^Mode 'emulator' takes mantissa, block and rounding 'rne' or 'stochastic' of a format, not HBFPFormat\(.*\)$"),
    (lambda: gn.convert(torch.nn.Linear(8, 8, device="meta"), TILES, mode="emulator")(torch.ones(1, 8, device="meta")),
     r"^Mode 'emulator' needs CPU tensors with values, not meta$")])
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
