"""The compiled loops against the plain NumPy functions."""

import numpy as np
import pytest

import golden.fp32 as fp32
from golden.fast import fp32 as loops
from tests.cases import sweep
from tests.golden.fp32_values import random_pairs, special_pairs

MODES = [("gradual", "signed"), ("flush", "signed"), ("flush", "positive")]


@pytest.mark.parametrize("name, subnormals, underflow", sweep(5, [
    (name, *mode) for name in ("add", "sub", "mul", "fma") for mode in MODES]))
def test_compiled_equals_plain(monkeypatch, name, subnormals, underflow):
    a, b = (np.concatenate(v) for v in zip(special_pairs(), random_pairs(100_000, 11), strict=True))
    rng = np.random.default_rng(12)
    c = (fp32.mul(a, b) ^ np.uint32(1 << 31)) + (rng.integers(-2, 3, a.size) << rng.integers(0, 27, a.size))
    operands = (a, b, c.astype(np.uint32)) if name == "fma" else (a, b)
    options = {"subnormals": subnormals} | ({} if name == "mul" else {"underflow": underflow})
    assert a.size >= fp32.COMPILED_SIZE
    fast = getattr(fp32, name)(*operands, **options)
    monkeypatch.setattr(fp32, "COMPILED_SIZE", 1 << 60)
    np.testing.assert_array_equal(fast, getattr(fp32, name)(*operands, **options))


def test_one_variant_of_each_loop():
    """Whatever the operands are: a process that compiles another variant would spoil Numba's cache for the next."""
    a = np.arange(1 << 15, dtype=np.uint32)
    fixed = a.copy()
    fixed.flags.writeable = False
    for x, y in [(a, a), (fixed, a), (a, fixed), (fixed[::-1], 0x3F800000), (np.broadcast_to(fixed[:1], a.shape), a)]:
        for subnormals in ("flush", "gradual"):
            np.testing.assert_array_equal(fp32.add(x, y, subnormals=subnormals),
                                          fp32.add(np.array(x), np.array(y), subnormals=subnormals))
    assert len(loops.add.signatures) == 1


def test_broadcast_and_shape():
    a = np.arange(1 << 15, dtype=np.uint32).reshape(2, -1)
    got = fp32.add(a, 0x3F800000, subnormals="flush")
    assert got.shape == a.shape and got.dtype == np.uint32 and (got == 0x3F800000).all()
