"""Compiled ``encode`` and ``decode`` give the bits of ``encode_plain`` and ``decode_plain``.

Covers: golden/fast/conversion.py, golden/number/blocks.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from golden.bfp import Blocks, decode, decode_plain, encode, encode_plain
from golden.fast import kernels
from hbfp.format import HBFPFormat
from tests.cases import cover

from .test_kernels import awkward

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
SHAPES = [(75 * 141,), (75, 141), (3, 25, 141), (5, 15, 3, 47)]


def equal(got, want):
    """Same dtype, shape and bits."""
    assert got.dtype == want.dtype and got.shape == want.shape
    assert (got.view(np.uint8) == want.view(np.uint8)).all() if got.size else True


def check(x, fmt, axis, noise=None):
    got, want = encode(x, fmt, noise, axis=axis), encode_plain(x, fmt, noise, axis=axis)
    for name in ("mantissa", "exponent", "invalid"):
        equal(getattr(got, name), getattr(want, name))
    assert (got.fmt, got.axis) == (want.fmt, want.axis)
    equal(decode(got), decode_plain(want))


@pytest.mark.parametrize("sizes, rounding, subnormals", cover(
    [(2, 10), (8, 10), (16, 5), (8, 7), (16, 16)], ["rne", "truncate", "stochastic"], ["flush", "gradual"]))
def test_every_shape_and_axis(sizes, rounding, subnormals):
    mantissa, exponent = sizes
    for shape in SHAPES:
        x = awkward(3).reshape(shape)
        noise = np.random.default_rng(0).integers(0, 256, shape) if rounding == "stochastic" else None
        fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, rounding=rounding, subnormals=subnormals)
        for block in ((1, 1), (1, 8), (1, 32)):
            for axis in range(-len(shape), 0):
                check(x, replace(fmt, block=block), axis, noise)
        for block in ((8, 8), (24, 24)) if len(shape) > 1 else ():
            check(x, replace(fmt, block=block), -1, noise)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (2, 0, 3)])
def test_no_elements(shape):
    for axis in range(-len(shape), 0):
        check(np.zeros(shape, np.float32), HBFPFormat(), axis)
    if len(shape) > 1:
        check(np.zeros(shape, np.float32), HBFPFormat(block=(4, 4)), -1)


def test_strided_tensors():
    x = awkward(4)
    for view in (x.T, x[::2, ::3], x[:, 5:9], np.broadcast_to(x[0], (7, 141))):
        check(view, HBFPFormat(), -1)
        check(view, HBFPFormat(block=(8, 8)), -1)


@pytest.mark.parametrize("exponent", [-40000, -1100, -150, -141, -127, -126, 0, 113, 128, 129, 1100, 40000])
def test_any_exponent_is_decoded(exponent):
    mantissa = np.array([[-127, -1, 0, 1, 127]], np.int32)
    for m in (8, 16):
        blocks = Blocks(mantissa, np.full((1, 1), exponent, np.int32), np.zeros((1, 1), bool),
                        HBFPFormat(mantissa=m, exponent=16))
        equal(decode(blocks), decode_plain(blocks))


def test_mantissas_of_another_type_are_decoded():
    blocks = encode(awkward(1), HBFPFormat())
    equal(decode(Blocks(blocks.mantissa.astype(np.int64), blocks.exponent, blocks.invalid, blocks.fmt)),
          decode_plain(blocks))


def test_without_a_compiler_the_definition_runs(monkeypatch):
    monkeypatch.setattr(kernels, "library", lambda: None)
    monkeypatch.setattr("golden.fast.conversion.mantissas", None)
    monkeypatch.setattr("golden.fast.conversion.decoded", None)
    check(awkward(2), HBFPFormat(), -1)
