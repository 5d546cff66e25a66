"""The formula of SCALE-Sim, by hand: partial tiles are whole ones, and one cycle less in all."""

import pytest

from golden.perf.accelerator.scale_sim import scale_sim
from hbfp.program import Product


@pytest.mark.parametrize("products, rows, columns, cycles", [
    ([], 8, 8, 0),
    ([Product(1, 1, 1)], 8, 8, 23 - 1),
    ([Product(8, 8, 8)], 8, 8, 30 - 1),
    ([Product(5, 8, 9)], 8, 8, 27 * 2 - 1), ([Product(5, 9, 8)], 8, 8, 27 * 2 - 1),
    ([Product(512, 512, 512)], 32, 32, (64 + 32 + 512 - 2) * 16 * 16 - 1),
    ([Product(10, 9, 1, 4), Product(3, 4, 5)], 4, 2, 4 * (18 * 3 - 1) + (11 * 3 - 1))])
def test_formula(products, rows, columns, cycles):
    assert scale_sim(products, rows, columns) == cycles
