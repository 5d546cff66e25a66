"""The tables of the functions: the file is what the generator writes.

Covers: golden/tables/generate.py.
"""

import numpy as np
import pytest

from golden.functions import horner
from golden.spec.tables import EXP2, FUNCTIONS, MAIN, ROWS, USES, coefficients, first_row
from golden.tables import generate


@pytest.fixture(scope="module")
def generated():
    return generate.generate()


@pytest.mark.slow    # that the functions of the file are as exact as promised: tests/golden/test_functions.py
def test_file_is_what_the_script_writes(generated):
    assert generate.PATH.read_text(encoding="ascii") == generate.dump(generated[0])


@pytest.mark.slow
def test_every_table_is_close_enough(generated):
    # 2 ulp is 2^-23 of a significand just below 2; the rest of the datapath adds less than half of that.
    assert {table for table, _, _ in generated[1]} == {"exp2", *(name for name, _ in ROWS)}
    assert max(worst for _, _, worst in generated[1]) < 2 ** -24.6


def test_addresses_cover_the_file():
    assert len(coefficients("exp2")) == 2 ** EXP2.index
    assert len(coefficients("main")) == sum(rows for _, rows in ROWS) << MAIN.index
    assert [first_row(name) for name, _ in ROWS] == [0, 2, 6, 7, 8, 14]
    assert set(USES) == set(FUNCTIONS)


@pytest.mark.parametrize("name, form", [("exp2", EXP2), ("main", MAIN)])
def test_values_stay_between_half_and_two(name, form):
    t = np.array([-2 ** (form.position - 1), 0, 2 ** (form.position - 1) - 1])
    values = np.array([horner(segment, t, form) for segment in coefficients(name)])
    assert 0.499 < values.min() / 2 ** form.fraction[0]
    assert values.max() / 2 ** form.fraction[0] < 2.001


def test_wrong_table():
    with pytest.raises(ValueError, match=r"^Table must be one of recip, rsqrt, log, tanh, logistic, mills, not 'sin'$"):
        first_row("sin")
