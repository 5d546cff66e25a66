"""Layers that the GPU's kernels compute have the bits of the CPU.

Covers: golden/nn/converted.py, golden/nn/stacked_groups.py.
"""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="needs Triton: pip install 'hbfp[gpu]'")

import golden.nn as gn  # noqa: E402
from golden.gpu import runtime  # noqa: E402
from golden.nn import converted, portable  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in :RuntimeWarning")    # NumPy's, of the interpreter


def fmt(mantissa, *block, **more):
    return HBFPFormat(mantissa=mantissa, block=block, **more)


FORMATS = {
    "hbfp8": gn.Formats.of(fmt(8, 1, 16)),
    "stochastic": gn.Formats.of(fmt(5, 1, 8), g=fmt(5, 1, 8, rounding="stochastic")),
    "tile": gn.Formats.of(fmt(6, 16, 16)),
    "stochastic tile": gn.Formats.of(fmt(5, 8, 8, rounding="stochastic")),
    "aligned": gn.Formats.of(fmt(6, 1, 16), accumulate="aligned"),
    "bf16": gn.Formats.of(fmt(8, 1, 16), accumulate="bf16"),
    "roles": gn.Formats.of(fmt(4, 1, 16), w=fmt(16, 1, 16), g=fmt(12, 1, 16, rounding="truncate"), accumulate="fp24"),
}


def passes(make, x, formats, device, noise):
    """Output, gradients and noise of a converted layer after a forward and a backward pass."""
    torch.manual_seed(4)
    layer = gn.convert(make(), formats, seed=7, noise=noise).to(device)
    x = x.clone().to(device).requires_grad_()
    for _ in range(1 + formats.stochastic):            # noise goes on
        y = layer(x)
        y = y[0] if isinstance(y, tuple) else y
        y.backward(torch.linspace(-3, 5, y.numel()).sin().view(y.shape).to(device))
    return [t.detach().cpu() for t in (y, x.grad, *(p.grad for p in layer.parameters()), *layer.buffers())]


class Attention(torch.nn.MultiheadAttention):
    """Attention of an input to itself."""

    def __init__(self):
        super().__init__(8, 2, bias=False, batch_first=True)

    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


LAYERS = {
    "linear": (lambda: torch.nn.Linear(20, 13), (3, 5, 20)),
    "attention": (Attention, (1, 4, 8)),
    "conv": (lambda: torch.nn.Conv2d(8, 6, 3, padding=1, bias=False), (1, 8, 3, 4)),
    "once": (lambda: torch.nn.Conv2d(16, 8, (1, 2), stride=2, padding=1, bias=False), (1, 16, 3, 3)),
    "grouped": (lambda: torch.nn.Conv2d(4, 4, 3, stride=2, groups=2, bias=False), (1, 4, 5, 6)),
    "depthwise": (lambda: torch.nn.Conv2d(3, 6, (3, 2), padding=1, groups=3, bias=False), (1, 3, 3, 4)),
    "transposed": (lambda: torch.nn.ConvTranspose1d(4, 3, 3, bias=False), (2, 4, 6)),
}


def run(layer, *args):
    make, shape = LAYERS[layer]
    return passes(make, torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 3, *args)


CASES = [(layer, name, noise) for layer in LAYERS for name, formats in FORMATS.items()
         for noise in ("lanes", "position") if noise == "lanes" or formats.stochastic and (
             layer in ("linear", "attention") or layer in ("conv", "once") and formats.x.rounding == "rne")]


#: The quicker ones, of each layer, format and noise.
DEFAULT = [("linear", "stochastic tile", "lanes"), ("linear", "stochastic", "position"), ("linear", "roles", "lanes"),
           ("attention", "hbfp8", "lanes"), ("conv", "bf16", "lanes"), ("once", "aligned", "lanes"),
           ("grouped", "tile", "lanes"), ("depthwise", "hbfp8", "lanes"), ("transposed", "stochastic", "lanes")]


@pytest.mark.parametrize("layer, formats, noise", [
    case if case in DEFAULT else pytest.param(*case, marks=pytest.mark.slow) for case in CASES])
def test_layers(device, layer, formats, noise):
    want = run(layer, FORMATS[formats], "cpu", noise)
    with runtime.forced():
        got = run(layer, FORMATS[formats], device, noise)
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


