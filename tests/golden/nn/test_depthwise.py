"""Convolutions of each channel alone have the bits, and draw the numbers, of one channel after the other.

Covers: golden/fast/depthwise.py, golden/nn/depthwise.py, golden/nn/transposed.py.
"""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import decode_plain, encode_plain  # noqa: E402
from golden.fast import depthwise as kernel  # noqa: E402
from golden.fast import kernels, lanes  # noqa: E402
from golden.nn import conv, conv_products, depthwise, volume  # noqa: E402
from golden.noise import Stream  # noqa: E402
from tests.cases import cover  # noqa: E402

from .test_conv import same  # noqa: E402

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
#: Channels, sides, kernel, stride, padding, dilation; a depth of 0 stands for images.
SHAPES = [(20, (0, 9, 8), (0, 3, 3), (0, 1, 1), (0, 1, 1), (0, 1, 1)),
          (35, (0, 8, 11), (0, 3, 2), (0, 2, 1), (0, 1, 0), (0, 1, 2)),
          (3, (0, 7, 7), (0, 5, 5), (0, 2, 2), (0, 2, 2), (0, 1, 1)),
          (16, (0, 3, 70), (0, 1, 1), (0, 1, 1), (0, 0, 0), (0, 1, 1)),
          (18, (4, 5, 6), (3, 2, 3), (1, 1, 2), (1, 0, 2), (1, 2, 1)),
          (5, (3, 4, 5), (2, 4, 4), (1, 2, 2), (0, 1, 1), (1, 1, 1)),
          (2, (9, 3, 3), (9, 3, 3), (1, 1, 1), (4, 1, 1), (1, 1, 1))]
FORMATS = [({"block": (8, 8)}, "fp32"), ({"block": (24, 24)}, "bf16"), ({"block": (5, 5), "exponent": 6}, "fp24"),
           ({"block": (1, 8)}, "aligned"), ({"block": (1, 16), "mantissa": 4}, "aligned"),
           ({"block": (1, 5), "mantissa": 6, "exponent": 6}, "aligned"),
           ({"block": (1, 16), "rounding": "stochastic"}, "fp32"),
           ({"block": (1, 12), "rounding": "stochastic", "mantissa": 6, "noise_bits": 11}, "bf16"),
           ({"block": (1, 64), "rounding": "stochastic", "noise_bits": 3}, "fp24"),
           ({"block": (1, 5), "rounding": "stochastic", "exponent": 6}, "fp32")]


def formats_of(fmt):
    options, accumulate = fmt
    return gn.Formats.of(gn.HBFPFormat(**options), accumulate=accumulate)


def trained(call, x, w, scale, formats):
    """Result, gradients and where the noise went on, of two steps."""
    stream, found = Stream(3, formats.lanes), []
    for step in range(2):
        a, b = x.clone().requires_grad_(step > 0 or scale == 1), w.clone().requires_grad_()
        y = call(a, b, formats, stream if formats.stochastic else None)
        torch.manual_seed(step)
        y.backward(torch.randn(y.shape) * scale)
        found += [y, b.grad] + ([a.grad] if a.requires_grad else [])
    return found, stream.state


def compare(together, apart, x, w, scale, formats):
    """Both ways give the same bits, and go on from the same noise."""
    (got, drawn), (want, own) = (trained(call, x, w, scale, formats) for call in (together, apart))
    for one, other in zip(got, want, strict=True):
        same(one, np.ascontiguousarray(other.detach().numpy()))
    assert (drawn == own).all()


def operands(c, sides, size):
    """x and w with zeros, a subnormal number, and what is no number."""
    torch.manual_seed(c)
    x = torch.randn(2, c, *sides) * torch.logspace(-5, 5, c).view(1, c, *[1] * len(sides))
    w = torch.randn(c, 1, *size) * 1e-2
    x[0, 0, ..., 2, 2], x[1, 1], x[1, -1, ..., 1, 1] = float("nan"), 0, 1e-40
    w[-1] = 0
    return x, w


@pytest.mark.parametrize("sizes, fmt, scale", cover(SHAPES, FORMATS, [1, 1e-24, 1e-36], turns=4))
def test_convolutions(sizes, fmt, scale):
    c, *each = sizes
    sides, size, stride, padding, dilation = (part[sizes[1][0] == 0:] for part in each)

    def together(x, w, formats, stream):
        if len(sides) == 2:
            return conv.conv2d(x, w, formats, stride=stride, padding=padding, dilation=dilation, groups=c,
                               stream=stream)
        return volume.conv3d(x, w, formats, stride=stride, padding=padding, dilation=dilation, groups=c, stream=stream)

    def apart(x, w, formats, stream):
        if len(sides) == 2:
            return conv.Conv2d.apply(x, w, stride, padding, dilation, formats, stream, c)
        return torch.cat([volume.Conv3d.apply(a, b, stride, padding, dilation, formats, stream)
                          for a, b in zip(x.chunk(c, 1), w.chunk(c), strict=True)], 1)
    x, w = operands(c, sides, size)
    assert depthwise.Depthwise.serves(x, w, c, formats_of(fmt), Stream(3, 1))
    compare(together, apart, x, w, scale, formats_of(fmt))


