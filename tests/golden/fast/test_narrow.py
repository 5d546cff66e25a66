"""Compiled products with sums in narrow floats equal the integer definition, and layers what they are without kernels.

Covers: golden/fast/products.py, golden/fast/stack.py, golden/fast/patches.py, golden/fast/grouped.py.
"""

import numpy as np
import pytest

from golden.bfp import encode_plain
from golden.fast import kernels, products, stack
from golden.matmul import matmul, matmul_blocks
from golden.narrow import NARROW
from hbfp.format import HBFPFormat
from tests.cases import cover

from .test_kernels import awkward, same
from .test_products import operands

torch = pytest.importorskip("torch")
import golden.nn as gn  # noqa: E402
from golden.nn import functional  # noqa: E402

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
NAMES = sorted(NARROW)


def check(x, w, fmt, name):
    """All ways to a product give the bits of the definition, which is returned."""
    x, w = map(np.ascontiguousarray, (x, w))
    want = matmul_blocks(encode_plain(x, fmt), encode_plain(w, fmt, axis=0), name, plain=True)
    same(matmul(x, w, fmt, name), want)
    if fmt.subnormals == "flush":
        same(products.multiply(*operands(x, w, fmt), sums=name), want)
        same(stack.product(x[None], w[None], stack.Formats([fmt], [fmt], [name]))[0], want)
    return want


@pytest.mark.parametrize("mantissa, scale, subnormals, name", cover(
    [2, 6, 8, 10, 12, 16], [0, -40, -60, -62, -66, -72, 60, 63], ["flush", "gradual"], NAMES, turns=4))
