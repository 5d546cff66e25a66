"""Many pairs in one call: each has the bits of its own plain product."""

from dataclasses import replace

import numpy as np
import pytest

from golden.bfp import encode_plain as encode
from golden.fast import kernels, patches, stack
from golden.matmul import matmul_blocks
from hbfp.format import HBFPFormat
from tests.cases import cover

from .test_kernels import awkward, same

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")

#: For the pairs of one call: FP32 holds the sums of the first two and, at a scale of 1, of tiles.
BASE = HBFPFormat(block=(1, 8))
FORMATS = [(BASE, BASE), (replace(BASE, mantissa=4), BASE), (replace(BASE, mantissa=12), replace(BASE, mantissa=16)),
           (HBFPFormat(block=(8, 8)), BASE), (BASE, HBFPFormat(block=(8, 8))),
           (replace(BASE, rounding="truncate"), replace(BASE, exponent=5)),
           *((replace(BASE, subnormals="gradual", mantissa=m),) * 2 for m in (8, 14))]


def plain(x, w, formats):
    return matmul_blocks(encode(x, formats[0]), encode(w, formats[1], axis=0), plain=True)


@pytest.mark.parametrize("scale, sizes, turned", cover(
    [0, -60, -66, 62], [(1, 1, 1), (5, 19, 3), (17, 40, 33), (9, 64, 70)],
    [(False, False), (True, False), (False, True), (True, True)], turns=4))
def test_each_pair_has_its_own_formats(scale, sizes, turned):
    m, k, n = sizes
    rng = np.random.default_rng(m)
    shapes = [(k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)]
    x, w = (np.ldexp(rng.standard_normal((len(FORMATS), *shape)), scale + rng.integers(-3, 3, (len(FORMATS), *shape)))
            .astype(np.float32) for shape in shapes)
    x, w = x.swapaxes(1, 2) if turned[0] else x, w.swapaxes(1, 2) if turned[1] else w
    got = stack.product(x, w, stack.Formats(*zip(*FORMATS, strict=True)))
    for y, a, b, formats in zip(got, x, w, FORMATS, strict=True):
        same(y, plain(a, b, formats))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("scale", [0, -66])
def test_patches_of_each_model(scale, turned):
    rng, count = np.random.default_rng(0), len(FORMATS)
    x = np.ldexp(rng.standard_normal((count, 7, 9, 5)), scale).astype(np.float32)      # 3 x 2 patches of one image each
    rows = (np.arange(5)[:, None] * 45 + np.arange(8) * 5).ravel()
    places = patches.Patches(x, rows, np.arange(3) * 45, 2 * 5)
    each = [x[:, i:i + 3, j:j + 2].reshape(count, -1) for i in range(5) for j in range(8)]
    a = np.stack(each, 1)                              # (models, pixels, K)
    a = a.swapaxes(1, 2) if turned else a
    w = rng.standard_normal((count, a.shape[2], 11)).astype(np.float32)
    got = stack.patches_product(places, x[0].size, w, stack.Formats(*zip(*FORMATS, strict=True)), turned=turned)
    skip = np.arange(count) % 2 == 0
    some = stack.patches_product(places, x[0].size, w, stack.Formats(*zip(*FORMATS, strict=True)), skip, turned=turned)
    for i, formats in enumerate(FORMATS):
        want = plain(np.ascontiguousarray(a[i]), w[i], formats)
        same(got[i], want)
        if not skip[i]:
            same(some[i], want)


def test_awkward_numbers_and_pairs_that_are_skipped():
    x, w = np.stack([awkward(i) for i in range(8)]), np.stack([awkward(10 + i) for i in range(8)]).swapaxes(1, 2)
    formats, skip = stack.Formats(*zip(*FORMATS, strict=True)), np.arange(8) % 3 == 1
    got = stack.product(x, w, formats, skip)
    for i in (~skip).nonzero()[0]:
        same(got[i], plain(x[i], np.ascontiguousarray(w[i]), FORMATS[i]))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_change_nothing(count):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((40, *s)).astype(np.float32) for s in ((40, 70), (70, 50)))
    kernels.set_threads(count)
    try:
        got = stack.product(x, w, stack.Formats([BASE] * 40, [BASE] * 40))
    finally:
        kernels.set_threads(None)
    for i in (0, 13, 19, 20, 39):
        same(got[i], plain(x[i], w[i], (BASE, BASE)))


def test_nothing_to_add():
    formats = stack.Formats([BASE] * 2, [BASE] * 2)
    for m, k, n in ((0, 5, 3), (3, 5, 0), (3, 0, 4)):
        same(stack.product(np.ones((2, m, k), np.float32), np.ones((2, k, n), np.float32), formats),
             np.zeros((2, m, n), np.float32))
