"""Layers equal :func:`golden.matmul.matmul` bit for bit, forward and backward, and behave as torch layers do.

Covers: golden/nn/conv.py, golden/nn/formats.py, golden/nn/functional.py, golden/nn/ops.py, golden/nn/products.py.
"""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.matmul import matmul  # noqa: E402
from golden.nn import functional, fused  # noqa: E402
from golden.noise import Stream  # noqa: E402

from .strided import gradient  # noqa: E402

BLOCKS = [(1, 8), (1, 32), (8, 8), (24, 24)]


def same(tensor, array):
    got = np.ascontiguousarray(tensor.detach().numpy())
    assert got.shape == array.shape
    assert (got.view(np.uint32) == np.ascontiguousarray(array).view(np.uint32)).all()


def run(layer, *shape, scale=1.0, seed=0):
    """Input, output gradient, and their arrays, after forward and backward."""
    torch.manual_seed(seed)
    x = (torch.randn(shape) * scale).requires_grad_()
    y = layer(x)
    g = torch.randn(y.shape)
    y.backward(g)
    return x, y, g


@pytest.mark.parametrize("rounding", ["rne", "truncate"])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("mantissa", [2, 4, 8, 12, 16])
def test_linear_equals_golden(mantissa, block, rounding):
    fmt = gn.HBFPFormat(mantissa=mantissa, block=block, rounding=rounding)
    layer = gn.HBFPLinear(70, 21, fmt=fmt)
    x, y, g = run(layer, 2, 19, 70)
    xa, wa, ga = (t.detach().reshape(-1, t.shape[-1]).numpy() for t in (x, layer.weight, g))
    same(y.reshape(-1, 21), matmul(xa, wa.T, fmt) + layer.bias.detach().numpy())
    same(x.grad.reshape(-1, 70), matmul(ga, wa, fmt))
    same(layer.weight.grad, matmul(ga.T, xa, fmt))


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
def test_linear_with_a_format_per_role(accumulate):
    x_fmt, w_fmt, g_fmt = (gn.HBFPFormat(mantissa=m, block=(1, 16)) for m in (4, 6, 8))
    layer = gn.HBFPLinear(40, 10, bias=False, fmt=gn.Formats(x=x_fmt, w=w_fmt, g=g_fmt, accumulate=accumulate))
    x, y, g = run(layer, 9, 40)
    xa, wa, ga = (t.detach().numpy() for t in (x, layer.weight, g))
    same(y, matmul(xa, wa.T, x_fmt, accumulate, w_fmt=w_fmt))
    same(x.grad, matmul(ga, wa, g_fmt, accumulate, w_fmt=w_fmt))
    same(layer.weight.grad, matmul(ga.T, xa, g_fmt, accumulate, w_fmt=x_fmt))


@pytest.mark.parametrize("widths", [dict(guard=0), dict(guard=9, growth=2), dict(growth=16)])
def test_accumulator_of_other_widths(widths):
    """Of aligned sums: in the layer and in what is traced of it."""
    fmt = gn.HBFPFormat(mantissa=6, block=(1, 16))
    layer = gn.convert(torch.nn.Linear(64, 10, bias=False), fmt, accumulate="aligned", **widths)
    x = torch.randn(9, 64) * torch.logspace(0, 3, 64)
    same(layer(x), matmul(x.numpy(), layer.weight.detach().numpy().T, fmt, "aligned", **widths))
    assert gn.Formats.read(layer.formats.text) == layer.formats
    if widths != dict(growth=16):
        assert not torch.equal(layer(x), gn.convert(layer, gn.Formats.of(fmt, accumulate="aligned"))(x))


def test_growth_lets_more_blocks_add_up():
    options = dict(fmt=gn.HBFPFormat(mantissa=4, block=(1, 1)), bias=False, accumulate="aligned")
    with pytest.raises(ValueError, match=r"^Blocks along K must be at most 2\^growth = 256 for accumulation 'aligned', "
                                         "not 257$"):
        gn.HBFPLinear(257, 2, growth=8, **options)(torch.ones(1, 257))
    assert gn.HBFPLinear(257, 2, growth=9, **options)(torch.ones(1, 257)).shape == (1, 2)
    with pytest.raises(ValueError, match="^Growth width must be 0 to 16 bits, not 17$"):
        gn.Formats.of("hbfp8", accumulate="aligned", growth=17)
    with pytest.raises(ValueError, match="^Guard and growth width need accumulation 'aligned', not 'fp32'$"):
        gn.Formats.of("hbfp8", guard=5)


