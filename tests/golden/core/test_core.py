"""The core on whole tensors: encoding, products of every arithmetic, the side unit."""

import numpy as np
import pytest

from golden import fp32, matmul
from golden.bfp import encode
from golden.core import baselines, core
from golden.noise import noise
from hbfp.design import Design
from hbfp.format import HBFPFormat


def values(shape, seed=1):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 9, shape)).astype(np.float32)


def same(a, b):
    np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize("axis", [-1, -2])
def test_encoding_is_that_of_the_lanes_from_reset(axis):
    design = Design(format=HBFPFormat(block=(1, 8), rounding="stochastic"), rows=4)
    x = values((16, 24))
    for seed in (1, 7):
        got = core.encode(design, x, axis, seed=seed)
        random = noise(x.shape, design.format, design.encode_lanes, seed=seed, axis=axis)
        want = encode(x, design.format, random, axis=axis)
        np.testing.assert_array_equal(got.mantissa, want.mantissa)
        np.testing.assert_array_equal(got.exponent, want.exponent)
    assert (core.encode(design, x, axis).mantissa != core.encode(design, x, axis, seed=2).mantissa).any()


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
def test_product_of_blocks_and_of_numbers(accumulate):
    design = Design(format=HBFPFormat(mantissa=6, block=(1, 4)), rows=4, accumulate=accumulate)
    x, w = values((5, 18)), values((18, 7), 2)
    want = matmul.matmul(x, w, design.format, accumulate)
    same(core.matmul(design, x, w), want)
    same(core.matmul(design, core.encode(design, x), core.encode(design, w, -2)), want)


@pytest.mark.parametrize("arithmetic, product", [
    ("fp32", baselines.matmul_fp32), ("fma", baselines.matmul_fma), ("bf16", baselines.matmul_bf16)])
def test_product_of_floats_takes_the_rows_of_the_array(arithmetic, product):
    x, w = values((5, 18)), values((18, 7), 2)
    for rows in (2, 8):
        same(core.matmul(Design(arithmetic=arithmetic, rows=rows), x, w), product(x, w, rows))
    assert (product(x, w, 2) != product(x, w, 8)).any()


def test_product_of_integers():
    x, w = np.arange(-6, 6).reshape(3, 4), np.arange(20).reshape(4, 5)
    np.testing.assert_array_equal(core.matmul(Design(arithmetic="int", rows=4), x, w), x @ w)


def test_side_unit_goes_on_from_the_product():
    design = Design(format=HBFPFormat(block=(1, 4)), rows=4)
    x, w, scale, bias = values((5, 18)), values((18, 7), 2), values(7, 3), values(7, 4)
    y = core.matmul(design, x, w)
    scaled = fp32.mul(y.view(np.uint32), scale.view(np.uint32), subnormals="flush")
    total = fp32.add(scaled, bias.view(np.uint32), subnormals="flush").view(np.float32)
    same(core.matmul(design, x, w, scale=scale, bias=bias), total)
    same(core.matmul(design, x, w, scale=scale, bias=bias, relu=True), np.where(total > 0, total, np.float32(0)))


@pytest.mark.parametrize("y, steps, want", [
    (0x80000000, {"relu": True}, 0x00000000),                            # ReLU of -0 is +0
    (0xBF800000, {"relu": True}, 0x00000000),
    (0x00000001, {"relu": True}, 0x00000001),                            # subnormals of fma sums stay
    (0x7FC00000, {"relu": True}, 0x7FC00000),                            # NaN, too
    (0xBF800000, {}, 0xBF800000),
    (0x3F800000, {"scale": 0x80000001}, 0x80000000),                     # a subnormal factor keeps its sign
    (0x80000000, {"bias": 0x80000001}, 0x80000000),
    (0x7F7FFFFF, {"scale": 0x40000000, "bias": 0xFF800000}, 0x7FC00000)])    # infinity, then infinity less infinity
def test_corners_of_the_side_unit(y, steps, want):
    steps = {name: np.array([value], np.uint32) if name != "relu" else value for name, value in steps.items()}
    assert core.side(np.array([[y]], np.uint32), **steps).tolist() == [[want]]
