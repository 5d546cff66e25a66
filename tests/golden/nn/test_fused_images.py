"""Maximum pooling and FP32 convolutions of a job: the bits of each model alone.

Covers: golden/nn/fused/convolution_fp32.py, golden/nn/fused/pooling.py.
"""

import copy
import itertools

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from golden.nn import fused  # noqa: E402
from golden.nn.fused import convolution_fp32, proof  # noqa: E402

POOLS = [{"kernel_size": k, "stride": s, "padding": p, "dilation": d, "ceil_mode": c}
         for k, s, p, d, c in itertools.product((1, 2, (3, 2)), (None, 1, (2, 3)), (0, 1), (1, 2), (False, True))
         if not (p and k == 1)]
#: Arguments of a convolution, side of the images.
CONVOLUTIONS = [((1, 16, 3), {"padding": 1}, 8), ((2, 8, (1, 3)), {"bias": False, "stride": (1, 2)}, 7),
                ((3, 5, 2), {"dilation": 2, "padding": (0, 1)}, 9), ((16, 32, 3), {"padding": 1}, 4),
                ((8, 8, 3), {"stride": 2, "bias": False}, 7), ((12, 4, 1), {}, 5), ((16, 16, 3), {"groups": 4}, 6),
                ((8, 8, 3), {"padding": "same"}, 6), ((8, 8, 3), {"padding": 1, "padding_mode": "circular"}, 6)]


