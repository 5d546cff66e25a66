"""The benchmark that trains all combinations: its first six runs have all pairs of values; it keeps what one gave."""

from itertools import combinations as pairs

import numpy as np
import pytest

from benchmarks.training import AXES, combinations, measured


def test_the_first_runs_have_every_pair_of_values():
    every = combinations()
    assert len(every) == 32 == len({str(each) for each in every})
    for one, other in pairs(AXES, 2):
        assert len({(str(each[one]), str(each[other])) for each in every[:6]}) == 4


@pytest.mark.slow    # it lowers and runs a step, as many tests do
def test_a_step_of_a_combination():
    found = measured(combinations()[0], 1, verilog=False)
    assert found["compared"] > 5000 and found["differ"] == 0
    loss, = np.array(found["losses"], np.uint32).view(np.float32)
    assert 1 < loss < 5
