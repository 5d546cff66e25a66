"""Frozen weights give the bits of weights that are converted at every call, and follow every change.

Covers: golden/nn/frozen_images.py.
"""

import copy
import re

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.fast import kernels  # noqa: E402

FORMATS = {"hbfp8": gn.HBFPFormat(block=(1, 16)), "wide": gn.HBFPFormat(mantissa=12, block=(1, 32)),
           "tile": gn.HBFPFormat(mantissa=6, block=(24, 24)), "odd": gn.HBFPFormat(mantissa=5, block=(1, 7))}


def model(fmt=None, **options):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, 2), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 32, 3, groups=4), torch.nn.Flatten(), torch.nn.Linear(32, 70), torch.nn.ReLU(),
        torch.nn.Linear(70, 10, bias=False))
    return gn.convert(net, fmt, **options)


def bits(y):
    return y.detach().contiguous().view(torch.int32)


def same(net, x):
    """The frozen ``net`` gives what its thawed copy gives; returns that."""
    with torch.no_grad():
        want, got = gn.thaw(copy.deepcopy(net))(x), net(x)
    assert torch.equal(bits(got), bits(want))
    return want


@pytest.mark.parametrize("batch", [0, 1, 5, 50])
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_same_bits(fmt, batch):
    net = model(fmt)
    assert gn.freeze(net) is net
    for scale in (1, 1e-30, 1e30, float("nan")):
        same(net, torch.randn(batch, 3, 7, 7) * scale)


IMAGES = torch.randn(2, 16, 9, 8, generator=torch.Generator().manual_seed(3))


def test_images_of_another_kind_are_seen():
    """Of what is kept for images of one shape, strides, format or padding nothing is used for others."""
    net = gn.convert(torch.nn.Sequential(torch.nn.Conv2d(16, 5, (3, 2), (2, 1), (1, 0), (1, 2))), FORMATS["hbfp8"])
    alone = gn.freeze(net)[0]
    for x in (IMAGES, IMAGES[:1], IMAGES.to(memory_format=torch.channels_last), IMAGES[:, :, 1:, ::2], IMAGES, -IMAGES,
              IMAGES[:0], torch._neg_view(IMAGES)):
        same(net, x)
    for fmt in ("hbfp4", FORMATS["tile"], FORMATS["wide"]):
        alone.formats = fmt
        same(net, IMAGES)
    for option, value in (("padding", (2, 3)), ("stride", (1, 1)), ("dilation", (2, 1))):
        setattr(alone, option, value)
        same(net, IMAGES)


@pytest.mark.parametrize("x", [IMAGES[:, :8], IMAGES[:, :, :1, :1]])
def test_images_that_do_not_fit_are_refused(x):
    """Those that have not as many channels, or are smaller than the kernel, as by a layer that is not frozen."""
    net = gn.freeze(gn.convert(torch.nn.Sequential(torch.nn.Conv2d(16, 5, 3)), FORMATS["hbfp8"]))
    with torch.no_grad():
        net(IMAGES)
        lines = []
        for each in (net, gn.thaw(copy.deepcopy(net))):
            with pytest.raises(ValueError) as error:
                each(x)
            lines.append(str(error.value))
    assert lines[0] == lines[1]


def test_weights_of_another_shape_are_seen():
    """Also where the layer's own numbers of channels still say what they said."""
    net = gn.freeze(gn.convert(torch.nn.Sequential(torch.nn.Conv2d(16, 5, 3, bias=False)), FORMATS["hbfp8"]))
    same(net, IMAGES)
    net[0].weight = torch.nn.Parameter(torch.randn(7, 16, 2, 3))
    assert same(net, IMAGES).shape == (2, 7, 8, 6)
    net[0].weight = torch.nn.Parameter(torch.randn(5, 8, 3, 3))
    with torch.no_grad(), pytest.raises(ValueError, match=r"^Shapes of input and weight must be"):
        net(IMAGES)


def count_conversions(monkeypatch):
    """Shapes of what is converted from here on."""
    seen, encoded = [], kernels.encoded

    def count(x, *args, **options):
        seen.append(x.shape)
        return encoded(x, *args, **options)
    monkeypatch.setattr(kernels, "encoded", count)
    return seen


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
def test_weights_are_converted_once(monkeypatch):
    net = gn.freeze(gn.convert(torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.Linear(48, 16))))
    seen = count_conversions(monkeypatch)
    with torch.no_grad():
        net(torch.randn(3, 32))
        assert seen == [(48, 32), (3, 32), (16, 48), (3, 48)]
        net(torch.randn(3, 32))
    assert seen[4:] == [(3, 32), (3, 48)]


