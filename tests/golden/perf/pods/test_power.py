"""Power against the published formulas by hand."""

import math

import pytest

from golden.perf.pods import power
from golden.perf.prices import ELEMENTS, NAND2


def test_a_pod_of_32_by_32_by_hand():
    """192 bytes a cycle, 1024 elements; a butterfly-2 of 64 pods has 128 x 7 links."""
    found = power.power(power.PodConstants(), 64, 32, 32, "butterfly-2", 2)
    assert found.banks == pytest.approx(64 * 192 * 2.7e-3) and found.arrays == pytest.approx(64 * 1024 * 0.4e-3)
    assert found.network == pytest.approx(28.75e-6 * 128 * 7 * 192)
    assert found.total == pytest.approx(found.banks + found.arrays + found.network)


@pytest.mark.parametrize("name, copies, links", [
    ("crossbar", 0, 64 * 64), ("benes", 0, 4 * 64 * 6), ("butterfly-1", 1, 64 * 6), ("butterfly-4", 4, 256 * 8)])
def test_networks(name, copies, links):
    assert power.power(power.PodConstants(), 64, 32, 32, name, copies).network == pytest.approx(28.75e-6 * links * 192)


@pytest.mark.parametrize("size", [8, 32, 128, 512])
@pytest.mark.parametrize("name", power.SETS)
def test_what_a_budget_pays_for(name, size):
    constants = power.SETS[name]()[0]
    pods = power.affordable(constants, size)
    watts = [power.power(constants, each, size, size, "butterfly-2", 2).total for each in (pods, pods + 1)]
    assert watts[0] <= constants.budget_w < watts[1]


def test_a_budget_that_pays_for_none():
    assert power.affordable(power.PodConstants(budget_w=1.0), 512) == 0


def test_measured_constants():
    """HBFP8's core of 32 rows costs what is published; FP32 sums move more; columns weigh more in low arrays."""
    constants, sources = power.measured("hbfp8")
    assert constants.mac_pj == pytest.approx(0.4) and constants.bytes_a_cycle(32, 32) == 32 + 32 + 2 * 32 * 4
    assert constants.column_share == pytest.approx(1 - ELEMENTS["hbfp8"] / NAND2["hbfp8"])
    low, high = (power.power(constants, 64, rows, 32, "crossbar", 0).arrays / rows for rows in (8, 32))
    assert low / high == pytest.approx(1 + 3 * constants.column_share)
    assert set(sources) == set(power.published()[1]) and "assumed" in sources["mac_pj"]
    assert math.isclose(power.measured("hbfp4")[0].mac_pj, 0.4 * NAND2["hbfp4"] / NAND2["hbfp8"])