@pytest.mark.parametrize("blocks", [1, 2, 256, 257, 700])
def test_growth_that_is_not_given_is_what_the_blocks_need(blocks):
    torch.manual_seed(blocks)
    fmt, x = gn.HBFPFormat(mantissa=4, block=(1, 2)), torch.randn(3, 2 * blocks)
    options = dict(bias=False, accumulate="aligned")
    own, given = (gn.HBFPLinear(2 * blocks, 5, fmt=fmt, **options, **growth) for growth in ({}, {"growth": 16}))
    given.load_state_dict(own.state_dict())
    same(own(x), given(x).detach().numpy())
    assert own.formats.growth is None and gn.Formats.read(own.formats.text) == own.formats
    old = gn.Formats.of(fmt).text.replace('"growth": null', '"growth": 8')
    assert '"growth": 8' in old and gn.Formats.read(old) == gn.Formats.of(fmt)
    if blocks > 1:
        short = gn.Formats.of(fmt, accumulate="aligned", growth=(blocks - 1).bit_length() - 1)
        with pytest.raises(ValueError, match=rf"^Blocks along K must be at most .* not {blocks}$"):
            gn.functional.linear(x, own.weight, formats=short)


def test_stochastic_linear_takes_its_noise_from_its_stream_in_turn():
    fmt = gn.HBFPFormat(mantissa=4, block=(1, 16), rounding="stochastic")
    layer = gn.HBFPLinear(40, 10, bias=False, fmt=fmt, seed=9)
    x, y, g = run(layer, 9, 40)
    xa, wa, ga = (t.detach().numpy() for t in (x, layer.weight, g))
    stream = Stream(9, 16)

    def twice(a, b):
        first = stream.draw(a.shape, fmt, axis=-1)
        return matmul(a, b, fmt, noise=first, w_noise=stream.draw(b.T.shape, fmt, axis=-1).T)
    same(y, twice(xa, wa.T))
    n1, n2 = stream.draw(ga.shape, fmt, axis=-1), stream.draw(wa.shape, fmt, axis=0)
    same(x.grad, matmul(ga, wa, fmt, noise=n1, w_noise=n2))
    n1, n2 = stream.draw(ga.shape, fmt, axis=0).T, stream.draw(xa.shape, fmt, axis=0)
    same(layer.weight.grad, matmul(ga.T, xa, fmt, noise=n1, w_noise=n2))


def test_square_tiles_are_converted_once():
    fmt = gn.HBFPFormat(mantissa=4, block=(8, 8), rounding="stochastic")
    layer = gn.HBFPLinear(16, 8, bias=False, fmt=fmt, seed=3)
    x, y, g = run(layer, 8, 16)
    xa, wa, ga = (t.detach().numpy() for t in (x, layer.weight, g))
    stream = Stream(3, 8)
    nx, nw, ng = (stream.draw(a.shape, fmt) for a in (xa, wa, ga))
    same(y, matmul(xa, wa.T, fmt, noise=nx, w_noise=nw.T))
    same(x.grad, matmul(ga, wa, fmt, noise=ng, w_noise=nw))
    same(layer.weight.grad, matmul(ga.T, xa, fmt, noise=ng.T, w_noise=nx))


def patches(x, size, stride, padding, dilation):
    """Rows are output pixels; columns run over kernel row, kernel column, channel."""
    columns = torch.nn.functional.unfold(x, size, dilation=dilation, padding=padding, stride=stride)
    n, _, pixels = columns.shape
    parts = columns.view(n, x.shape[1], size[0] * size[1], pixels)
    return np.ascontiguousarray(parts.permute(0, 3, 2, 1).reshape(n * pixels, -1).numpy())


CONVOLUTIONS = [(16, 32, (3, 3), (1, 1), (1, 1), (1, 1)), (16, 16, (3, 3), (2, 2), (1, 1), (1, 1)),
                (3, 16, (3, 3), (1, 1), (1, 1), (1, 1)), (32, 16, (1, 1), (2, 2), (0, 0), (1, 1)),
                (16, 8, (3, 2), (1, 2), (2, 1), (2, 1)), (8, 5, (2, 2), (3, 3), (0, 0), (1, 1))]