def step(net):
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    net(torch.randn(2, 3, 7, 7)).square().sum().backward()
    optimiser.step()


def another_parameter(net):
    net[6].weight = torch.nn.Parameter(torch.randn(70, 32))


def another_format(net):
    gn.convert(net, gn.HBFPFormat(mantissa=3, block=(1, 16)))


CHANGES = {
    "step": step, "parameter": another_parameter, "format": another_format,
    "load": lambda net: net.load_state_dict({k: v + 0.5 for k, v in net.state_dict().items()}),
    "in place": lambda net: torch.nn.init.ones_(net[8].weight),
    "data": lambda net: setattr(net[0].weight, "data", torch.randn(16, 3, 3, 3)),
    "past autograd": lambda net: (net[0].weight.data.mul_(3), gn.freeze(net))}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_are_followed(change):
    net, x = gn.freeze(model(FORMATS["hbfp8"])), torch.randn(3, 3, 7, 7)
    before = same(net, x)
    change(net)
    assert not torch.equal(before, same(net, x))


class SelfAttention(gn.HBFPMultiheadAttention):
    """Of one input."""

    def forward(self, x):
        return super().forward(x, x, x)


SEVERAL = {
    "lstm": lambda fmt: gn.HBFPLSTM(24, 20, 2, fmt, bidirectional=True),
    "projected": lambda fmt: gn.HBFPLSTM(24, 20, fmt=fmt, proj_size=9, bias=False),
    "attention": lambda fmt: SelfAttention(24, 4, fmt=fmt),
    "no biases": lambda fmt: SelfAttention(24, 2, bias=False, fmt=fmt)}


