# amaranth: UnusedElaboratable=no
"""Dot products of signs and magnitudes equal the integer ones."""

import itertools

import numpy as np
import pytest

from rtl.fixed.sign_magnitude import SignMagnitudeDot
from tests.cases import sweep

from ..drive import bits, evaluate


def run(width, a, b):
    """Sums of rows of signed numbers; zeros get either sign."""
    m, rng = width - 1, np.random.default_rng(width)
    a, b = np.asarray(a), np.asarray(b)
    dut = SignMagnitudeDot(m, a.shape[1])

    def signs(x):
        negative = (x < 0) | (x == 0) & rng.integers(0, 2, x.shape, bool)
        return [sum(int(bit) << n for n, bit in enumerate(row)) for row in negative]

    def magnitudes(x):
        return [sum(abs(int(v)) << m * n for n, v in enumerate(row)) for row in x]
    got = evaluate(dut, {"a_negative": signs(a), "a": magnitudes(a), "b_negative": signs(b), "b": magnitudes(b)}, "o")
    return got.tolist()


def expected(a, b):
    return (np.asarray(a, np.int64) * np.asarray(b, np.int64)).sum(1).tolist()


@pytest.mark.parametrize("width", [2, 3, 4])
def test_every_product(width):
    limit = 2 ** (width - 1) - 1
    pairs = np.array([*itertools.product(range(-limit, limit + 1), repeat=2)])
    assert run(width, pairs[:, :1], pairs[:, 1:]) == expected(pairs[:, :1], pairs[:, 1:])


@pytest.mark.parametrize("width, terms", sweep(4, [
    (2, 5), (3, 3), (5, 3), (4, 2), (8, 2), (6, 2), (7, 1), (9, 1), (11, 1), (14, 1), (16, 1)]))
def test_extremes_and_random_sums(width, terms):
    limit, rng = 2 ** (width - 1) - 1, np.random.default_rng(width * 10 + terms)
    corners = [[x] * terms for x in (-limit, -1, 0, 1, limit)]
    rows = [(a, b) for a in corners for b in corners]
    rows += [rng.integers(-limit, limit, (2, terms), endpoint=True).tolist() for _ in range(10)]
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    assert run(width, a, b) == expected(a, b)


@pytest.mark.parametrize("terms", sweep(2, [7, 16]))
def test_long_sums(terms):
    rng = np.random.default_rng(terms)
    a, b = (rng.integers(-7, 7, (10, terms), endpoint=True) for _ in range(2))
    a[0], b[0], a[1], b[1], a[2], b[2] = 7, 7, 7, -7, 0, -7
    assert run(4, a, b) == expected(a, b)


def test_ports_hold_every_sum():
    """127 products of 49 need 13 bits and a sign, 128 too."""
    assert len(bits(SignMagnitudeDot(3, 128).o)) == 14
