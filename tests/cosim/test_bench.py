"""The cocotb bench passes a sound core, fails broken ones, and counts what ran."""

import pytest

from cosim.bench import run_bench
from cosim.emit import emit
from cosim.manifest import Manifest
from golden.spec.options import design_from_values
from tests.cosim.standin import write_standin

pytestmark = pytest.mark.cosim


def test_standin_passes(tmp_path):
    result = run_bench(Manifest.load(write_standin(tmp_path)))
    assert result.passed and result.ran == 13 and result.compared > 1000, (result.failures, result.missing)


def test_wrong_bits_fail(tmp_path):
    result = run_bench(Manifest.load(write_standin(tmp_path, fault=2)), tests="products_equal_golden/idle=0/stall=0")
    assert result.ran == 1 and result.failed == 1 and not result.passed
    assert "elements differ, the first in row" in result.failures[0][1]


def test_nothing_ran_is_no_pass(tmp_path):
    result = run_bench(Manifest.load(write_standin(tmp_path)), tests="no_such_test")
    assert not result.passed and result.ran == 0


@pytest.mark.parametrize("values", [
    {"preset": "tiny"}, {"rows": 4, "block": (1, 8), "accumulate": "aligned", "rounding": "stochastic", "exponent": 6,
                         "depth": 32, "growth": 5},
    {"rows": 4, "block": (1, 16), "share": 4}], ids=["tiny", "aligned", "share"])
def test_core_keeps_its_contract(values):
    from golden.spec.presets import PRESETS

    values = dict(values)
    design = design_from_values(PRESETS[values.pop("preset")] if "preset" in values else values)
    result = run_bench(emit(design))
    assert result.passed, (result.failures, result.missing, result.log)
    assert result.ran == 23
