"""Parts of the datapath that sets of functions have, and the registers that an accelerator's evaluators get."""

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.functions import FUNCTIONS, parts
from hbfp.system import Accelerator


@pytest.mark.parametrize("functions, count", [
    (FUNCTIONS, 12), (("exp",), 6), (("recip", "rsqrt"), 5), (("log",), 7), (("exp", "gelu", "log"), 12), ((), 0)])
def test_parts(functions, count):
    assert len(parts(functions)) == count and list(parts(FUNCTIONS))[-1] == "output"


@pytest.mark.parametrize("fabric, functions, pipeline", [
    ("gates", FUNCTIONS, 4), ("fpga", FUNCTIONS, 12), ("fpga", ("exp", "recip"), 7), ("fpga", (), 4)])
def test_registers_of_an_fpga(fabric, functions, pipeline):
    core = Design(rows=8, format=HBFPFormat(block=(1, 8)), pipeline=2, fabric=fabric)
    assert Accelerator(core=core, functions=functions).function_pipeline == pipeline
