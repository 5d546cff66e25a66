"""Convolutions in groups have the bits of a convolution of each group, whichever way they go.

Covers: golden/fast/grouped.py, golden/nn/conv_products.py.
"""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.fast import grouped as kernel  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.nn import conv, conv_products, functional, grouped  # noqa: E402
from golden.noise import Stream  # noqa: E402
from tests.cases import cover  # noqa: E402

from .test_conv import run, same  # noqa: E402

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
#: Channels in and out of each group, groups, kernel, stride, padding, dilation.
SHAPES = [(8, 8, 4, (3, 3), (1, 1), (1, 1), (1, 1)), (4, 4, 5, (3, 2), (2, 1), (1, 0), (1, 2)),
          (3, 17, 2, (3, 3), (1, 1), (0, 2), (2, 1)), (16, 5, 2, (1, 3), (1, 2), (0, 1), (1, 1)),
          (12, 1, 3, (2, 2), (1, 1), (1, 1), (1, 1)), (5, 9, 7, (1, 1), (1, 1), (0, 0), (1, 1))]
ONES = ((1, 1),) * 3


def compare(x, w, groups, geometry, formats, scale=1.0):
    """All three products equal those of one convolution after the other; returns them."""
    together = run(lambda x, w: functional.conv2d(x, w, None, *geometry, groups, formats), x, w, scale)
    apart = run(lambda x, w: torch.cat([conv.Conv2d.apply(a, b, *geometry, formats, None) for a, b in
                                        zip(x.chunk(groups, 1), w.chunk(groups), strict=True)], 1), x, w, scale)
    for got, want in zip(together, apart, strict=True):
        same(got, want.detach().numpy())
    return together


FORMATS = [
    gn.HBFPFormat(mantissa=4, block=(1, 8)), gn.HBFPFormat(block=(1, 16)), gn.HBFPFormat(block=(1, 5)),
    gn.HBFPFormat(mantissa=12, block=(1, 8)), gn.HBFPFormat(block=(1, 8), exponent=6),
    gn.HBFPFormat(block=(1, 8), subnormals="gradual"), gn.HBFPFormat(block=(1, 8), rounding="truncate"),
    gn.HBFPFormat(block=(24, 24)), gn.HBFPFormat(mantissa=4, block=(5, 5)), gn.HBFPFormat(block=(128, 128)),
    gn.HBFPFormat(mantissa=12, block=(8, 8))]


@pytest.mark.parametrize("sizes, fmt", cover(SHAPES, FORMATS))
def test_equal_to_one_group_after_the_other(sizes, fmt):
    c, o, groups, size, stride, padding, dilation = sizes
    torch.manual_seed(c)
    x = torch.randn(2, groups * c, 9, 20) * torch.logspace(-5, 5, groups * c)[None, :, None, None]
    w = torch.randn(groups * o, c, *size) * 1e-4
    x[1, 1], w[0] = 0, 0
    for scale in (1, 1e-30, 1e-36):                    # sums on both sides of 2^-126
        compare(x, w, groups, (stride, padding, dilation), gn.Formats.of(fmt), scale)


@pytest.mark.parametrize("side", [5, 8, 24, 40])
@pytest.mark.parametrize("width", [16, 32])
def test_tiles_where_rows_are_whole_vectors(side, width):
    torch.manual_seed(side)
    x, w = torch.randn(2, 16, 7, width) * torch.logspace(-5, 5, width), torch.randn(10, 8, 3, 3)
    x[1, 1, :3], x[0, 12, 4] = 0, 1e-40
    compare(x, w, 2, ((1, 1),) * 3, gn.Formats.of(gn.HBFPFormat(block=(side, side))))


@pytest.mark.parametrize("sizes, fmt, scale", cover(SHAPES, [
    gn.HBFPFormat(mantissa=4, block=(1, 8)), gn.HBFPFormat(block=(1, 16)), gn.HBFPFormat(block=(1, 5), exponent=6)],
    [1, 1e-36]))
def test_aligned_sums(sizes, fmt, scale):
    c, o, groups, *geometry = sizes
    torch.manual_seed(c)
    x = torch.randn(2, groups * c, 9, 20) * torch.logspace(-5, 5, groups * c)[None, :, None, None]
    w = torch.randn(groups * o, c, *geometry[0]) * 1e-4
    x[1, 1], w[0], x[0, -1, 3, 4] = 0, 0, 1e-40
    formats = gn.Formats.of(fmt, accumulate="aligned")
    assert grouped.Grouped.serves(x, w, groups, formats)
    compare(x, w, groups, geometry[1:], formats, scale)
    x[0, 1, 2, 3], w[-1, 0, 0, 0] = float("nan"), float("inf")
    compare(x, w, groups, geometry[1:], formats, scale)


