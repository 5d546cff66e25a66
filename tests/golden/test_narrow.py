"""Sums in narrow floats: the quick way equals the definition, and both what section 5 says."""

import numpy as np
import pytest

from golden import narrow
from golden.bfp import encode
from golden.matmul import matmul, matmul_blocks
from golden.narrow import NARROW
from hbfp.format import HBFPFormat

NAMES = sorted(NARROW)


def hexed(value):
    return f"{np.asarray(value, np.float32).view(np.uint32):08x}"


def one(pairs, name, way):
    pairs = [(np.array([total]), np.array([last])) for total, last in pairs]
    return hexed(getattr(narrow, way)(pairs, NARROW[name])[0])


@pytest.mark.parametrize("way", ["accumulate", "accumulate_plain"])
@pytest.mark.parametrize("name, pairs, want", [
    ("bf16", [(257, 0)], "43800000"), ("bf16", [(259, 0)], "43820000"), ("bf16", [(-259, 0)], "c3820000"),    # ties
    ("bf16", [(256, 0), (1, 0)], "43800000"), ("bf16", [(256, 0), (1, 0), (1, 0)], "43800000"),    # each sum rounds
    ("bf16", [(256, 0), (3, 0)], "43820000"), ("fp24", [(256, 0), (1, 0)], "43808000"),
    ("fp24", [(65537, 0)], "47800000"), ("fp24", [(65539, 0)], "47800200"), ("fp24", [(65536, 0), (1, 0)], "47800000"),
    ("bf16", [(511, 119)], "7f800000"), ("bf16", [(-511, 119)], "ff800000"), ("bf16", [(255, 120)], "7f7f0000"),
    ("bf16", [(1, 128), (-1, 128)], "7fc00000"), ("fp24", [(1, 128), (-1, 0)], "7f800000"),
    ("bf16", [(255, -134)], "00000000"), ("bf16", [(511, -135)], "00800000"), ("bf16", [(-511, -135)], "80800000"),
    ("bf16", [(3, -126), (-5, -127)], "00000000"), ("bf16", [(5, 0), (-5, 0)], "00000000"),
    ("bf16", [(1, -126), (1, -127)], "00800000"), ("fp24", [(0, 50)], "00000000"),
])
def test_rule(name, pairs, want, way):
    assert one(pairs, name, way) == want


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bits, spread", [(4, 3), (20, 20), (20, 140), (40, 60), (53, 300)])
def test_quick_equals_plain(name, bits, spread):
    rng = np.random.default_rng(bits + spread)
    pairs = [(rng.integers(-2 ** bits + 1, 2 ** bits, 20_000) >> rng.integers(0, bits, 20_000),
              rng.integers(-spread, spread + 1, 20_000) - bits // 2) for _ in range(5)]
    np.testing.assert_array_equal(narrow.accumulate(pairs, NARROW[name]).view(np.uint32),
                                  narrow.accumulate_plain(pairs, NARROW[name]).view(np.uint32))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1, 1e-17, 1e-19, 1e18, 1e19])
@pytest.mark.parametrize("mantissa, block", [(8, (1, 32)), (4, (1, 8)), (12, (16, 16))])
def test_product(name, scale, mantissa, block):
    rng = np.random.default_rng(mantissa)
    fmt = HBFPFormat(mantissa=mantissa, block=block)
    x, w = (rng.standard_normal(shape).astype(np.float32) * np.float32(scale) for shape in ((33, 70), (70, 20)))
    x[3, 5] = np.inf
    quick, blocks = matmul(x, w, fmt, name), (encode(x, fmt), encode(w, fmt, axis=0))
    plain = matmul_blocks(*blocks, name, plain=True)
    np.testing.assert_array_equal(quick.view(np.uint32), plain.view(np.uint32))
    assert np.isnan(quick[3]).all()
    if scale == 1:
        np.testing.assert_allclose(quick[16:], matmul(x, w, fmt)[16:], rtol=0.02, atol=0.2)
    assert not (quick.view(np.uint32) & (1 << 23 - NARROW[name].fraction) - 1).any()