def same(layers, x, frozen=False, seed=0):
    """Compare outputs and gradients of layers alone and as a job."""
    for layer in layers:
        layer.zero_grad()
    twins = copy.deepcopy(layers)
    sides = []

    def alone(x):
        return torch.cat([layer(part) for layer, part in zip(layers, x.chunk(len(layers)), strict=True)])
    for run in (alone, fused.fuse(twins)):
        own = x.clone(memory_format=torch.preserve_format).requires_grad_(not frozen)
        y = run(own)
        top = torch.randn(y.shape, generator=torch.Generator().manual_seed(seed))
        if y.requires_grad:
            y.backward(top)
        sides.append([y.detach(), own.grad])
    for one, other in zip(layers, twins, strict=True):
        sides[0] += [p.grad for p in one.parameters()]
        sides[1] += [p.grad for p in other.parameters()]
    for one, other in zip(*sides, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert proof.same_bits(*(torch.where(y.isnan(), torch.nan, y) for y in (one, other)))


@pytest.mark.parametrize("channels", [2, 8, 19])
def test_maximum_pooling(channels):
    torch.manual_seed(0)
    x = torch.randint(-3, 3, (6, channels, 7, 9)).float()               # equal numbers in a window
    x[0, 0, 2, 3:5] = torch.nan
    x[1] = -torch.inf
    x[2, 0, 1, 1], x[2, 0, 1, 2] = 0.0, -0.0
    for options, form in itertools.product(POOLS, (torch.contiguous_format, torch.channels_last)):
        same([nn.MaxPool2d(**options) for _ in range(2)], x.contiguous(memory_format=form))


def test_a_pooled_image_lies_in_memory_as_torch_lays_it():
    pool, x = nn.MaxPool2d(2), torch.randn(4, 8, 6, 6, requires_grad=True)
    y = fused.fuse([pool, copy.deepcopy(pool)])(x)
    assert y.is_contiguous()
    assert torch.autograd.grad(y.square().sum(), x)[0].is_contiguous()


def test_pooling_that_torch_refuses_is_refused_in_its_words():
    for options, message in (({"kernel_size": 2, "padding": 2}, "pad should be at most half"),
                             ({"kernel_size": 9}, "Output size is too small")):
        with pytest.raises(RuntimeError, match=message):
            fused.fuse([nn.MaxPool2d(**options) for _ in range(2)])(torch.randn(2, 8, 4, 4))
    layers = [nn.MaxPool2d(2, return_indices=True) for _ in range(2)]
    assert len(fused.fuse(layers)(torch.randn(2, 8, 4, 4))) == 2


def test_gradients_of_pooling_can_be_differentiated_again():
    x = torch.randn(4, 8, 6, 6, dtype=torch.float32, requires_grad=True)
    found = []
    for run in (nn.MaxPool2d(2), fused.fuse([nn.MaxPool2d(2) for _ in range(2)])):
        (g,) = torch.autograd.grad(run(x).pow(3).sum(), x, create_graph=True)
        found.append(torch.autograd.grad(g.square().sum(), x)[0])
    assert torch.equal(*found)


def test_pools_that_differ_take_turns():
    x = torch.randn(4, 8, 6, 6)
    y = fused.fuse([nn.MaxPool2d(3, 1, padding=1), nn.MaxPool2d(3, 1, padding=(1, 1))])(x)
    assert torch.equal(y, nn.MaxPool2d(3, 1, padding=1)(x))


@pytest.mark.parametrize("found", ["proven", "refused"])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions(case, found, monkeypatch):
    sizes, options, side = case
    if found == "refused":
        monkeypatch.setattr(convolution_fp32, "proven", lambda key, test: False)
    torch.manual_seed(0)
    layers = [nn.Conv2d(*sizes, **options) for _ in range(3)]
    x = torch.randn(12, sizes[0], side, side + 2)
    same(layers, x)
    same(layers, x, frozen=True)
    same(layers, x.contiguous(memory_format=torch.channels_last))
    same(layers, x[:3])
    same(layers, x * 1e-38)
    with torch.no_grad():
        same(layers, x)


@pytest.mark.parametrize("case", [CONVOLUTIONS[0], CONVOLUTIONS[3]], ids=str)
@pytest.mark.parametrize("kind", ["weight infinite", "weight nan", "image infinite", "negative zeros", "frozen"])
def test_convolutions_of_extremes(case, kind):
    sizes, options, side = case
    torch.manual_seed(0)
    layers = [nn.Conv2d(*sizes, **options) for _ in range(3)]
    x = torch.randn(12, sizes[0], side, side)
    with torch.no_grad():
        if kind == "weight infinite":
            layers[1].weight.view(-1)[::7] = torch.inf
        elif kind == "weight nan":
            layers[0].weight.view(-1)[::7] = torch.nan
        elif kind == "image infinite":
            x.view(-1)[::11] = -torch.inf
        elif kind == "negative zeros":
            x.zero_()
            for layer in layers:
                layer.weight.neg_()
                layer.bias.fill_(-0.0)
    if kind == "frozen":
        for layer in layers:
            layer.weight.requires_grad_(False)
    same(layers, x)


def test_the_quicker_ways_are_taken_where_proven(monkeypatch):
    asked = []
    monkeypatch.setattr(convolution_fp32, "proven", lambda key, test: asked.append(key[0]) or True)
    x = torch.randn(6, 16, 4, 4, requires_grad=True)
    fused.fuse([nn.Conv2d(16, 8, 3) for _ in range(3)])(x).sum().backward()
    assert asked == ["convolution"]                  # a gradient without memory of its own goes to each
    fused.fuse([nn.Conv2d(16, 8, 3) for _ in range(3)])(x).square().sum().backward()
    assert asked == ["convolution", "convolution", "gradients"]


def test_a_proof_is_asked_once(monkeypatch):
    monkeypatch.setattr(proof, "_FOUND", {})
    layers = [nn.Conv2d(*CONVOLUTIONS[3][0]) for _ in range(3)]
    same(layers, torch.randn(6, 16, 4, 4))
    assert [type(found) for found in proof._FOUND.values()] == [bool, bool]
    monkeypatch.setattr(convolution_fp32, "_DRAWS", None)             # a proof would fail
    same(layers, torch.randn(6, 16, 4, 4))


def test_a_way_with_other_bits_is_refused():
    w, b, g = torch.randn(3, 4, 8, 3, 3), torch.randn(3, 4), torch.Generator().manual_seed(0)
    x, options = torch.randn(6, 8, 5, 5), ((1, 1), (1, 1), (1, 1))

    def off(*operands):
        return convolution_fp32._grouped(*operands) * (1 + 2**-23)
    assert not convolution_fp32._forward_proof(off, x, w, b, options, g)