def test_aligned_sums_beyond_int32():
    torch.manual_seed(0)
    x, w = torch.randn(2, 24, 18, 18), torch.randn(24, 8, 3, 3)
    x[:, 8:16] = w[8:16] = 127 / 128
    formats = gn.Formats.of(gn.HBFPFormat(block=(1, 16)), accumulate="aligned", guard=8)
    for scale in (0, 1):
        compare(x, w, 3, ONES, formats, scale)
    y = functional.conv2d(x, w.requires_grad_(), None, 1, 1, 1, 3, formats)
    y.backward(torch.full(y.shape, 127 / 128))
    for i in range(3):
        part = w.detach()[8 * i:8 * i + 8].requires_grad_()
        own = conv.Conv2d.apply(x[:, 8 * i:8 * i + 8], part, *ONES, formats, None)
        own.backward(torch.full(own.shape, 127 / 128))
        same(w.grad[8 * i:8 * i + 8], part.grad.numpy())


@pytest.mark.parametrize("block", [(1, 16), (24, 24)])
@pytest.mark.parametrize("value", [
    float("nan"), float("inf"), 1e-25, 2.0 ** -62, 2.0 ** -63, 2.0 ** 94, 2.0 ** 95, 1e-40, 0.0])
def test_a_number_out_of_range_goes_the_general_way(value, block):
    torch.manual_seed(0)
    x, w = torch.randn(2, 32, 6, 18), torch.randn(32, 8, 3, 3)
    x[1, 9, 2:5, 3:16] = value                         # the second group
    x[1, 8:16, :, 10:] = value
    compare(x, w, 4, ONES, gn.Formats.of(gn.HBFPFormat(block=block)))


@pytest.mark.parametrize("block", [(1, 16), (16, 16)])
def test_roles_have_their_own_formats(block):
    torch.manual_seed(0)
    x_fmt = gn.HBFPFormat(mantissa=6, block=block)
    x, w = torch.randn(2, 24, 5, 17), torch.randn(16, 6, 3, 3)
    compare(x, w, 4, ONES, gn.Formats(x=x_fmt, w=replace(x_fmt, mantissa=4), g=replace(x_fmt, mantissa=8)))


def spied(monkeypatch):
    """Names of the products that the kernels for all groups, and those for one, are asked for."""
    asked = []

    def spy(module, name):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **more: asked.append(name) or real(*args, **more))
    for module, names in ((kernel, ("product", "turned_product")),
                          (conv_products, ("over_channels", "over_pixels", "input_gradient"))):
        for name in names:
            spy(module, name)
    return asked


def test_tiles_go_together_in_any_narrow_sums(monkeypatch):
    torch.manual_seed(0)
    x, w = torch.randn(2, 48, 7, 9) * torch.logspace(-3, 3, 9), torch.randn(33, 16, 3, 3)
    for sums in ("fp24", "bf16"):
        formats = gn.Formats.of(gn.HBFPFormat(block=(8, 8)), accumulate=sums)
        compare(x, w, 3, ONES, formats)
    seen = spied(monkeypatch)
    run(lambda x, w: functional.conv2d(x, w, None, 1, 1, 1, 3, formats), x, w, 1)
    assert seen == ["product", "product", "turned_product"]


@pytest.mark.parametrize("c, o, stride, asked", [
    (8, 8, (1, 1), ["product", "product", "turned_product"]),
    (16, 8, (1, 1), ["over_channels"] * 2 + ["product", "turned_product"]),
    (8, 16, (1, 1), ["product"] + ["input_gradient", "over_channels"] * 2 + ["turned_product"]),
    (8, 17, (1, 1), ["product", "product", "over_pixels", "over_pixels"]),
    (8, 8, (2, 1), ["product"] * 3 + ["turned_product"]),
    (8, 8, (1, 2), ["over_channels"] * 2 + ["product"] * 2 + ["turned_product"])])
def test_which_products_go_together(c, o, stride, asked, monkeypatch):
    seen = spied(monkeypatch)
    torch.manual_seed(0)
    x, w = torch.randn(1, 2 * c, 6, 6), torch.randn(2 * o, c, 3, 3)
    run(lambda x, w: functional.conv2d(x, w, None, stride, 1, 1, 2, gn.HBFPFormat(block=(1, 16))), x, w, 1)
    assert seen == asked


