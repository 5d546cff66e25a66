"""Bits are compared, whatever they mean as numbers."""

import numpy as np

from cosim.bench.comparison import Comparison


def test_comparison_is_of_bits():
    result = Comparison()
    result.add("zeros", np.float32([0.0, 1.0]), np.float32([-0.0, 1.0]))
    assert (result.compared, result.mismatches) == (2, 1)
    assert result.first == ["zeros: 1 of 2 differ, first at (0,): 0 instead of 80000000"]
    nan = np.uint32([0x7FC00000]).view(np.float32)
    result.add("NaN", nan, nan)
    assert (result.compared, result.mismatches) == (3, 1)