@pytest.mark.parametrize("mantissa, block, rounding", [
    (8, (1, 16), "rne"), (8, (1, 8), "truncate"), (8, (8, 8), "rne"), (16, (1, 8), "rne")])
@pytest.mark.parametrize("c, o, size, stride, padding, dilation", CONVOLUTIONS)
def test_convolution_equals_golden(c, o, size, stride, padding, dilation, mantissa, block, rounding):
    fmt = gn.HBFPFormat(mantissa=mantissa, block=block, rounding=rounding)
    layer = gn.HBFPConv2d(c, o, size, stride, padding, dilation, bias=False, fmt=fmt)
    x, y, g = run(layer, 2, c, 10, 9)
    rows = patches(x.detach(), size, stride, padding, dilation)
    w = layer.weight.detach().permute(2, 3, 1, 0).reshape(-1, o).numpy()
    ga = g.permute(0, 2, 3, 1).reshape(-1, o).contiguous().numpy()
    same(y.permute(0, 2, 3, 1).reshape(-1, o), matmul(rows, w, fmt))
    same(layer.weight.grad.permute(2, 3, 1, 0).reshape(-1, o), matmul(rows.T, ga, fmt))
    same(x.grad, gradient(lambda part, back: matmul(part.rows, back, fmt), g, layer.weight.detach(), (10, 9), stride,
                          padding, dilation))


def test_groups_are_convolutions_of_their_own():
    fmt = gn.HBFPFormat(block=(1, 8))
    layer = gn.HBFPConv2d(16, 8, 3, padding=1, groups=2, fmt=fmt)
    x = torch.randn(2, 16, 6, 6)
    halves = [functional.conv2d(x[:, 8 * i:8 * i + 8], layer.weight[4 * i:4 * i + 4], layer.bias[4 * i:4 * i + 4],
                                padding=1, formats=fmt) for i in range(2)]
    assert torch.equal(layer(x), torch.cat(halves, 1))


def test_nan_reaches_what_uses_it():
    layer = gn.HBFPConv2d(8, 8, 3, padding=1, fmt=gn.HBFPFormat(block=(1, 8)))
    x = torch.randn(1, 8, 8, 8)
    x[0, 3, 2, 2] = float("inf")
    assert layer(x).isnan()[0, 0].nonzero().tolist() == [[i, j] for i in (1, 2, 3) for j in (1, 2, 3)]


def test_quick_order_is_close_and_named():
    x = torch.randn(32, 300)
    layer = gn.HBFPLinear(300, 20, fmt=gn.HBFPFormat())
    exact = layer(x)
    layer.formats = gn.Formats.of(gn.HBFPFormat(), order="quick")
    assert (layer(x) - exact).abs().max() < 1e-5
    assert "order='quick'" in repr(layer)


@pytest.mark.parametrize("options", [{}, dict(batch_first=True, bidirectional=True, num_layers=2), dict(bias=False)])
def test_lstm_is_close_to_fp32_and_trains(options):
    torch.manual_seed(0)
    twin = torch.nn.LSTM(12, 20, **options)
    layer = gn.HBFPLSTM.of(copy.deepcopy(twin), gn.HBFPFormat(mantissa=12, block=(1, 4)))
    x = torch.randn(3, 5, 12)
    for got, want in zip(layer(x)[1], twin(x)[1], strict=True):
        assert 0 < (got - want).abs().max() < 2e-3
    assert (layer(x)[0] - twin(x)[0]).abs().max() < 2e-3
    layer(x)[0].sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in layer.parameters())
    assert layer(x[0])[0].shape == twin(x[0])[0].shape


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_close_to_fp32_and_trains(masked, batch_first):
    torch.manual_seed(0)
    twin = torch.nn.MultiheadAttention(24, 3, batch_first=batch_first)
    layer = gn.HBFPMultiheadAttention.of(copy.deepcopy(twin), gn.HBFPFormat(mantissa=12, block=(1, 4)))
    x = torch.randn(6, 6, 24)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1) if masked else None
    (got, weights), (want, want_weights) = (m(x, x, x, attn_mask=mask) for m in (layer, twin))
    assert 0 < (got - want).abs().max() < 2e-3
    assert (weights - want_weights).abs().max() < 2e-3
    got.sum().backward()
    assert layer.in_proj_weight.grad.abs().sum() > 0


