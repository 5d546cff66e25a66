"""Gradients of norms, activations and pooling, and Adam's step, under ``side``: the table's programs, near float64.

Covers: golden/ops/norms.py, golden/ops/pools.py, golden/ops/gates.py.
"""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import golden.nn
from golden.ops.optimisers import update
from golden.vector import programs
from golden.vector.side import ascending, elements
from tests.golden.nn.test_gradients import SIDE, bits, gradients, near, numbers, same

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def of(program, *rows):
    """What the unit gives for each element."""
    return elements(program, *rows)


@pytest.mark.parametrize(("function", "program", "kept"), [
    (F.gelu, programs.gelu_gradient(), "x"), (F.silu, programs.silu_gradient(), "x"),
    (torch.tanh, programs.tanh_gradient(), "y"), (torch.sigmoid, programs.sigmoid_gradient(), "y"),
    (torch.relu, programs.relu_gradient(), "y"), (F.hardswish, programs.hard_swish_gradient(), "x"),
    (lambda x: F.leaky_relu(x, 0.2), programs.leaky_relu_gradient(0.2), "x"),
    (lambda x: F.leaky_relu(x, -3.0), programs.leaky_relu_gradient(-3.0), "x"),
    (lambda x: F.elu(x, 0.7), programs.elu_gradient(0.7), "x"), (F.selu, None, "x"),
    (F.relu6, programs.clamp_gradient(0.0, 6.0), "x"), (lambda x: F.hardtanh(x, -0.5, 2.0),
                                                        programs.clamp_gradient(-0.5, 2.0), "x")])
def test_activations(function, program, kept):
    x, g = 4 * torch.randn(4, 33), torch.randn(4, 33)
    x.view(-1)[:8] = torch.tensor([0.0, -0.0, -3.0, 3.0, 6.0, 2.0, -0.5, 1e-30])
    found, = near(function, x, weigh=g)
    if program is not None:
        with golden.nn.sided(SIDE), torch.no_grad():
            have = x if kept == "x" else function(x)
        same(found, of(program, bits(have), bits(g)))


@pytest.mark.parametrize("dim", [-1, 0])
def test_gated_units(dim):
    """Fused, apart, and torch's function of the halves of a tensor: forward and gradients."""
    def gated(x):
        x, gate = x.chunk(2, dim)
        return torch.ops.hbfp.gated(x, gate, "sigmoid")

    def apart(x):
        x, gate = x.chunk(2, dim)
        return x * torch.sigmoid(gate)
    x = 3 * torch.randn(4, 10)
    a, b = x.chunk(2, dim)
    want = of(programs.gated("sigmoid"), bits(b), bits(a))
    g = torch.randn(a.shape)
    found = [near(each, x, weigh=g)[0] for each in (lambda x: F.glu(x, dim), gated, apart)]
    with golden.nn.sided(SIDE):
        for each in (F.glu(x, dim), gated(x), apart(x)):
            same(each, want)
    for each in found:
        same(each, bits(found[0]))


@pytest.mark.parametrize("name", ["sigmoid", "silu", "tanh", "relu", "gelu"])
def test_a_fused_gate_has_the_bits_of_its_parts(name):
    x, gate = (bits(numbers(400)) for _ in range(2))
    np.testing.assert_array_equal(of(programs.gated(name), gate, x),
                                  of(programs.multiply(), x, of(programs.activation(name), gate)))


def test_infinities_have_gradients():
    x, g = torch.tensor([float("inf"), -float("inf")]), torch.tensor([2.0, 3.0])
    for function, want in ((F.hardswish, [2.0, 0.0]), (lambda x: F.leaky_relu(x, 0.5), [2.0, 1.5]),
                           (F.elu, [2.0, 0.0]), (F.relu6, [0.0, 0.0])):
        found, = near(function, x, weigh=g)
        assert found.tolist() == want


@pytest.mark.parametrize("function", [
    lambda x: x.abs().sqrt(), lambda x: (x.abs() + 1).rsqrt(), lambda x: x.abs().add(1).log(),
    lambda x: x ** 3 + x ** 2, lambda x: (x * x + 1).reciprocal(), lambda x: x / (x * x + 1), lambda x: x.exp() * x,
    lambda x: 3 - x, lambda x: x.amax(-1), lambda x: x.var(-1, correction=0), lambda x: x.mean(0),
    lambda x: (x - x.mean()).abs().mean()])
def test_gradients_of_parts(function):
    """What autograd writes in other operations; every one of these is in the table."""
    near(function, torch.randn(6, 9) + 0.1, within=1e-5)


