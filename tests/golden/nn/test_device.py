"""Layers on a GPU give the bits of the CPU; without a GPU the file is skipped."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

from golden.nn import HBFPLSTM, HBFPConv2d, HBFPLinear, HBFPMultiheadAttention, wide_weights  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402

FORMATS = {
    "hbfp8": HBFPFormat(mantissa=8, block=(1, 32)), "hbfp4": HBFPFormat(mantissa=4, block=(1, 16)),
    "tile": HBFPFormat(mantissa=6, block=(24, 24)), "wide": HBFPFormat(mantissa=12, block=(1, 64)),
    "stochastic": HBFPFormat(mantissa=6, block=(1, 32), rounding="stochastic"),
    "truncate": HBFPFormat(mantissa=5, exponent=6, block=(16, 16), rounding="truncate"),
}


def run(layer, x, g, device):
    """Output and gradients of one forward and backward pass, on the CPU."""
    layer = layer.to(device)
    x = x.to(device).requires_grad_()
    y = layer(x)
    y = y[0] if isinstance(y, tuple) else y
    y.backward(g.to(device))
    found = {"y": y, "gx": x.grad} | {name: p.grad for name, p in layer.named_parameters()}
    return {name: value.detach().cpu() for name, value in found.items()}


def compare(make, x, g, close=()):
    torch.manual_seed(3)
    first = make()
    second = make()
    second.load_state_dict(first.state_dict())
    want, got = run(first, x, g, "cpu"), run(second, x, g, "cuda")
    for name, value in want.items():
        if name in close:    # sums of the layer in FP32, whose order torch leaves open
            torch.testing.assert_close(got[name], value, rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(got[name].view(torch.int32), value.view(torch.int32)), name


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_linear(fmt):
    x = torch.randn(65, 130) * torch.logspace(-12, 12, 65, base=2)[:, None]
    compare(lambda: HBFPLinear(130, 47, fmt=fmt), x, torch.randn(65, 47), close=("bias",))


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}],
                         ids=["plain", "stride", "groups"])
def test_convolution(fmt, options):
    x = torch.randn(3, 6, 13, 11)
    make = lambda: HBFPConv2d(6, 8, 3, bias=False, fmt=fmt, **options)  # noqa: E731
    compare(make, x, torch.randn_like(make()(x)))


def test_invalid_blocks():
    x = torch.randn(8, 96)
    x[2, 40], x[5, 1] = float("inf"), float("nan")
    compare(lambda: HBFPLinear(96, 24, bias=False, fmt=FORMATS["hbfp8"]), x, torch.randn(8, 24))


@pytest.mark.parametrize("make", [lambda: HBFPLSTM(24, 32, fmt=FORMATS["hbfp8"]),
                                  lambda: HBFPMultiheadAttention(32, 4, fmt=FORMATS["hbfp8"])],
                         ids=["lstm", "attention"])
def test_layers_of_functions_run(make):
    """Their functions are torch's and differ in the last place between devices: here they only have to run."""
    layer = make().cuda()
    x = torch.randn(5, 2, 24 if isinstance(layer, HBFPLSTM) else 32, device="cuda", requires_grad=True)
    y = layer(x)[0] if isinstance(layer, HBFPLSTM) else layer(x, x, x)[0]
    y.sum().backward()
    assert y.isfinite().all() and x.grad.isfinite().all()


def test_training_stays_equal():
    """Twenty steps with momentum and wide master weights end in the same bits."""
    def train(device):
        torch.manual_seed(5)
        model = torch.nn.Sequential(HBFPLinear(64, 48, bias=False, fmt=FORMATS["hbfp4"]), torch.nn.ReLU(),
                                    HBFPLinear(48, 10, bias=False, fmt=FORMATS["hbfp8"])).to(device)
        x, target = torch.randn(128, 64).to(device), torch.randn(128, 10).to(device)
        optimiser = wide_weights(torch.optim.SGD(model.parameters(), lr=2.0 ** -7, momentum=0.5))
        for _ in range(20):
            optimiser.zero_grad()
            y = model(x)
            y.backward((y - target).detach())    # gradient of half the squared error: no sum, so no order
            optimiser.step()
        return [p.detach().cpu() for p in model.parameters()]
    for a, b in zip(train("cpu"), train("cuda"), strict=True):
        assert torch.equal(a.view(torch.int32), b.view(torch.int32))