def test_attention_products_equal_golden():
    fmt = gn.HBFPFormat(block=(1, 8))
    a, b = torch.randn(2, 3, 5, 20).requires_grad_(), torch.randn(2, 3, 20, 7).requires_grad_()
    y = functional.matmul(a, b, fmt)
    g = torch.randn(y.shape)
    y.backward(g)
    for i in np.ndindex(2, 3):
        x, w, t = (v[i].detach().numpy() for v in (a, b, g))
        same(y[i], matmul(x, w, fmt))
        same(a.grad[i], matmul(t, w.T, fmt))
        same(b.grad[i], matmul(x.T, t, fmt))


# --- As torch layers ----------------------------------------------------------------------------


def layers():
    stochastic = gn.HBFPFormat(rounding="stochastic", block=(1, 8))
    return [(gn.HBFPLinear(16, 8, fmt=stochastic), (4, 16)), (gn.HBFPConv2d(8, 8, 3, fmt=stochastic), (2, 8, 6, 6)),
            (gn.HBFPLSTM(8, 8, fmt=stochastic), (3, 2, 8)), (gn.HBFPLinear(16, 8), (4, 16))]


def first(y):
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("index", range(4))
def test_copies_and_state_dicts_go_on_alike(index):
    layer, shape = layers()[index]
    x = torch.randn(shape)
    layer(x)                                                   # moves the noise on
    twin, loaded = copy.deepcopy(layer), layers()[index][0]
    loaded.load_state_dict(layer.state_dict())
    want = first(layer(x))
    assert torch.equal(first(twin(x)), want) and torch.equal(first(loaded(x)), want)


@pytest.mark.parametrize("index", range(4))
def test_compiled_layers_give_the_same(index):
    layer, shape = layers()[index]
    x, twin = torch.randn(shape), copy.deepcopy(layer)
    assert torch.equal(first(torch.compile(twin, backend="eager")(x)), first(layer(x)))


def test_data_parallel():
    layer, x = gn.HBFPLinear(16, 8), torch.randn(4, 16)
    assert torch.equal(torch.nn.DataParallel(layer)(x), layer(x))


@pytest.mark.parametrize("shape", [(0, 16), (3, 0, 16), (1, 16)])
def test_empty_and_single_batches(shape):
    layer = gn.HBFPLinear(16, 8)
    x, y, _ = run(layer, *shape)
    assert y.shape == (*shape[:-1], 8) and x.grad.shape == shape
    assert layer.weight.grad.shape == (8, 16)


def test_empty_convolution():
    layer = gn.HBFPConv2d(16, 8, 3)
    assert layer(torch.zeros(0, 16, 5, 5)).shape == (0, 8, 3, 3)


@pytest.mark.parametrize("a, b", [((2, 0, 4), (2, 4, 5)), ((0, 3, 4), (0, 4, 5)), ((2, 3, 0), (2, 0, 5)),
                                  ((3, 4), (4, 0))])
def test_empty_products(a, b):
    x, w = torch.zeros(a, requires_grad=True), torch.zeros(b, requires_grad=True)
    y = functional.matmul(x, w, gn.HBFPFormat())
    y.sum().backward()
    assert y.shape == (*a[:-1], b[-1]) and not y.any() and x.grad.shape == a and w.grad.shape == b


@pytest.mark.parametrize("block", [(1, 8), (8, 8)])
def test_without_a_compiler_the_bits_are_the_same(block, monkeypatch):
    def everything():
        torch.manual_seed(0)
        net = gn.convert(torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3), torch.nn.Flatten(), torch.nn.Linear(32, 5)),
                         gn.HBFPFormat(block=block))
        optimiser = gn.wide_weights(torch.optim.SGD(net.parameters(), 0.1))
        fused.fuse([net])(torch.randn(3, 8, 4, 4)).square().sum().backward()
        optimiser.step()
        return [p.detach().clone() for p in net.parameters()]
    want = everything()
    monkeypatch.setattr(kernels, "library", lambda: None)
    for a, b in zip(everything(), want, strict=True):
        assert torch.equal(a, b)


def test_non_contiguous_input():
    layer = gn.HBFPLinear(16, 8)
    x = torch.randn(16, 6).T
    assert torch.equal(layer(x), layer(x.contiguous()))
    x = torch.randn(6, 32)[:, ::2]
    assert torch.equal(layer(x), layer(x.contiguous()))