def test_only_the_group_that_is_out_of_range_goes_alone(monkeypatch):
    seen = spied(monkeypatch)
    torch.manual_seed(0)
    x, w = torch.randn(1, 24, 6, 6), torch.randn(24, 8, 3, 3)
    x[0, 9, 3, 3] = float("nan")
    functional.conv2d(x, w, None, 1, 1, 1, 3, gn.HBFPFormat(block=(1, 16)))
    assert seen == ["product", "over_channels"]


@pytest.mark.parametrize("options, together", [
    ({}, True), ({"rounding": "stochastic"}, False), ({"rounding": "truncate"}, False), ({"block": (8, 8)}, True),
    ({"block": (8, 8), "rounding": "truncate"}, False)])
def test_which_formats_go_together(options, together):
    formats = gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8), **options}))
    operands = torch.randn(1, 4, 5, 5), torch.randn(4, 2, 3, 3), 2
    assert grouped.Grouped.serves(*operands, formats) == together
    whole = gn.Formats.of(formats.x, accumulate="aligned")
    assert grouped.Grouped.serves(*operands, whole) == (together and not formats.x.square)
    assert not grouped.Grouped.serves(*operands, whole.with_mantissa(16))


@pytest.mark.parametrize("block", [(1, 16), (24, 24)])
def test_threads_and_memory_formats_change_nothing(block):
    torch.manual_seed(0)
    x, w = torch.randn(8, 32, 30, 30), torch.randn(32, 8, 3, 3)
    formats, results = gn.Formats.of(gn.HBFPFormat(block=block)), []
    for count, layout in ((1, torch.contiguous_format), (3, torch.channels_last)):
        kernels.set_threads(count)
        try:
            results.append(compare(x.contiguous(memory_format=layout), w, 4, ONES, formats))
        finally:
            kernels.set_threads(None)
    for a, b in zip(*results, strict=True):
        same(a, np.ascontiguousarray(b.detach().numpy()))


@pytest.mark.parametrize("low", [-128, -127, -126, -125])
def test_smallest_sums(low):
    # Each sum is 1 by cancellation, 65 * 64 - 64 * 65 + 1, times 2^low, to be flushed below 2^-126.
    x = np.ldexp(np.array([65, 64, 1, 0], np.float32), low + 60)
    w = np.ldexp(np.array([64, -65, 1, 0], np.float32), -60)
    y, *_ = compare(*scaled(x, w), 2, ONES[:1] + ((0, 0), (1, 1)), gn.Formats.of(gn.HBFPFormat(block=(1, 8))))
    assert (y == (2.0 ** low if low >= -126 else 0)).all()


@pytest.mark.parametrize("high", [27, 28, 29, 30])
def test_largest_sums(high):
    # The first product is 64 * 64 * 2^(high + 86), beyond FP32 from 2^128 on; the second cancels it.
    x = np.ldexp(np.array([64, 64, 1, 0], np.float32), 86)
    w = np.ldexp(np.array([64, -64, 1, 0], np.float32), high)
    y, *_ = compare(*scaled(x, w), 2, ONES[:1] + ((0, 0), (1, 1)), gn.Formats.of(gn.HBFPFormat(block=(1, 8))))
    assert (y == 2.0 ** (86 + high)).all()


def scaled(x, w):
    """Images whose 17 pixels have the channels ``x`` in both groups, and weights of 1 x 1 for three outputs of each."""
    return (torch.from_numpy(np.tile(x, 2))[None, :, None, None].repeat(1, 1, 1, 17),
            torch.from_numpy(w)[None, :, None, None].repeat(6, 1, 1, 1))


def drawn(call, x, w, formats):
    """What a convolution with noise and its gradients give, twice, and the generators' states then."""
    stream, found = Stream(3, formats.lanes), []
    for _ in range(2):
        operands = [each.detach().requires_grad_(each.requires_grad) for each in (x, w)]
        y = call(*operands, stream)
        y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(1)) * 1e-3)
        found += [y.detach(), *(each.grad for each in operands if each.requires_grad)]
    return [*found, torch.from_numpy(stream.state.astype(np.float32))]


def compare_drawn(x, w, groups, geometry, formats, needs=(True, True)):
    """As :func:`compare`, with noise: all groups draw what they draw one after the other."""
    for each, own in zip((x, w), needs, strict=True):
        each.requires_grad_(own)
    assert grouped.Grouped.serves(x, w, groups, formats, geometry[0], Stream(3, formats.lanes))
    together = drawn(lambda a, b, s: functional.conv2d(a, b, None, *geometry, groups, formats, stream=s), x, w, formats)
    apart = drawn(lambda a, b, s: conv.Conv2d.apply(a, b, *geometry, formats, s, groups), x, w, formats)
    for got, want in zip(together, apart, strict=True):
        same(got, want.numpy())
    return together


