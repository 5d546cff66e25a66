"""The golden arithmetic against the host's IEEE hardware."""

import numpy as np
import pytest

import golden.fp32 as fp32
from tests.golden.fp32_fields import factors
from tests.golden.fp32_values import canonical, random_pairs, special_pairs, specials

HOST = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def host(name, a, b):
    with np.errstate(all="ignore"):
        return canonical(HOST[name](a.view(np.float32), b.view(np.float32)))


@pytest.mark.parametrize("name", HOST)
def test_equals_host_on_special_pairs(name):
    a, b = special_pairs()
    assert a.size >= 400 ** 2
    np.testing.assert_array_equal(getattr(fp32, name)(a, b), host(name, a, b))


@pytest.mark.parametrize("name", HOST)
def test_equals_host_on_factors_field_by_field(name):
    a, b = factors(8)
    np.testing.assert_array_equal(getattr(fp32, name)(a, b), host(name, a, b))


@pytest.mark.parametrize("name", HOST)
@pytest.mark.parametrize("count", [200_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_equals_host_on_random_pairs(name, count):
    for start in range(0, count, 500_000):
        a, b = random_pairs(min(count, 500_000), start)
        np.testing.assert_array_equal(getattr(fp32, name)(a, b), host(name, a, b))


@pytest.mark.parametrize("count", [200_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_square_root_equals_host(count):
    for start in range(0, count, 500_000):
        a = np.concatenate([specials(), random_pairs(min(count, 500_000), start)[0]])
        with np.errstate(all="ignore"):
            want = canonical(np.sqrt(a.view(np.float32)))
        np.testing.assert_array_equal(fp32.sqrt(a), want)


@pytest.mark.parametrize("name", HOST)
def test_flush_changes_subnormals_only(name):
    """Flushing the operands and the result of the IEEE operation, but for results that round up to
    the smallest normal number from below at full precision."""
    a, b = (np.concatenate(v) for v in zip(special_pairs(), random_pairs(200_000, 7), strict=True))

    def flush(x):
        return np.where(x & 0x7F800000, x, x & 0x80000000).astype(np.uint32)

    a, b = flush(a), flush(b)
    want, got = flush(host(name, a, b)), getattr(fp32, name)(a, b, subnormals="flush")
    differ = want != got
    assert np.isin(want[differ] & 0x7FFFFFFF, [0x00800000]).all() and (got[differ] & 0x7FFFFFFF == 0).all()
    if name in ("add", "sub"):
        assert not differ.any()


def test_positive_underflow_has_no_negative_zero():
    a, b = special_pairs()
    got = fp32.add(a, b, subnormals="flush", underflow="positive")
    signed = fp32.add(a, b, subnormals="flush")
    assert (signed == 0x80000000).any()
    np.testing.assert_array_equal(got, np.where(signed == 0x80000000, 0, signed))


def test_wrong_subnormals():
    with pytest.raises(ValueError, match=r"^Subnormals must be one of flush, gradual, not 'keep'$"):
        fp32.add(0, 0, subnormals="keep")


def test_wrong_underflow():
    with pytest.raises(ValueError, match=r"^Underflow must be one of signed, positive, not 'none'$"):
        fp32.add(0, 0, underflow="none")