@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
@pytest.mark.parametrize("dim", [-1, 1])
def test_softmax(function, dim):
    x, g = 3 * torch.randn(3, 11, 7), torch.randn(3, 11, 7)
    found, = near(lambda x: function(x, dim), x, weigh=g)
    turned = [bits(each.movedim(dim, -1)) for each in (x, g)]
    made, gradient = ((programs.softmax(), programs.softmax_gradient()) if function is torch.softmax else
                      (programs.log_softmax(), programs.log_softmax_gradient()))
    same(found.movedim(dim, -1).contiguous(), SIDE.rows(gradient, SIDE.rows(made, turned[0]), turned[1]))


@pytest.mark.parametrize("shape", [(21,), (3, 7)])
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(shape, affine):
    n = int(np.prod(shape))
    x, g, gamma, beta = torch.randn(2, 5, *shape), torch.randn(2, 5, *shape), torch.randn(shape), torch.randn(shape)
    given = (x, gamma, beta) if affine else (x,)
    found = near(lambda x, *rest: F.layer_norm(x, shape, *rest), *given, weigh=g)
    rows, grads = (bits(each).reshape(10, n) for each in (x, g))
    _, mean, root = SIDE.results(programs.layer_norm_plain(n) + programs.statistics(), rows)
    factors = [np.broadcast_to(bits(gamma).reshape(n), rows.shape)] if affine else []
    dx, dgamma, dbeta = SIDE.results(
        programs.load_row(1) * affine + programs.layer_norm_gradient(n, 1 if affine else None), *factors, rows, grads,
        mean[:, :1], root[:, :1])
    again = SIDE.results(programs.load_row(1) * affine + programs.layer_norm_gradient(n, 1 if affine else None, 1e-5),
                         *factors, rows, grads)
    for one, other in zip(again, (dx, dgamma, dbeta), strict=True):
        np.testing.assert_array_equal(one, other)
    same(found[0], dx.reshape(x.shape))
    for mine, want in zip(found[1:], (dgamma, dbeta), strict=False):
        same(mine, ascending(want).reshape(shape))


@pytest.mark.parametrize("shape", [(6,), (4, 6)])
def test_rms_norm(shape):
    x, gamma = torch.randn(2, 3, 4, 6), torch.randn(shape)
    near(lambda x, gamma: F.rms_norm(x, shape, gamma, 1e-5), x, gamma, weigh=torch.randn(x.shape), within=1e-5)
    with golden.nn.sided(SIDE):
        parts = x * torch.rsqrt(x.square().mean([d - len(shape) for d in range(len(shape))], True) + 1e-5) * gamma
        same(aten._fused_rms_norm(x, shape, gamma, 1e-5)[0], bits(parts))
        same(F.rms_norm(x, shape, gamma, 1e-5), bits(parts))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups, affine):
    x, g, rest = torch.randn(3, 6, 4, 5), torch.randn(3, 6, 4, 5), (torch.randn(6), torch.randn(6)) if affine else ()
    found = near(lambda x, *rest: F.group_norm(x, groups, *rest), x, *rest, weigh=g, within=5e-6)
    if affine:
        same(found[2], ascending(bits(g.permute(0, 2, 3, 1).reshape(-1, 6))))


def channels(x):
    """Rows of channels, image by image and pixel by pixel."""
    return bits(x.movedim(1, -1).reshape(-1, x.shape[1]))


@pytest.mark.parametrize("shape", [(9, 5), (3, 5, 7), (2, 5, 3, 4)])
def test_batch_norm_by_its_statistics(shape):
    x, g, gamma, beta = torch.randn(shape), torch.randn(shape), torch.randn(5), torch.randn(5)
    mean, variance = torch.randn(5), torch.rand(5) + 1
    n = x.numel() // 5
    found = near(lambda x, gamma, beta: F.batch_norm(x, None, None, gamma, beta, True), x, gamma, beta, weigh=g,
                 within=5e-6)
    rows, grads, weight = channels(x), channels(g), bits(gamma)
    multiply, subtract, share = programs.multiply(), programs.subtract(), programs.scale(1 / n)
    middle = of(share, ascending(rows))
    apart = of(subtract, rows, middle)
    spread = of(share, ascending(of(multiply, apart, apart)))
    root = of(programs.activation("rsqrt"), of(programs.shift(1e-5), spread))
    normal = of(multiply, apart, root)
    dbeta, dgamma = ascending(grads), ascending(of(multiply, grads, normal))
    inner = of(subtract, of(subtract, grads, of(share, dbeta)), of(multiply, normal, of(share, dgamma)))
    for mine, want in zip(found, (of(multiply, inner, of(multiply, weight, root)), dgamma, dbeta), strict=True):
        np.testing.assert_array_equal(channels(mine) if mine.dim() > 1 else bits(mine), want)
    kept = mean.clone(), variance.clone()
    with golden.nn.sided(SIDE):
        y = F.batch_norm(x, *kept, gamma, beta, True, 0.3)
    np.testing.assert_array_equal(channels(y), of(programs.add(), of(multiply, normal, weight), bits(beta)))
    F.batch_norm(x, mean, variance, gamma, beta, True, 0.3)
    for mine, torch_s in zip(kept, (mean, variance), strict=True):
        torch.testing.assert_close(mine, torch_s, rtol=1e-6, atol=1e-6)


