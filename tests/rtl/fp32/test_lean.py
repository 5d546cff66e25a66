# amaranth: UnusedElaboratable=no
"""Lean components against the golden model: small formats over all operands, FP32 in Verilator."""

import numpy as np
import pytest

import golden.fp32 as fp32
from golden.spec.floats import FloatFormat
from rtl.fp32.arith import Add, Mul, MulAdd, ProductAdd
from rtl.fp32.convert import IntToFp32
from tests.golden.fp32_values import all_pairs, random_pairs, special_pairs
from tests.rtl.fp32.verilated import Verilated

pytestmark = pytest.mark.cosim
SMALL = [FloatFormat(4, 3), FloatFormat(3, 4), FloatFormat(5, 2)]
TINY, NARROW, WIDE = FloatFormat(2, 2), FloatFormat(3, 1), FloatFormat(3, 4)
WIDTHS = (8, 22, 24, 25, 30, 60)
FLUSH = {"subnormals": "flush"}


@pytest.fixture(scope="module")
def rack():
    """Every unit of this file in one build, by name."""
    units = {"add": Add(**FLUSH), "mul": Mul(**FLUSH), "muladd": MulAdd(), "product": ProductAdd(),
             "add+": Add(underflow="positive", **FLUSH), "tiny": MulAdd(TINY), "narrow": ProductAdd(NARROW, WIDE)}
    units |= {f"{c.__name__}{fmt}": c(fmt, **FLUSH) for fmt in SMALL for c in (Add, Mul)}
    units |= {f"int{w}": IntToFp32(w) for w in WIDTHS}
    model, names = Verilated(list(units.values())), list(units)
    return lambda name, *arrays: model(names.index(name), *arrays)


def operands():
    return (np.concatenate(v) for v in zip(special_pairs(), random_pairs(1_000_000, 1), strict=True))


@pytest.mark.parametrize("name", ["add", "mul"])
def test_fp32_equals_golden(rack, name):
    a, b = operands()
    np.testing.assert_array_equal(rack(name, a, b), getattr(fp32, name)(a, b, **FLUSH))


@pytest.mark.parametrize("fmt", SMALL, ids=str)
@pytest.mark.parametrize("name", ["Add", "Mul"])
def test_small_format_equals_golden(rack, name, fmt):
    a, b = all_pairs(fmt)
    np.testing.assert_array_equal(rack(f"{name}{fmt}", a, b), getattr(fp32, name.lower())(a, b, fmt, **FLUSH))


def test_positive_underflow_equals_golden(rack):
    a, b = operands()
    np.testing.assert_array_equal(rack("add+", a, b), fp32.add(a, b, underflow="positive", **FLUSH))


@pytest.mark.parametrize("seed", [1, 2])
def test_product_then_sum_equals_golden(rack, seed):
    a, b = operands()
    product = fp32.mul(a, b, **FLUSH)
    c = np.random.default_rng(seed).integers(0, 2 ** 32, a.size, np.uint32)
    if seed == 2:
        c = product + (c >> 7) + np.uint32(0x7F000000)
    np.testing.assert_array_equal(rack("muladd", a, b, c), fp32.add(product, c, **FLUSH))


def test_tiny_product_then_sum_equals_golden(rack):
    a, b, c = (v.reshape(-1) for v in np.meshgrid(*[np.arange(1 << TINY.width)] * 3))
    want = fp32.add(fp32.mul(a, b, TINY, **FLUSH), c, TINY, **FLUSH)
    np.testing.assert_array_equal(rack("tiny", a, b, c), want)


@pytest.mark.parametrize("seed", [1, 2])
def test_bf16_product_plus_fp32_rounds_once(rack, seed):
    a, b = (v >> 16 for v in operands())
    c = np.random.default_rng(seed).integers(0, 2 ** 32, a.size, np.uint32)
    if seed == 2:
        c = fp32.mul(a << 16, b << 16, **FLUSH) + (c >> 7) + np.uint32(0x7F000000)
    np.testing.assert_array_equal(rack("product", a, b, c), fp32.fma(a << 16, b << 16, c, **FLUSH))


def test_narrow_product_plus_wide_equals_golden(rack):
    a, b, c = (v.reshape(-1) for v in np.meshgrid(*[np.arange(1 << f.width) for f in (NARROW, NARROW, WIDE)]))
    widen = WIDE.fraction - NARROW.fraction
    want = fp32.fma(a << widen, b << widen, c, WIDE, **FLUSH)
    np.testing.assert_array_equal(rack("narrow", a, b, c), want)


@pytest.mark.parametrize("width", WIDTHS)
def test_integer_equals_golden(rack, width):
    rng = np.random.default_rng(width)
    value = rng.integers(-2 ** 62, 2 ** 62, 300_000) >> rng.integers(63 - width, 63, 300_000)
    value[:4] = -2 ** (width - 1), 2 ** (width - 1) - 1, 0, -1
    exponent, invalid = rng.integers(-200, 150, value.size), rng.random(value.size) < 0.01
    want = fp32.from_int(value, exponent, invalid, underflow="positive", **FLUSH)
    np.testing.assert_array_equal(rack(f"int{width}", value, exponent, invalid), want)


def test_wrong_product_format():
    with pytest.raises(ValueError, match=r"^Product of .*fraction=12\) must fit the precision of .*$"):
        ProductAdd(FloatFormat(8, 12))


def test_wrong_integer_width():
    with pytest.raises(ValueError, match=r"^Integer width must be 2 to 60 bits, not 61$"):
        IntToFp32(61)


def test_wrong_subnormals():
    with pytest.raises(ValueError, match=r"^Subnormals must be one of flush, not 'gradual'$"):
        MulAdd(subnormals="gradual")


def test_wrong_pipeline():
    with pytest.raises(ValueError, match=r"^Pipeline depth must be 0 to 0 cycles, not 3$"):
        IntToFp32(22, pipeline=3)
