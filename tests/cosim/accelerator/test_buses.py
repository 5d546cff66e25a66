"""The accelerator between buses that are not ours: random programs of all units, and errors, by cocotbext-axi."""

import pytest

from cosim.bench.runner import run_bench
from cosim.emit import emit_accelerator
from tests.cosim.accelerator.built import ACCELERATOR

pytest.importorskip("cocotbext.axi", reason="cocotbext-axi is missing; install it with: pip install 'hbfp[test]'")
pytestmark = pytest.mark.cosim


@pytest.mark.slow
def test_programs_between_independent_buses():
    result = run_bench(emit_accelerator(ACCELERATOR), "tests.cosim.accelerator.buses")
    assert (result.ran, result.failures) == (5, []) and result.compared > 10_000, result