@pytest.mark.parametrize("sizes, fmt, scale", cover(SHAPES, FORMATS, [1, 1e-24, 1e-36], turns=4))
def test_transposed(sizes, fmt, scale):
    c, *each = sizes
    sides, size, stride, padding, dilation = (tuple(part) for part in each)
    if not sides[0]:
        sides, size, stride, dilation = (1, *sides[1:]), (1, *size[1:]), (1, *stride[1:]), (1, *dilation[1:])
    more = (0, 0, stride[2] - 1)

    def together(x, w, formats, stream):
        return volume.conv_transpose3d(x, w, formats, stride=stride, padding=padding, output_padding=more, groups=c,
                                       dilation=dilation, stream=stream)

    def apart(x, w, formats, stream):
        whole = [(side - 1) * s - 2 * p + d * (k - 1) + 1 + m for side, s, p, d, k, m in
                 zip(sides, stride, padding, dilation, size, more, strict=True)]
        return torch.cat([volume.ConvTranspose3d.apply(a, b, whole, stride, padding, dilation, formats, stream)
                          for a, b in zip(x.chunk(c, 1), w.chunk(c), strict=True)], 1)
    x, w = operands(c, sides, size)
    assert depthwise.Depthwise.serves(x, w, c, formats_of(fmt), Stream(3, 1))
    compare(together, apart, x, w, scale, formats_of(fmt))


def images(formats, c=32, side=18):
    """The two ways, of images with kernels of 3 x 3, and operands."""
    def together(x, w, formats, stream):
        return conv.conv2d(x, w, formats, padding=(1, 1), groups=c, stream=stream)

    def apart(x, w, formats, stream):
        return conv.Conv2d.apply(x, w, (1, 1), (1, 1), (1, 1), formats, stream, c)
    torch.manual_seed(0)
    return together, apart, torch.randn(2, c, side, side), torch.randn(c, 1, 3, 3)


@pytest.mark.parametrize("fmt", [FORMATS[0], FORMATS[3], FORMATS[6]])
@pytest.mark.parametrize("value", [float("inf"), 1e-25, 2.0 ** -62, 2.0 ** -63, 2.0 ** 94, 2.0 ** 95, 1e-40, 0.0])
def test_numbers_at_the_ends_of_float_arithmetic(value, fmt):
    together, apart, x, w = images(fmt)
    x[1, 9, 2:5, 3:16] = x[1, 16:20, :, 10:] = value
    compare(together, apart, x, w, 1, formats_of(fmt))
    compare(together, apart, x, torch.zeros_like(w), 1, formats_of(fmt))
    compare(together, apart, x * 0, w * 1e-30, 2.0 ** -60, formats_of(fmt))


def test_roles_have_their_own_formats():
    own = gn.HBFPFormat(block=(1, 16), mantissa=6)
    for rounding in ("rne", "truncate"):
        w, g = replace(own, mantissa=4, rounding=rounding), replace(own, mantissa=8, rounding="stochastic")
        formats = gn.Formats(x=own, w=w, g=g)
        together, apart, *both = images(formats)
        compare(together, apart, *both, 1, formats)
        formats = gn.Formats(x=g, w=own, g=replace(own, rounding=rounding) if rounding == "rne" else g)
        compare(together, apart, *both, 1, formats)


def test_only_channels_whose_sums_leave_int32_are_left(monkeypatch):
    formats = gn.Formats.of(gn.HBFPFormat(block=(1, 16)), accumulate="aligned", guard=8)
    together, apart, x, w = images(formats, 19)
    x[:, 3], left = 127 / 128, []
    real = conv_products.over_pixels
    monkeypatch.setattr(conv_products, "over_pixels", lambda x, *rest: left.append(x[0, 5, 5, 0].item())
                        or real(x, *rest))

    def run(call):
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = call(a, b, formats, None)
        y.backward(torch.full(y.shape, 127 / 128))
        return y, a.grad, b.grad
    got, seen = run(together), list(left)
    for one, other in zip(got, run(apart), strict=True):
        same(one, np.ascontiguousarray(other.detach().numpy()))
    assert seen == [127 / 128]


@pytest.mark.parametrize("options, accumulate, serves", [
    ({}, "fp32", True), ({"mantissa": 12}, "fp32", True), ({"rounding": "truncate"}, "fp32", True),
    ({"block": (8, 8)}, "fp32", True), ({"block": (8, 8), "mantissa": 12}, "fp32", False),
    ({"block": (8, 8), "rounding": "truncate"}, "fp32", False), ({"block": (8, 8)}, "aligned", False),
    ({}, "aligned", True), ({"mantissa": 16}, "aligned", False), ({"subnormals": "gradual"}, "aligned", False),
    ({"rounding": "stochastic"}, "fp32", True), ({"rounding": "stochastic"}, "aligned", False),
    ({"rounding": "stochastic", "mantissa": 12}, "fp32", False),
    ({"rounding": "stochastic", "noise_bits": 20}, "fp32", False),
    ({"rounding": "stochastic", "block": (8, 8)}, "fp32", False)])
