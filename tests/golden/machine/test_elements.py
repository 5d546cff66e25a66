"""Numbers that share no exponents in X, W and DRAM, and their products, as those of a core of the same kind."""

import numpy as np
import pytest

from golden.core import core
from golden.core.baselines import BASELINES
from golden.machine.elements import encode, product
from golden.machine.layouts import pack_records, unpack_records
from hbfp.design import Design
from hbfp.system import NUMBERS, Accelerator

PLAIN = [name for name in NUMBERS if name != "hbfp"]


def numbers(shape, seed):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 18, shape)).astype(np.float32)


@pytest.mark.parametrize("name", PLAIN)
def test_product_is_the_cores(name):
    """Elements of X and W are rounded once, and every tile of K has a sum of its own."""
    design = Accelerator(core=Design(arithmetic=name, rows=8)).core
    x, w = numbers((5, 24), 0), numbers((24, 16), 1)
    found = product(design, encode(design, x, design.format), encode(design, w, design.format, axis=-2))
    np.testing.assert_array_equal(found, core.matmul(design, x, w))
    other = core.matmul(Design(arithmetic=name, rows=4), x, w)
    assert np.array_equal(found, other) == design.integer    # sums that are exact have no order


@pytest.mark.parametrize("name", PLAIN)
def test_records_hold_what_the_converter_gives(name):
    system = Accelerator(core=Design(arithmetic=name, rows=8))
    weight = numbers((16, 8), 2)
    data = pack_records(system, weight)
    assert len(data) == 2 * system.record_beats * system.beat == weight.size * system.mantissa // 8
    found, exponents, invalid = unpack_records(system, np.frombuffer(data, np.uint32).reshape(2, -1))
    np.testing.assert_array_equal(found.reshape(16, 8).view(np.uint32) & 2 ** system.mantissa - 1,
                                  BASELINES[name].patterns(weight))
    assert not exponents.any() and not invalid.any()


@pytest.mark.parametrize("name", PLAIN)
def test_elements_are_the_patterns_of_their_numbers(name):
    kind, values = BASELINES[name], numbers((40, 40), 3)
    np.testing.assert_array_equal(kind.values(kind.patterns(values)), kind.rounded(values))