def test_every_width_at_every_scale(mantissa, scale, subnormals, name):
    rng = np.random.default_rng(mantissa)
    for block in ((1, 8), (1, 32), (8, 8), (1, 576)):
        for m, k, n in ((1, 1, 1), (7, 33, 10), (9, 300, 40)):
            x = np.ldexp(rng.standard_normal((m, k)), scale + rng.integers(-6, 6, (m, k))).astype(np.float32)
            w = np.ldexp(rng.standard_normal((k, n)), scale).astype(np.float32)
            x[-1, k // 2] = np.nan if m > 8 else 1
            check(x, w, HBFPFormat(mantissa=mantissa, block=block, subnormals=subnormals), name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("block", [(1, 8), (1, 32), (8, 8)])
def test_awkward_numbers(block, name):
    x, w = awkward(1), np.ascontiguousarray(awkward(2).T)
    finite = [np.nan_to_num(array, nan=1, posinf=2, neginf=3) for array in (x, w)]
    for mantissa in (4, 8, 12, 16):
        for exponent in (5, 10):
            fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, block=block)
            check(x, w, fmt, name)
            check(*finite, fmt, name)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("first", [2 ** 14, 2 ** 14 + 1, 2 ** 15 - 1])
@pytest.mark.parametrize("rest", [0, 1, -1])
def test_a_tie_is_one_of_the_sum_itself(first, rest, sign):
    # The second term is half a step of fp24, or 2^-14 of that more or less, which FP32 does not hold beside the first.
    row = np.array([[first, np.ldexp(2 ** 14 + rest, -16)]], np.float32) * np.float32(sign)
    rows = np.concatenate([row, row * [[1, -1]]]).astype(np.float32)
    fmt, ones = HBFPFormat(mantissa=16, block=(1, 1)), np.ones((2, 33), np.float32)
    got = check(rows, ones, fmt, "fp24")
    if rest:
        step = sign * np.sign(rest) * 0.5 if rest > 0 else 0
        assert got[0, 0] == sign * first + step
    # The same without kinds of integers: a block's sum in float32.
    check(rows, ones, HBFPFormat(mantissa=15, block=(1, 1)), "fp24")


@pytest.mark.parametrize("name", NAMES)
def test_overflow_and_what_follows(name):
    x = np.array([[1, 1, -1, -1, 1], [1, 1, 1, -1, 0], [-1, -1, 0, 0, 1], [1, 0.5, 0.25, 0.25, 0]], np.float32)
    x = np.ldexp(x, 63)
    w = np.full((5, 20), 2.0 ** 64, np.float32)
    for mantissa in (8, 12, 16):
        got = check(x, w, HBFPFormat(mantissa=mantissa, block=(1, 1)), name)
        assert got[1, 0] == np.inf and got[2, 0] == -np.inf
    check(np.ldexp(x, -1), w, HBFPFormat(block=(1, 1)), name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("last", [-151, -150, -149, -128, -127, -126, -125])
def test_sums_on_both_sides_of_the_smallest(last, name):
    # Block sums 1, 2, 3 times 2^last by cancellation, and their sums; both signs.
    x = np.array([[1500, 1499, 1, 0] * 2, [1500, 1499, 2, 0] * 2, [1500, 1499, 3, 0] * 2], np.float32)
    w = np.array([[1499, -1500, 1, 2047] * 2, [-1499, 1500, -1, 2047] * 2], np.float32).T
    for mantissa in (12, 16):
        got = check(np.ldexp(x, last // 2).astype(np.float32), np.ldexp(w, last - last // 2).astype(np.float32),
                    HBFPFormat(mantissa=mantissa, block=(1, 4)), name)
        assert not np.signbit(got[got == 0]).any()


@pytest.mark.parametrize("mantissa", [8, 16])
def test_threads_change_nothing(mantissa):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((150, 200)).astype(np.float32), rng.standard_normal((200, 400)).astype(np.float32)
    kernels.set_threads(3)
    try:
        check(x, w, HBFPFormat(mantissa=mantissa, block=(1, 16)), "fp24")
    finally:
        kernels.set_threads(None)


LAYERS = {
    "linear": (lambda: torch.nn.Linear(20, 17), (3, 9, 20)),
    "convolution": (lambda: torch.nn.Conv2d(8, 12, 3, padding=1), (2, 8, 9, 9)),
    "strided": (lambda: torch.nn.Conv2d(5, 12, 3, stride=2), (2, 5, 9, 9)),
    "depthwise": (lambda: torch.nn.Conv2d(20, 20, 3, groups=20), (2, 20, 9, 9)),
    "groups": (lambda: torch.nn.Conv2d(12, 24, 3, groups=3, padding=1), (2, 12, 7, 9)),
    "volume": (lambda: torch.nn.Conv3d(5, 6, 3, padding=1), (1, 5, 4, 5, 5)),
    "transposed": (lambda: torch.nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1), (2, 8, 5, 5))}


def trained(layer, shape, fmt, scale, **options):
    """Result and gradients of a layer on awkward images."""
    make, _ = LAYERS[layer]
    torch.manual_seed(0)
    made = gn.convert(make(), fmt, **options)
    x = (torch.randn(shape) * scale).requires_grad_()
    y = made(x)
    y.backward(torch.randn_like(y) * scale)
    return y, x.grad, made.weight.grad


@pytest.mark.parametrize("layer, fmt, name, scale", cover(
    LAYERS, [dict(), dict(mantissa=12), dict(mantissa=5, block=(8, 8)), dict(rounding="truncate"),
             dict(subnormals="gradual")], NAMES, [1, 2.0 ** -60, 2.0 ** -63], turns=3))
def test_layers_are_what_they_are_without_kernels(layer, fmt, name, scale, monkeypatch):
    given = LAYERS[layer][1], HBFPFormat(**{"block": (1, 8)} | fmt), scale
    found = trained(layer, *given, accumulate=name)
    monkeypatch.setattr(kernels, "library", lambda: None)
    for got, want in zip(found, trained(layer, *given, accumulate=name), strict=True):
        same(got.detach().numpy(), want.detach().numpy())


@pytest.mark.parametrize("name", NAMES)
def test_heads_of_attention(name, monkeypatch):
    torch.manual_seed(0)
    inputs, found = torch.randn(3, 2, 3, 9, 20).unbind(0), []
    for _ in range(2):
        q, k, v = (each.clone().requires_grad_() for each in inputs)
        y, _ = functional.scaled_dot_product_attention(q, k, v, formats=gn.Formats.of(accumulate=name))
        y.square().sum().backward()
        found.append((y, q.grad, k.grad, v.grad))
        monkeypatch.setattr(kernels, "library", lambda: None)
    for got, want in zip(*found, strict=True):
        same(got.detach().numpy(), want.detach().numpy())


def test_order_quick_stays_the_platforms():
    x, w = torch.randn(2, 8, 6, 6), torch.randn(4, 8, 3, 3)
    quick = [gn.Formats.of(HBFPFormat(block=(1, 8)), order="quick", accumulate=each) for each in ("fp32", "bf16")]
    one, other = (functional.conv2d(x, w, formats=each) for each in quick)
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
