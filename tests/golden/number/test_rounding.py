"""Shift and round, against exact fractions."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.number.rounding import shift_half_up, shift_rne, shift_stochastic, shift_truncate

VALUES = st.integers(-2 ** 61, 2 ** 61)
RULES = [(shift_rne, round), (shift_truncate, int), (shift_half_up, lambda q: floor(q + Fraction(1, 2)))]


@pytest.mark.parametrize("rule, exact", RULES)
def test_every_small_value_and_shift(rule, exact):
    values, shifts = np.arange(-300, 301)[:, None], np.arange(0, 12)[None, :]
    got = rule(values, shifts)
    for i, v in enumerate(values[:, 0].tolist()):
        for s in range(12):
            assert got[i, s] == exact(Fraction(v, 2 ** s))


@pytest.mark.parametrize("rule, exact", RULES)
@given(value=VALUES, shift=st.integers(0, 100))
def test_wide_values_and_shifts(rule, exact, value, shift):
    assert rule(value, shift) == exact(Fraction(value, 2 ** shift))


@given(st.integers(0, 2 ** 24 - 1), st.integers(0, 80), st.integers(1, 14), st.data())
def test_stochastic(value, shift, noise_bits, data):
    noise = data.draw(st.integers(0, 2 ** noise_bits - 1))
    kept = floor(Fraction(value, 2 ** shift) * 2 ** noise_bits)
    assert shift_stochastic(value, shift, noise, noise_bits) == (kept + noise) // 2 ** noise_bits


def test_stochastic_is_unbiased_over_all_noise():
    # 45/16 = 2.8125: of 256 equally likely noises exactly 208 must round up to 3.
    assert shift_stochastic(45, 4, np.arange(256), 8).sum() == 256 * 2 + 208
