"""The gradient of a convolution's images is one product for each phase of its stride, as docs/numerics.md says."""

from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import encode_plain  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.matmul import matmul_blocks  # noqa: E402
from golden.nn import functional, volume  # noqa: E402
from golden.nn.phases import lines, phases  # noqa: E402
from tests.cases import sweep  # noqa: E402

from .strided import gradient  # noqa: E402

#: Kernel, stride, padding, dilation: pairs down and across.
WINDOWS = [((k, k), (s, s), (p, p), (1, 1)) for k in (1, 3, 7) for s in (1, 2, 3) for p in (0, k // 2, k + 1)]
WINDOWS += [((3, 2), (2, 3), (1, 0), (1, 1)), ((2, 2), (2, 2), (1, 1), (1, 1)), ((3, 4), (2, 3), (2, 1), (2, 2)),
            ((2, 3), (4, 2), (0, 2), (2, 3)), ((5, 1), (6, 5), (4, 0), (4, 1))]
FORMATS = [(8, (1, 8), "fp32"), (4, (1, 6), "fp32"), (8, (8, 8), "fp32"), (8, (1, 8), "aligned")]


def plain(g, w, sides, stride, padding, dilation, fmt, accumulate="fp32"):
    """The law in the plainest way that each product has."""
    def multiply(part, matrix):
        return matmul_blocks(encode_plain(part.rows, fmt), encode_plain(matrix, fmt, axis=0), plain=True,
                             accumulate=accumulate)
    return gradient(multiply, g, w, sides, stride, padding, dilation)


def same(tensor, array):
    got = np.ascontiguousarray(tensor.detach().numpy())
    assert got.shape == array.shape and (got.view(np.uint32) == np.ascontiguousarray(array).view(np.uint32)).all()


def gradients(x, w, options, groups, formats):
    x = x.clone().requires_grad_()
    y = functional.conv2d(x, w, None, *options, groups, formats)
    g = torch.randn_like(y)
    y.backward(g)
    return x.grad, g


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("window", "form"), sweep(24, list(product(WINDOWS, FORMATS))))
def test_law(window, form, compiled, monkeypatch):
    (size, *options), (mantissa, block, accumulate) = window, form
    if not compiled:
        monkeypatch.setattr(kernels, "library", lambda: None)
    torch.manual_seed(3)
    fmt = gn.HBFPFormat(mantissa=mantissa, block=block)
    x, w = torch.randn(2, 3, 9, 8), torch.randn(8, 3, *size)
    gx, g = gradients(x, w, options, 1, gn.Formats.of(fmt, accumulate=accumulate))
    same(gx, plain(g.numpy(), w.numpy(), (9, 8), *options, fmt, accumulate))


@pytest.mark.parametrize(("channels", "outs", "groups"), [(4, 4, 4), (4, 6, 2), (4, 32, 2)])
@pytest.mark.parametrize("block", [(1, 8), (8, 8)])
def test_groups_are_convolutions_of_their_own(channels, outs, groups, block):
    torch.manual_seed(3)
    fmt, options = gn.HBFPFormat(block=block), ((2, 3), (1, 2), (1, 1))
    x, w = torch.randn(2, channels, 7, 8), torch.randn(outs, channels // groups, 3, 3)
    gx, g = gradients(x, w, options, groups, gn.Formats.of(fmt))
    for own, top, part in zip(gx.chunk(groups, 1), g.chunk(groups, 1), w.chunk(groups), strict=True):
        same(own, plain(top.numpy(), part.numpy(), (7, 8), *options, fmt))


def test_a_phase_alone_meets_what_is_no_number():
    """A weight that is none makes the pixels of its phase none; those that no tap meets are +0 always."""
    w = torch.ones(8, 2, 3, 3)
    w[0, 1, 0, 0] = float("nan")
    gx, _ = gradients(torch.randn(1, 2, 9, 9), w, ((4, 4), (1, 1), (1, 1)), 1, gn.Formats.of("hbfp8"))
    places = gx[0, 1].isnan().nonzero().tolist()
    assert places == [[3, 3], [3, 7], [7, 3], [7, 7]] and not gx[0, 0].isnan().any()
    untouched = torch.zeros(9)
    untouched[2::4] = 1
    assert (gx[:, :, untouched.bool()].numpy().view(np.uint32) == 0).all()


def test_patches_are_those_of_each_tap():
    """The sum over taps and outputs is the gradient that torch has, in float64."""
    torch.manual_seed(3)
    for size, *options in WINDOWS:
        x, w = torch.randn(1, 2, 9, 8, dtype=torch.float64, requires_grad=True), torch.randn(3, 2, *size).double()
        y = torch.nn.functional.conv2d(x, w, None, *options)
        g = torch.randn_like(y)
        found = gradient(lambda part, matrix: part.rows @ matrix, g, w, (9, 8), *options)
        torch.testing.assert_close(torch.from_numpy(found).double(), torch.autograd.grad(y, x, g)[0], rtol=0, atol=1e-5)


def test_depth_has_phases_too():
    """Its taps come behind those of rows and columns, in front of the channels."""
    torch.manual_seed(3)
    x, w = torch.randn(1, 2, 5, 4, 4, requires_grad=True), torch.randn(8, 2, 3, 1, 1)
    fmt = gn.HBFPFormat(block=(1, 8))
    y = volume.conv3d(x, w, gn.Formats.of(fmt), stride=(2, 1, 1), padding=(1, 0, 0), dilation=(1, 1, 1), groups=1)
    g = torch.randn_like(y)
    y.backward(g)
    flat = plain(g.numpy().reshape(1, 8, 3, 16), w.numpy().reshape(8, 2, 3, 1), (5, 16), (2, 1), (1, 0), (1, 1), fmt)
    same(x.grad, flat.reshape(x.shape))


def test_lines():
    """Every pair of a pixel and a number of g that a tap joins is in one phase, where the phase says it is."""
    for kernel, side, stride, padding, dilation in product((1, 2, 3, 7), (1, 5, 8), (1, 2, 3), (0, 1, 4), (1, 2, 3)):
        expected = {(number * stride + tap * dilation - padding, tap, number) for number in range(-20, 40)
                    for tap in range(kernel)}
        found = [(line.first + stride * pixel, tap, pixel + line.step * place - line.corner)
                 for line in lines(kernel, side, stride, padding, dilation) for pixel in range(line.count)
                 for place, tap in enumerate(line.taps)]
        assert len(found) == len(set(found)) and set(found) == {each for each in expected if 0 <= each[0] < side}


def test_phases_are_pairs_of_lines():
    found = phases((3, 1), (5, 4), (2, 3), (1, 0), (1, 1))
    assert [(each.size, each.corner, each.sides, each.empty) for each in found] == [
        ((1, 1), (0, 0), (3, 2), False), ((1, 0), (0, 0), (3, 0), True), ((1, 0), (0, 0), (3, 0), True),
        ((2, 1), (0, 0), (3, 2), False), ((2, 0), (0, 0), (3, 0), True), ((2, 0), (0, 0), (3, 0), True)]
    assert found[3].taps == [(2, 0), (0, 0)] and found[3].places == (slice(1, None, 2), slice(0, None, 3))
