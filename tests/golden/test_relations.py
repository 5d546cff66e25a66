"""Relations between products that hold whatever a product is: nothing here knows how one is computed.

Rows change places, powers of two are taken out, K is longer by blocks of zeros, operands change sides, a batch is
split: the numbers are the same, bit for bit, by the definitions and by every quick way.

Covers: golden/matmul.py, golden/ways.py.
"""

import itertools

import numpy as np
import pytest

from golden import bfp, matmul
from hbfp.format import HBFPFormat
from tests.cases import slow

M, K, N = 48, 96, 32
FORMATS = [HBFPFormat(mantissa=mantissa, block=block) for mantissa, block in itertools.product(
    (4, 8, 12, 16), ((1, 16), (1, 32), (16, 16)))]
ACCUMULATES = ("fp32", "fp24", "bf16", "aligned")
#: Format, accumulation, and whether it is the definition.
CASES = list(itertools.product(FORMATS, ACCUMULATES, (False, True)))
#: Least and largest exponent of the operands' numbers. No sum of products is subnormal, or too large.
EXPONENTS = -20, 20


def operands(seed):
    """Numbers of many magnitudes, a block of zeros among them, and one number that is none."""
    pick = np.random.default_rng(seed)
    x, w = (pick.standard_normal(shape) * 2.0 ** pick.integers(*EXPONENTS, shape) for shape in ((M, K), (K, N)))
    x[3, :32], w[:32, 5] = 0, 0
    x[7, 40] = np.nan
    return x.astype(np.float32), w.astype(np.float32)


def product(x, w, fmt, accumulate, plain):
    return matmul.matmul_blocks(bfp.encode(x, fmt), bfp.encode(w, fmt, axis=0), accumulate, growth=None, plain=plain)


@pytest.fixture(params=[number if number % 11 == 0 else slow(number) for number in range(len(CASES))],
                ids=lambda number: "{0.mantissa}, {0.block}, {1}, {2}".format(*CASES[number]))
def multiply(request):
    """(x, w) -> bits of their product."""
    return lambda x, w: product(x, w, *CASES[request.param]).view(np.uint32)


def in_tiles(size, pick):
    """Places in another order, 16 by 16, so that tiles stay as they are."""
    return (16 * pick.permutation(size // 16)[:, None] + np.arange(16)).ravel()


def test_rows_and_columns_change_places(multiply):
    x, w = operands(1)
    pick = np.random.default_rng(2)
    rows, columns = in_tiles(M, pick), in_tiles(N, pick)
    assert np.array_equal(multiply(x[rows], w[:, columns]), multiply(x, w)[rows][:, columns])


@pytest.mark.parametrize("powers", [(3, 0), (-5, 0), (0, 7), (4, -9)])
def test_powers_of_two_are_taken_out(multiply, powers):
    x, w = operands(3)
    a, b = (np.float32(2.0 ** power) for power in powers)
    numbers = multiply(x, w).view(np.float32)
    assert np.array_equal(multiply(x * a, w * b), (numbers * (a * b)).view(np.uint32))


def test_blocks_of_zeros_change_nothing(multiply):
    x, w = operands(4)
    zeros = np.zeros((M, 64), np.float32), np.zeros((64, N), np.float32)
    both = [(np.concatenate(order(x, zeros[0]), 1), np.concatenate(order(w, zeros[1]), 0))
            for order in (lambda a, b: (a, b), lambda a, b: (b, a))]
    for longer in both:
        assert np.array_equal(multiply(*longer), multiply(x, w))


def test_operands_change_sides(multiply):
    x, w = operands(5)
    assert np.array_equal(multiply(w.T.copy(), x.T.copy()).T, multiply(x, w))


def test_a_batch_is_split(multiply):
    x, w = operands(6)
    assert np.array_equal(np.concatenate([multiply(x[begin:begin + 16], w) for begin in range(0, M, 16)]),
                          multiply(x, w))


def test_a_sign_is_taken_out(request, multiply):
    """What ``aligned`` drops it drops towards minus infinity; all else rounds alike on both sides of zero."""
    if "aligned" in request.node.callspec.id:
        pytest.skip("aligned sums are not the same on both sides of zero")
    x, w = operands(7)
    assert np.array_equal(multiply(-x, w).view(np.float32), -multiply(x, w).view(np.float32), equal_nan=True)