def test_which_formats_go_together(options, accumulate, serves):
    formats = gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8)} | options), accumulate=accumulate)
    x, w, stream = torch.randn(1, 4, 5, 5), torch.randn(4, 1, 3, 3), Stream(1, 8)
    assert depthwise.Depthwise.serves(x, w, 4, formats, stream) == serves
    assert not depthwise.Depthwise.serves(x, torch.randn(8, 1, 3, 3), 4, formats, stream)
    assert formats.stochastic <= (not depthwise.Depthwise.serves(x, w, 4, formats, None))


@pytest.mark.parametrize("fmt", [FORMATS[0], FORMATS[3], FORMATS[6]])
def test_threads_change_nothing(fmt):
    together, _, x, w = images(fmt, 33, 40)
    results = []
    for count in (1, 3):
        kernels.set_threads(count)
        try:
            results.append(trained(together, x, w, 1, formats_of(fmt))[0])
        finally:
            kernels.set_threads(None)
    for one, other in zip(*results, strict=True):
        same(one, np.ascontiguousarray(other.detach().numpy()))


@pytest.mark.parametrize("count, beats", [(1, 0), (5, 1), (16, 1000), (32, 2 ** 20 + 3)])
def test_leaps_are_so_many_steps(count, beats):
    stream, other = Stream(7, count), Stream(7, count)
    starts, _ = lanes.leap(stream, beats, 3)
    for start in starts:
        assert (start[:count] == other.state).all()
        other.words(beats)
    assert (stream.state == other.state).all()
    whole = Stream(7, count)                               # a state comes again after 2^32 - 1 steps
    lanes.leap(whole, 2 ** 32 - 1)
    assert (whole.state == Stream(7, count).state).all()


@pytest.mark.parametrize("mantissa, bits", [(2, 23), (4, 1), (8, 1), (8, 3), (8, 17), (12, 2), (16, 9), (16, 10)])
def test_noise_of_as_many_bits_as_float_arithmetic_adds_and_more(mantissa, bits):
    fmt = gn.HBFPFormat(block=(1, 16), mantissa=mantissa, rounding="stochastic", noise_bits=bits)
    rng = np.random.default_rng(bits)
    x = rng.choice([-1, 1], (64, 40)) * np.nextafter(2.0 ** rng.integers(-24, 1, (64, 40)), 0, dtype=np.float32)
    x[:16], x[16:32, :20], x[40:] = x[:16] * 2.0 ** -rng.integers(60, 70, 40), 1, rng.normal(size=(24, 40))
    x = x.astype(np.float32)                               # with noise these are just below a whole number
    stream, own = Stream(5, 16), Stream(5, 16)
    drawing, = kernel.turns(stream, 40, [kernel.Matrix(fmt, 1, 64)])
    got, _, span = kernel.encoded(x, fmt, drawing).keep
    lines, noise = np.ascontiguousarray(x.T), own.draw((40, 64), fmt)
    same(torch.from_numpy(got.T), decode_plain(encode_plain(lines, fmt, noise)))
    _, met = kernels.encoded(lines, fmt, noise)
    assert (span.low, span.high, span.invalid) == (met.low, met.high, met.invalid)
    assert (stream.state == own.state).all()


def test_turns_skip_what_draws_nothing():
    nearest, drawn = gn.HBFPFormat(block=(1, 16)), gn.HBFPFormat(block=(1, 16), rounding="stochastic")
    matrices = [kernel.Matrix(drawn, 3, 17), kernel.Matrix(nearest, 5, 5), kernel.Matrix(drawn, 2, 16)]
    stream = Stream(1, 8)
    first, none, last = kernel.turns(stream, 4, matrices)
    assert none is None and (first.ahead, last.ahead) == (0, 12)
    other = Stream(1, 8)
    lanes.leap(other, 4 * 16)
    assert (stream.state == other.state).all()


def test_a_sum_that_has_become_small_is_flushed_by_what_follows():
    # The first block is too small for float arithmetic, 1.5 * 2^-126; the second takes 2^-126 of it away, as 1 * -1.
    x = torch.tensor([1.5 * 2.0 ** -64, 0, 0, 0, 2.0 ** -39, 0, 2.0 ** -45, 0])
    g = torch.tensor([2.0 ** -62, 0, 0, 0, 0, 2.0 ** -75, -2.0 ** -81, 0])
    for subnormals in ("flush", "gradual"):
        formats = gn.Formats.of(gn.HBFPFormat(block=(1, 4), subnormals=subnormals))
        w = torch.ones(2, 1, 1, 1, requires_grad=True)
        conv.conv2d(x.repeat(2, 1)[None, :, None], w, formats, groups=2).backward(g.repeat(2, 1)[None, :, None])
        assert w.grad.flatten().tolist() == [0.0 if subnormals == "flush" else 2.0 ** -127] * 2