def test_batch_norm_in_evaluation():
    mean, variance = torch.randn(5), torch.rand(5) + 1
    near(lambda x, gamma, beta: F.batch_norm(x, mean.to(x.dtype), variance.to(x.dtype), gamma, beta),
         torch.randn(2, 5, 3, 4), torch.randn(5), torch.randn(5), weigh=torch.randn(2, 5, 3, 4))


POOLS = [(2, 2, 0), (3, 2, 1), (2, 3, 0), (3, 1, 1), ((1, 2), (2, 1), 0)]


@pytest.mark.parametrize(("size", "stride", "padding"), POOLS)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_maximum_pooling(size, stride, padding, layout):
    """Gradients of torch, whose sums of up to nine are in another order."""
    x = torch.randint(-2, 3, (2, 3, 8, 9)).float().contiguous(memory_format=layout)       # many are equal
    def pool(x):
        return F.max_pool2d(x, size, stride, padding)
    g = torch.randint(-9, 9, pool(x).shape).float()                                        # sums are exact
    found, = near(pool, x, weigh=g, within=0)
    assert found.shape == x.shape
    near(pool, torch.randn(2, 3, 8, 9), weigh=torch.randn(g.shape), within=1e-6)


@pytest.mark.parametrize(("size", "stride", "padding"), POOLS)
def test_average_pooling(size, stride, padding):
    x = torch.randn(2, 3, 8, 9)
    def pool(x):
        return F.avg_pool2d(x, size, stride, padding)
    g = torch.randn(pool(x).shape)
    found, = near(pool, x, weigh=g, within=1e-6)
    (kh, kw), (sh, sw) = ((each, each) if isinstance(each, int) else each for each in (size, stride))
    share, total = of(programs.scale(1 / (kh * kw)), bits(g)), None
    for i in range(kh):
        for j in range(kw):
            place = np.zeros((2, 3, 8 + 2 * padding, 9 + 2 * padding), np.uint32)
            place[..., i:i + sh * (g.shape[2] - 1) + 1:sh, j:j + sw * (g.shape[3] - 1) + 1:sw] = share
            total = place if total is None else of(programs.add(), total, place)
    same(found + 0, np.ascontiguousarray(total[..., padding:padding + 8, padding:padding + 9]))


@pytest.mark.parametrize(("size", "stride", "padding", "dilation"), [
    ((3, 3), (2, 2), (1, 1), (1, 1)), ((3, 3), (1, 1), (1, 1), (1, 1)), ((2, 2), (3, 3), (1, 0), (1, 1)),
    ((3, 2), (2, 1), (0, 1), (2, 3)), ((2, 5), (4, 2), (1, 2), (1, 1)), ((1, 1), (2, 2), (0, 0), (1, 1))])
def test_maximum_pooling_adds_tap_by_tap(size, stride, padding, dilation):
    """Of a stride's phases, borders and elements that no window has: the sums of the law, with their zeros' signs."""
    x = torch.randint(-2, 3, (2, 3, 8, 11)).float()
    def pool(x):
        return F.max_pool2d(x, size, stride, padding, dilation)
    g = numbers(*pool(x).shape)
    g.view(-1)[::4] = -0.0
    around = F.pad(x, (padding[1], padding[1], padding[0], padding[0]), value=float("-inf")).numpy()
    total, left = None, np.ones(g.shape, bool)
    for i in range(size[0]):
        for j in range(size[1]):
            here = tuple(slice(place, place + step * (count - 1) + 1, step) for place, step, count in zip(
                (i * dilation[0], j * dilation[1]), stride, g.shape[2:], strict=True))
            mine = left & (around[(..., *here)] == pool(x).numpy())
            place, left = np.zeros(around.shape, np.uint32), left & ~mine
            place[(..., *here)] = np.where(mine, bits(g), 0)
            total = place if total is None else of(programs.add(), total, place)
    with golden.nn.sided(SIDE):
        found, = gradients(pool, x, weigh=g)
    same(found, np.ascontiguousarray(total[..., padding[0]:padding[0] + 8, padding[1]:padding[1] + 11]))


@pytest.mark.parametrize("size", [1, (2, 3), (4, 9)])
def test_adaptive_pooling(size):
    x = torch.randn(2, 3, 4, 9)
    g = torch.randn(F.adaptive_avg_pool2d(x, size).shape)
    near(lambda x: F.adaptive_avg_pool2d(x, size), x, weigh=g, within=1e-6)