@pytest.mark.parametrize("make", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_layers_of_several_weights(make, fmt):
    """All of them are kept, each by itself, and follow changes."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(make(fmt))
    thawed, x = copy.deepcopy(net), torch.randn(5, 3, 24)
    gn.freeze(net)
    for change in (lambda _: None, lambda _: None, lambda layer: layer.load_state_dict(
            {name: value * 1.5 for name, value in layer.state_dict().items()})):
        change(net)
        change(thawed)
        with torch.no_grad():
            assert torch.equal(bits(net(x)[0]), bits(thawed(x)[0]))


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
@pytest.mark.parametrize("make, conversions", [(SEVERAL["lstm"], 4 * (1 + 5)), (SEVERAL["attention"], 4)],
                         ids=["lstm", "attention"])
def test_several_weights_are_converted_once(monkeypatch, make, conversions):
    """An LSTM converts all inputs at once and five states, in two layers and two directions; attention the inputs of
    four projections; its heads are converted within their products."""
    net, x = gn.freeze(make(FORMATS["hbfp8"])), torch.randn(5, 3, 24)
    with torch.no_grad():
        net(x)
        seen = count_conversions(monkeypatch)
        net(x)
    weights = {tuple(p.shape) for p in net.parameters()} | {(24, 24)}
    assert not weights & set(seen) and len(seen) == conversions


def test_gradients_are_those_of_a_model_that_is_not_frozen():
    results = []
    for prepare in (gn.freeze, gn.thaw):
        net = prepare(model(FORMATS["hbfp8"]))
        torch.manual_seed(1)
        x = torch.randn(3, 3, 7, 7, requires_grad=True)
        y = net(x)
        y.square().sum().backward()
        results.append([y, x.grad, *(p.grad for p in net.parameters())])
    for a, b in zip(*results, strict=True):
        assert torch.equal(bits(a), bits(b))


def test_inputs_may_draw():
    fmt = gn.HBFPFormat(block=(1, 16), rounding="stochastic")
    rne = gn.HBFPFormat(block=(1, 16))
    net = gn.freeze(model(fmt, w=rne))
    alone = gn.freeze(gn.convert(torch.nn.Sequential(torch.nn.Linear(40, 8)), fmt, w=rne))
    for frozen, x in ((net, torch.randn(3, 3, 7, 7)), (alone, torch.randn(3, 40)),
                      (alone, torch.randn(3, 40) * 1e-37)):    # the last leaves what float32 holds exactly
        other = gn.thaw(copy.deepcopy(frozen))
        with torch.no_grad():
            for _ in range(2):
                assert torch.equal(bits(frozen(x)), bits(other(x)))
        for a, b in zip(frozen.buffers(), other.buffers(), strict=True):
            assert torch.equal(a, b)


def test_evaluation_draws_nothing():
    """What is stochastic in training rounds to nearest, weights too; in training it is as if not frozen."""
    fmt = gn.HBFPFormat(mantissa=4, block=(1, 16), rounding="stochastic")
    net, x = gn.freeze(model(fmt).eval()), torch.randn(3, 3, 7, 7)
    before = [b.clone() for b in net.buffers()]
    near = gn.convert(copy.deepcopy(net), gn.HBFPFormat(mantissa=4, block=(1, 16)))
    assert torch.equal(bits(same(net, x)), bits(same(near, x)))
    assert before and all(torch.equal(a, b) for a, b in zip(before, net.buffers(), strict=True))
    same(net.train(), x)
    assert not all(torch.equal(a, b) for a, b in zip(before, net.buffers(), strict=True))


CALLS = {
    "same": (torch.nn.Conv2d(16, 8, 3, padding="same"), torch.float32, (2, 16, 6, 6)),
    "reflect": (torch.nn.Conv2d(16, 8, 3, padding=1, padding_mode="reflect"), torch.float32, (2, 16, 6, 6)),
    "no batch": (torch.nn.Conv2d(16, 8, 3), torch.float32, (16, 6, 6)),
    "narrow convolution": (torch.nn.Conv2d(16, 8, 3), torch.bfloat16, (2, 16, 6, 6)),
    "narrow": (torch.nn.Linear(16, 8), torch.float16, (2, 16)),
    "one row": (torch.nn.Linear(16, 8), torch.float32, (16,))}


@pytest.mark.parametrize("layer, dtype, shape", CALLS.values(), ids=CALLS)
def test_every_call_of_a_layer(layer, dtype, shape):
    net = gn.freeze(gn.convert(torch.nn.Sequential(copy.deepcopy(layer).to(dtype)), FORMATS["hbfp8"]))
    x = torch.randn(shape).to(dtype)
    with torch.no_grad():
        want, got = gn.thaw(copy.deepcopy(net))(x), net(x)
    assert got.dtype == dtype and torch.equal(got, want)


def test_mode_emulator_set_later():
    net, tile = gn.freeze(model(FORMATS["tile"])), gn.HBFPFormat(mantissa=4, block=(24, 24))
    gn.convert(net, tile, mode="emulator")
    same(net, torch.randn(3, 3, 7, 7))


def test_traced_and_counted():
    """Exported, compiled and reported as without."""
    net, x = gn.freeze(model(FORMATS["hbfp8"]).eval()), torch.randn(3, 3, 7, 7)
    want = same(net, x)
    with torch.no_grad():
        assert torch.equal(bits(torch.export.export(net, (x,)).module()(x)), bits(want))
        assert str(gn.report(net, x)) == str(gn.report(gn.thaw(copy.deepcopy(net)), x))
        x = torch.randn(2, 3, 32)
        assert torch.equal(bits(torch.vmap(net[6])(x)), bits(torch.stack([net[6](each) for each in x])))


def test_without_a_compiler_nothing_changes(monkeypatch):
    net, x = gn.freeze(model(FORMATS["hbfp8"])), torch.randn(3, 3, 7, 7)
    want = same(net, x)
    monkeypatch.setattr(kernels, "library", lambda: None)
    assert torch.equal(bits(same(net, x)), bits(want))


def test_wrong_input_is_refused_as_before():
    net = gn.freeze(gn.HBFPLinear(32, 8))
    with torch.no_grad(), pytest.raises(TypeError, match=r"^input must be float32, not float64$"):
        net(torch.randn(2, 32).double())
    with torch.no_grad(), pytest.raises(ValueError, match=r"^Shapes of input and weight must be "):
        net(torch.randn(2, 31))


@pytest.mark.parametrize("options, message", [
    ({"fmt": gn.HBFPFormat(rounding="stochastic")},
     "rounds its weights stochastically, anew at every call; w needs rounding 'rne' or 'truncate', or eval()"),
    ({"fmt": gn.HBFPFormat(block=(24, 24)), "mode": "emulator"}, "needs mode 'hbfp', not 'emulator'"),
    ({"order": "quick"}, "needs order 'block' and accumulation 'fp32', not 'quick' and 'fp32'"),
    ({"accumulate": "aligned"}, "needs order 'block' and accumulation 'fp32', not 'block' and 'aligned'")])
def test_what_cannot_be_kept_is_refused(options, message):
    net = torch.nn.Sequential(gn.HBFPLinear(4, 4), gn.HBFPLinear(4, 4, **options))
    with pytest.raises(ValueError, match=rf"^Layer '1' cannot be frozen: it {re.escape(message)}$"):
        gn.freeze(net)
    assert net[0].frozen is None
