"""Noise by position in models: keys by layer, product, role and step, and nothing else that decides."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import golden.nn as gn
from golden.bfp import encode
from golden.matmul import matmul_blocks
from golden.position import drawn, step_key, tensor_key
from hbfp.format import HBFPFormat

from .strided import gradient, parts

NEAREST = HBFPFormat(block=(1, 8))
STOCHASTIC = replace(NEAREST, rounding="stochastic")
TILES = replace(STOCHASTIC, block=(8, 8))


def converted(model, fmt=STOCHASTIC, **options):
    return gn.convert(model, fmt, noise="position", **options)


def blocks(matrix, fmt, axis, key):
    """A tensor in HBFP, its numbers drawn under a key."""
    x = matrix.detach().numpy()
    return encode(x, fmt, drawn(key, x.shape, fmt), axis=axis)


def product(a, b):
    return torch.from_numpy(matmul_blocks(a, b))


def turned(each):
    """Blocks of the transpose."""
    return replace(each, mantissa=each.mantissa.T, exponent=each.exponent.T, invalid=each.invalid.T,
                   axis=each.axis if each.fmt.square else -3 - each.axis)


@pytest.mark.parametrize("fmt", [STOCHASTIC, TILES])
def test_a_layer_draws_by_the_rule(fmt):
    """All three products of a layer, the second of two, in step 5; a weight has its own rows, however it is turned."""
    torch.manual_seed(0)
    layers = converted(nn.ModuleList([nn.Linear(20, 20), nn.Linear(20, 11, bias=False)]), fmt, seed=9)
    x, g = torch.randn(13, 20, requires_grad=True), torch.randn(13, 11)
    gn.begin_step(layers, 5)
    y = layers[1](x)
    y.backward(g)
    w, step = layers[1].weight, step_key(9, 5)
    keys = {role: tensor_key(10, 0, role) ^ step for role in "xwg"}

    def along(role, tensor, axis):
        return blocks(tensor, fmt, axis, keys[role])
    assert torch.equal(y, product(along("x", x, -1), turned(along("w", w, -1))))
    assert torch.equal(x.grad, product(along("g", g, -1), along("w", w, -2)))
    assert torch.equal(w.grad, product(turned(along("g", g, -2)), along("x", x, -2)))


@pytest.mark.parametrize(("fmt", "channels", "groups", "stride"), [
    (STOCHASTIC, 16, 1, 1), (STOCHASTIC, 16, 1, 2), (STOCHASTIC, 10, 1, 2), (STOCHASTIC, 12, 2, 1), (TILES, 16, 1, 2)])
def test_gradients_of_convolutions(fmt, channels, groups, stride):
    """A pixel of g is a row of the tensor that draws, whatever lies around it, and in however many patches it is."""
    torch.manual_seed(0)
    layer = nn.Conv2d(4, channels, 3, stride, 1, groups=groups, bias=False)
    plain = gn.convert(copy.deepcopy(layer), replace(fmt, rounding="rne"))
    layer = converted(layer, replace(fmt, rounding="rne"), g=fmt, seed=9)
    x = torch.randn(2, 4, 7, 6, requires_grad=True)
    gn.begin_step(layer, 5)
    y = layer(x)
    assert torch.equal(y, plain(x))
    n, _, h, w = y.shape
    g = torch.randn(y.shape).contiguous(memory_format=torch.channels_last)
    gx, gw = torch.autograd.grad(y, (x, layer.weight), g)
    numbers = torch.from_numpy(drawn(tensor_key(9, 0, "g") ^ step_key(9, 5), (n * h * w, channels), fmt))
    outs, ins = channels // groups, 4 // groups
    for group in range(groups):
        own = slice(group * outs, (group + 1) * outs)
        top, mine = g[:, own], numbers.view(n, h, w, channels)[..., own]
        patches = F.unfold(x.detach()[:, group * ins:(group + 1) * ins], 3, padding=1, stride=stride).view(
            n, ins, 9, -1).permute(0, 3, 2, 1).reshape(n * h * w, 9 * ins)
        flat = encode(top.permute(0, 2, 3, 1).reshape(-1, outs).numpy(), fmt, mine.reshape(-1, outs).numpy(), axis=-2)
        found = product(turned(flat), encode(patches.numpy(), replace(fmt, rounding="rne"), axis=-2))
        assert torch.equal(gw[own], found.view(outs, 3, 3, ins).permute(0, 3, 1, 2))
        options = (3, 3), (7, 6), (stride, stride), (1, 1), (1, 1)
        dice = {str(part.places): part.rows for part in parts(mine.permute(0, 3, 1, 2), *options)}

        def multiply(part, matrix, dice=dice):
            return product(encode(part.rows, fmt, dice[str(part.places)]),
                           encode(matrix, replace(fmt, rounding="rne"), axis=-2))
        found = torch.from_numpy(gradient(multiply, top, layer.weight.detach()[own], *options[1:]))
        assert torch.equal(gx[:, group * ins:(group + 1) * ins], found)


def test_products_of_a_layer_are_numbered():
    """A layer that is called twice draws others the second time, and in the next step the first again."""
    layer, x = converted(nn.Linear(16, 16)), torch.randn(4, 16)
    gn.begin_step(layer, 3)
    first, second = layer(x), layer(x)
    assert not torch.equal(first, second)
    gn.begin_step(layer, 3)
    assert torch.equal(layer(x), first) and torch.equal(layer(x), second)
    gn.begin_step(layer, 4)
    assert not torch.equal(layer(x), first)


def test_pairs_of_matrices_are_rows_of_one_tensor():
    class Scores(nn.Module):
        def forward(self, a, b):
            return a @ b
    a, b = torch.randn(2, 3, 5, 16), torch.randn(2, 3, 16, 9)
    y = converted(Scores())(a, b)
    keys = {role: tensor_key(1, 0, role) ^ step_key(1, 0) for role in "xw"}
    noise = {"x": drawn(keys["x"], a.shape, STOCHASTIC), "w": drawn(keys["w"], b.shape, STOCHASTIC)}
    for place in np.ndindex(2, 3):
        assert torch.equal(y[place], product(encode(a[place].numpy(), STOCHASTIC, noise["x"][place]),
                                             encode(b[place].numpy(), STOCHASTIC, noise["w"][place], axis=-2)))


def test_parts_of_a_batch():
    """Rows of a batch have the bits that they have among all: the first half, of which the place is known."""
    layer, x = converted(nn.Linear(16, 16)), torch.randn(8, 16)
    gn.begin_step(layer, 0)
    whole = layer(x)
    gn.begin_step(layer, 0)
    assert torch.equal(layer(x[:5]), whole[:5])


def test_gradients_alone():
    """Forward as to nearest, gradients not; evaluation draws nothing."""
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 3))
    model = converted(copy.deepcopy(plain), NEAREST, g=STOCHASTIC, side=gn.DESIGN_SIDE)
    other = gn.convert(copy.deepcopy(plain), NEAREST, side=gn.DESIGN_SIDE)
    x = torch.randn(6, 16)
    gn.begin_step(model, 0)
    y, want = model(x), other(x)
    assert torch.equal(y, want)
    y.square().mean().backward()
    want.square().mean().backward()
    assert not torch.equal(model[2].weight.grad, other[2].weight.grad)
    assert torch.equal(converted(plain).eval()(x), gn.convert(copy.deepcopy(plain), NEAREST).eval()(x))


def test_a_pass_that_runs_again_draws_the_same():
    """Activation checkpointing, in which a pass runs twice, changes no gradient."""
    torch.manual_seed(0)
    model, x = converted(nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))), torch.randn(5, 16)
    found = []
    for again in (False, True):
        gn.begin_step(model, 2)
        model.zero_grad()
        run = (lambda each: torch.utils.checkpoint.checkpoint(model, each, use_reentrant=False)) if again else model
        run(x).square().mean().backward()
        found.append([each.grad.clone() for each in model.parameters()])
    assert all(map(torch.equal, *found))


def test_copies_and_lanes():
    """A copy has steps of its own; noise of lanes comes back, with its state."""
    model = converted(nn.Linear(8, 8))
    twin = copy.deepcopy(model)
    gn.begin_step(twin, 7)
    assert model.hbfp_places.step == 0 and twin.hbfp_places.step == 7 and model.noise_state is None
    assert gn.convert(model, STOCHASTIC).noise_state is not None


def test_what_is_refused():
    with pytest.raises(ValueError, match="^Noise must be one of lanes, position, not 'place'$"):
        gn.convert(nn.Linear(8, 8), noise="place")
    with pytest.raises(ValueError, match=r"noise by position; golden.nn.convert\(..., noise='position'\) gives it$"):
        gn.begin_step(gn.convert(nn.Linear(8, 8)), 0)
    with pytest.raises(ValueError, match="^Noise width must be at most 8 bits for numbers by position, not 12$"):
        converted(nn.Linear(8, 8), replace(STOCHASTIC, noise_bits=12))
    conv = converted(nn.Conv2d(8, 8, 3))
    with pytest.raises(NotImplementedError, match="^Noise by position is that of linear layers, of products of matr"):
        conv(torch.randn(1, 8, 5, 5))