def test_the_gradient_of_a_convolution_s_bias_goes_pixel_by_pixel():
    model = golden.nn.convert(nn.Sequential(nn.Conv2d(3, 5, 3)), "hbfp8", side=SIDE)
    y = model(torch.randn(2, 3, 6, 7))
    g = torch.randn(y.shape)
    y.backward(g)
    same(model[0].bias.grad, ascending(channels(g)))


@pytest.mark.parametrize("padding", [None, 2])
def test_embeddings_add_up_in_the_order_of_their_places(padding):
    indices, g = torch.randint(0, 5, (4, 9)), numbers(4, 9, 7)
    found, = near(lambda table: F.embedding(indices, table, padding), torch.randn(6, 7), weigh=g)
    for row in range(6):
        given = bits(g)[(indices == row).numpy()]
        zero = np.zeros((1, 7), np.uint32)
        same(found[row], ascending(np.concatenate([zero, given if row != padding else given[:0]])))


@pytest.mark.parametrize(("kind", "options"), [
    (torch.optim.Adam, {}), (torch.optim.Adam, {"weight_decay": 0.01, "betas": (0.3, 0.9), "maximize": True}),
    (torch.optim.AdamW, {"weight_decay": 0.1, "eps": 1e-3})])
def test_steps_of_adam_are_one_program(kind, options):
    parameter = nn.Parameter(numbers(5, 9))
    twin = nn.Parameter(parameter.detach().double())
    own, exact = golden.nn.optimiser(kind([parameter], 0.1, **options), SIDE), kind([twin], 0.1, **options)
    state = {name: np.zeros((5, 9), np.uint32) for name in ("exp_avg", "exp_avg_sq")}
    for step in range(1, 4):
        parameter.grad = numbers(5, 9)
        twin.grad = parameter.grad.double()
        made = update(own, own.param_groups[0], step)
        have = state | {"parameter": bits(parameter).copy(), "gradient": bits(parameter.grad).copy()}
        state = made.results(have)
        own.step()
        exact.step()
        same(parameter, state.pop("parameter"))
        for name, want in state.items():
            same(own.state[parameter][name], want)
        assert (parameter - twin).abs().max() <= 1e-5 * twin.abs().max()


def norm_of(x):
    """Of bit patterns: squares to one row, ascending over all but the last dimension, of three and more the second."""
    squares = of(programs.power(2), x)
    if x.ndim > 1:
        row = 1 if x.ndim > 2 else -1
        squares = ascending(np.moveaxis(squares, row, -1).reshape(-1, x.shape[row]))
    return of(programs.root(), SIDE.rows(programs.row_sum(), np.atleast_1d(squares))[..., :1])


@pytest.mark.parametrize("most", [0.5, 1e9])
def test_gradients_are_clipped_in_a_written_order(most):
    """torch's own function, above the limit and below it; near what it gives in float64."""
    parameters = [nn.Parameter(numbers(*shape)) for shape in ((5, 9), (40,), (3, 4, 2, 2), (2, 3, 5))]
    given = [numbers(*each.shape) for each in parameters]
    for parameter, gradient in zip(parameters, given, strict=True):
        parameter.grad = gradient.clone()
    with golden.nn.sided(SIDE):
        total = torch.nn.utils.clip_grad_norm_(parameters, most, foreach=False)
    wanted = norm_of(np.concatenate([norm_of(bits(each)) for each in given]))
    same(total.reshape(1), wanted)
    share = of(programs.clamp(-np.inf, 1.0), of(programs.scale(most), of(programs.activation("recip"), of(
        programs.shift(1e-6), wanted))))
    for parameter, gradient in zip(parameters, given, strict=True):
        same(parameter.grad, of(programs.multiply(), bits(gradient), share[0]))
    exact = torch.linalg.vector_norm(torch.cat([each.flatten().double() for each in given]))
    assert abs(total - exact) <= 1e-6 * exact


def test_a_whole_network_trains():
    """A step of everything that has a gradient here: near float32 of torch, and the same twice."""
    def network():
        torch.manual_seed(3)
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3),
                             nn.GroupNorm(2, 8), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(8),
                             nn.Linear(8, 6))
    x, target = torch.randn(4, 3, 12, 12), torch.arange(4)
    losses = []
    for side in (SIDE, SIDE, None):
        model = golden.nn.convert(network(), "hbfp8", side=side)
        optimiser = torch.optim.AdamW(model.parameters(), 0.01)
        if side:
            golden.nn.optimiser(optimiser, side)
        for _ in range(3):
            with golden.nn.sided(side):
                loss = F.cross_entropy(model(x), target)
            optimiser.zero_grad()
            with golden.nn.sided(side):
                loss.backward()
            optimiser.step()
            losses.append(loss.item())
    assert losses[:3] == losses[3:6] and losses[0] > losses[2]
    np.testing.assert_allclose(losses[:3], losses[6:], rtol=0.02)
