"""A cocotb test that reports, as the count of a corner, what before_reset.v holds before reset."""

import os

import cocotb
from cocotb.triggers import Timer

from cosim.bench.coverage import Coverage
from cosim.manifest import Manifest


@cocotb.test()
async def reports_the_value(dut):
    await Timer(1, "ns")
    coverage = Coverage(Manifest.load(os.environ["HBFP_MANIFEST"]).design)
    coverage.seen = {"value": int(dut.value.value)}
    coverage.compared = 1
    coverage.save(os.environ["HBFP_COVERAGE"])