# --- Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("call, error, message", [
    (lambda: gn.HBFPLinear(4, 4)(torch.ones(2, 4, dtype=torch.float64)), TypeError,
     r"^input must be float32, not float64$"),
    (lambda: gn.HBFPLinear(4, 4).double()(torch.ones(2, 4)), TypeError, r"^weight must be float32, not float64$"),
    (lambda: gn.HBFPLinear(4, 4)(torch.ones(2, 5)), ValueError,
     r"^Shapes of input and weight must be \(..., I\) and \(O, I\), not \(2, 5\) and \(4, 4\)$"),
    (lambda: gn.HBFPConv2d(4, 4, 3)(torch.ones(2, 5, 6, 6)), ValueError,
     (r"^Shapes of input and weight must be \(N, C, H, W\) and \(O, C / groups, kh, kw\), not \(2, 5, 6, 6\) and "
      r"\(4, 4, 3, 3\) with 1 groups$")),
    (lambda: gn.HBFPConv2d(4, 4, 3)(torch.ones(2, 4, 2, 6)), ValueError,
     r"^Kernel must fit the padded input, not \(3, 3\) in \(2, 6\)$"),
    (lambda: gn.HBFPMultiheadAttention.of(torch.nn.MultiheadAttention(4, 2, kdim=3)), ValueError,
     r"^Attention with kdim, vdim, bias_kv or zero_attn is not supported$"),
    (lambda: gn.HBFPLinear(8, 8, gn.HBFPFormat()), TypeError,
     r"^bias must not be of type HBFPFormat; write fmt=\.\.\. for the format$"),
    (lambda: gn.HBFPConv2d(8, 8, 3, gn.Formats.of()), TypeError,
     r"^stride must not be of type Formats; write fmt=\.\.\. for the format$"),
    (lambda: gn.HBFPLSTM(8, 8, gn.HBFPFormat()), TypeError,
     r"^num_layers must not be of type HBFPFormat; write fmt=\.\.\. for the format$"),
    (lambda: gn.HBFPMultiheadAttention(8, 2, gn.HBFPFormat()), TypeError,
     r"^dropout must not be of type HBFPFormat; write fmt=\.\.\. for the format$"),
    (lambda: gn.HBFPLinear(4, 4, seed=-1), ValueError, r"^Seed must be 0 to 4294967295, not -1$"),
    (lambda: gn.HBFPLinear(4, 4, fmt=8), TypeError, r"^Format must be a name such as 'hbfp8' or an HBFPFormat, not 8$"),
    (lambda: gn.HBFPLinear(4, 4, fmt=None), TypeError,
     r"^Format must be a name such as 'hbfp8' or an HBFPFormat, not None$"),
    (lambda: gn.HBFPLinear(4, 4, w=None), TypeError,
     r"^Format of w must be a name such as 'hbfp8' or an HBFPFormat, not None$"),
    (lambda: gn.convert(torch.nn.Linear(4, 4), gn.Formats.of("hbfp4"), w="hbfp8"), TypeError,
     r"^A Formats has w of its own; give one of the two$"),
    (lambda: gn.convert(torch.nn.Linear(4, 4), "hbfp4", layers={"": None}), TypeError,
     r"^Format must be a name such as 'hbfp8' or an HBFPFormat, not None$"),
    (lambda: gn.HBFPLinear(4, 4, fmt="int7"), ValueError, r"^Name of a format must be hbfpW .*, not 'int7'$"),
    (lambda: gn.Formats.of(gn.HBFPFormat(), w=gn.HBFPFormat(block=(1, 8))), ValueError,
     r"^Blocks of x, w and g must have equal terms along K, not 32, 8 and 32$"),
    (lambda: gn.Formats.of(gn.HBFPFormat(), order="fast"), ValueError,
     r"^Order must be one of block, quick, not 'fast'$"),
    (lambda: functional.matmul(torch.ones(2, 3, 4), torch.ones(3, 4, 5)), ValueError,
     r"^Shapes of a and b must be \(..., M, K\) and \(..., K, N\), not \(2, 3, 4\) and \(3, 4, 5\)$"),
    (lambda: functional.linear(torch.ones(2, 4), torch.ones(3, 4), formats=gn.HBFPFormat(rounding="stochastic")),
     ValueError, r"^Rounding 'stochastic' needs a noise stream$"),
    (lambda: functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 1, 1), stride="2"), ValueError,
     r"^stride must be an int or a pair, not '2'$"),
])
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