NOISY = gn.HBFPFormat(block=(1, 16), rounding="stochastic")


@pytest.mark.parametrize("sizes, fmt, sums", cover(
    [(8, 8, 4, (3, 3), (1, 1), (1, 1)), (4, 4, 5, (3, 2), (1, 0), (1, 2)), (3, 15, 2, (3, 3), (0, 2), (2, 1)),
     (5, 9, 7, (1, 1), (0, 0), (1, 1))],
    [NOISY, replace(NOISY, mantissa=4, noise_bits=11), replace(NOISY, block=(1, 64)), replace(NOISY, block=(1, 17)),
     replace(NOISY, exponent=6)], ["fp32", "bf16", "fp24"]))
def test_noise(sizes, fmt, sums):
    c, o, groups, size, padding, dilation = sizes
    torch.manual_seed(c)
    x = torch.randn(2, groups * c, 9, 20) * torch.logspace(-5, 5, groups * c)[None, :, None, None]
    w = torch.randn(groups * o, c, *size) * 1e-4
    x[1, 1], w[0] = 0, 0
    compare_drawn(x, w, groups, ((1, 1), padding, dilation), gn.Formats.of(fmt, accumulate=sums))


@pytest.mark.parametrize("needs", [(True, False), (False, True)])
@pytest.mark.parametrize("quiet", ["", "x", "w", "g"])
def test_noise_of_some_roles_and_gradients(needs, quiet):
    torch.manual_seed(0)
    x, w = torch.randn(2, 24, 5, 17), torch.randn(16, 6, 3, 3)
    roles = {role: replace(NOISY, mantissa=m, rounding="rne" if role == quiet else "stochastic")
             for role, m in (("x", 6), ("w", 4), ("g", 8))}
    compare_drawn(x, w, 4, ONES, gn.Formats(**roles), needs)


@pytest.mark.parametrize("quiet", ["", "x", "w", "g"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e-25, 2.0 ** 95, 1e-40, 0.0])
def test_a_group_with_noise_that_is_out_of_range_draws_what_it_would(value, quiet):
    torch.manual_seed(0)
    x, w = torch.randn(2, 32, 6, 18), torch.randn(32, 8, 3, 3)
    x[1, 9, 2:5, 3:16] = value
    x[1, 8:16, :, 10:] = value
    w[24, 0, 0, 0] = value
    formats = gn.Formats.of(NOISY)
    compare_drawn(x, w, 4, ONES, replace(formats, **{quiet: replace(NOISY, rounding="rne")} if quiet else {}))


def test_noise_of_all_groups_goes_together_in_threads(monkeypatch):
    torch.manual_seed(0)
    x, w = torch.randn(8, 32, 30, 30), torch.randn(32, 8, 3, 3)
    kernels.set_threads(3)
    try:
        compare_drawn(x, w, 4, ONES, gn.Formats.of(NOISY))
    finally:
        kernels.set_threads(None)
    seen = spied(monkeypatch)
    y = functional.conv2d(x, w, None, 1, 1, 1, 4, gn.Formats.of(NOISY), stream=Stream(1, 16))
    y.backward(torch.ones_like(y))
    assert seen == ["product", "product", "turned_product"]


@pytest.mark.parametrize("change, c, o, stride", [
    ({"block": (1, 8)}, 8, 4, (1, 1)), ({"block": (1, 8)}, 4, 8, (1, 1)), ({}, 8, 17, (1, 1)), ({}, 8, 8, (2, 1)),
    ({"mantissa": 12}, 8, 8, (1, 1)), ({"block": (8, 8)}, 8, 8, (1, 1)), ({"noise_bits": 20}, 8, 8, (1, 1))])
def test_which_noise_does_not_go_together(change, c, o, stride):
    formats = gn.Formats.of(replace(NOISY, **change))
    x, w, stream = torch.randn(1, 2 * c, 6, 6), torch.randn(2 * o, c, 3, 3), Stream(1, formats.lanes)
    assert not grouped.Grouped.serves(x, w, 2, formats, stride, stream)
    assert grouped.Grouped.serves(torch.randn(1, 16, 6, 6), torch.randn(16, 8, 3, 3), 2, gn.Formats.of(NOISY), (1, 1),
                                  Stream(1, 16))
    assert not grouped.Grouped.serves(torch.randn(1, 16, 6, 6), torch.randn(16, 8, 3, 3), 2, gn.Formats.of(NOISY))
