"""Float baselines: every kind of float has one, and patterns are the elements' bits."""

import numpy as np
import pytest

from golden.baselines import BASELINES
from golden.to_fp32 import to_bf16
from hbfp.arithmetic import KINDS

#: Ordinary numbers, a tie of BF16, both ends, subnormals, Inf; the NaN is the canonical one.
X = np.array([[0.0, -0.0, 1.0, -1.00390625, 3e38, -1e-39], [np.inf, -np.inf, 0.1, 2.0**-126, 255.5, -7.0]], np.float32)


def test_every_float_has_a_baseline():
    assert set(BASELINES) == {name for name, kind in KINDS.items() if not kind.exact}
    assert all(each.name == name for name, each in BASELINES.items())


@pytest.mark.parametrize("name", BASELINES)
def test_patterns_have_the_bits_of_an_element(name):
    baseline, bits = BASELINES[name], KINDS[name].bits
    patterns = baseline.patterns(X)
    assert patterns.dtype == np.uint32 and patterns.max() < 2**bits
    want = X if bits == 32 else to_bf16(X)
    assert np.array_equal(baseline.values(patterns).view(np.uint32), want.view(np.uint32))
    assert np.array_equal(baseline.patterns(baseline.values(patterns)), patterns)


@pytest.mark.parametrize("name", BASELINES)
def test_product_rounds_operands_itself(name):
    """The product of numbers and of their elements is the same."""
    baseline, x = BASELINES[name], np.nan_to_num(X, posinf=5.5, neginf=-3.25)
    elements = baseline.values(baseline.patterns(x))
    got = [baseline.matmul(part, part.T.copy(), 2).view(np.uint32) for part in (x, elements)]
    assert np.array_equal(*got)