def test_a_matrix_is_read_once(device, monkeypatch):
    """For both of the directions that training needs; in evaluation for one."""
    from golden.gpu import convert
    made, true = [], convert.converted
    monkeypatch.setattr(convert, "converted", lambda x, fmt, **more: made.append(
        (more["across"], more["down"])) or true(x, fmt, **more))
    layer = gn.convert(torch.nn.Linear(4, 3), "hbfp4").to(device)
    x = torch.ones(2, 4, device=device)
    with runtime.forced():
        y = layer(x.requires_grad_())
        assert made == [(True, True)] * 2
        y.sum().backward()
        assert made == [(True, True)] * 3
        made.clear()
        layer(x.detach())
        assert made == [(True, True), (True, False)]       # no gradient of x is asked for
        made.clear()
        with torch.no_grad():
            layer(x)
        assert made == [(True, False)] * 2
        made.clear()
        a = torch.ones(2, 3, 4, device=device, requires_grad=True)
        gn.functional.matmul(a, a.mT, "hbfp4").sum().backward()
        assert made == [(True, True)] * 3


def test_layers_are_really_forced(device):
    """Or the tests above would compare a way with itself."""
    x = torch.ones(2, 2)
    assert portable.on_host(x) and not converted.serves(x)
    with runtime.forced():
        assert converted.serves(x.to(device)) and not portable.on_host(x.to(device))


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Side arithmetic is computed on the CPU:UserWarning")
def test_side_arithmetic(device):
    """What is no product has the accelerator's bits there, too."""
    if device.type != "cuda":
        pytest.skip("needs a GPU")

    def passed(where):
        torch.manual_seed(4)
        layers = torch.nn.Linear(20, 13), torch.nn.GELU(), torch.nn.LayerNorm(13), torch.nn.Softmax(-1)
        model = gn.convert(torch.nn.Sequential(*layers), "hbfp8", side=gn.DESIGN_SIDE).to(where)
        x = torch.randn(6, 20, generator=torch.Generator().manual_seed(1)).to(where).requires_grad_()
        y = model(x)
        y.backward(torch.linspace(-1, 1, y.numel()).view(y.shape).to(where))
        return [t.detach().cpu() for t in (y, x.grad, *(p.grad for p in model.parameters()))]
    for a, b in zip(passed(device), passed("cpu"), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("noise", ["lanes", "position"])
def test_noise_is_drawn_on_the_device(device, monkeypatch, noise):
    """No host draws, and none waits for the state."""
    from golden.nn import placed, state

    def never(*args, **more):
        raise AssertionError("drawn on the host")
    layer = gn.convert(torch.nn.Linear(9, 4), FORMATS["stochastic tile"], seed=3, noise=noise).to(device)
    monkeypatch.setattr(placed, "drawn", never)
    monkeypatch.setattr(state._BufferStream, "words", never)
    with runtime.forced():
        layer(torch.ones(3, 9, device=device, requires_grad=True)).sum().backward()


def test_checkpointed_layers_repeat_their_noise(device):
    from torch.utils.checkpoint import checkpoint
    x = torch.randn(5, 9, generator=torch.Generator().manual_seed(1)).to(device)

    def passed(again):
        layer = gn.convert(torch.nn.Linear(9, 4, bias=False), FORMATS["stochastic tile"], seed=3).to(device)
        with torch.no_grad():
            layer.weight.copy_(torch.linspace(-1, 1, 36).view(4, 9))
        y = checkpoint(layer, x, use_reentrant=False) if again else layer(x)
        y.sum().backward()
        return y.detach(), layer.weight.grad, layer.noise_state
    with runtime.forced():
        for a, b in zip(passed(False), passed(True), strict=True):
            assert torch.equal(a, b)


def test_convolutions_convert_elements_once(device, monkeypatch):
    """Where blocks divide the channels: no patch is converted but for the gradient of the weights."""
    from golden.gpu import convert
    made, true = [], convert.converted
    monkeypatch.setattr(convert, "converted",
                        lambda x, fmt, **more: made.append(tuple(x.shape)) or true(x, fmt, **more))
    layer = gn.convert(torch.nn.Conv2d(16, 16, 2, bias=False), gn.Formats.of(fmt(4, 1, 16))).to(device)
    with runtime.forced():
        y = layer(torch.ones(1, 16, 3, 3, device=device, requires_grad=True))
        assert made == [(1, 9, 16), (1, 64, 16)]
        y.sum().backward()
    assert made[2:4] == [(1, 16, 16), (1, 64, 16)] and (1, 3, 3, 16) in made[4:]    # its places say what a patch is
