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


@pytest.mark.parametrize("fabric, functions, pipeline, registers", [
    ("gates", FUNCTIONS, 4, (0, 0)), ("fpga", FUNCTIONS, 12, (1, 2)), ("fpga", ("exp", "recip"), 7, (1, 2)),
    ("fpga", (), 4, (1, 2))])
def test_registers_of_an_fpga(fabric, functions, pipeline, registers):
    core = Design(rows=8, format=HBFPFormat(block=(1, 8)), pipeline=2, fabric=fabric)
    found = Accelerator(core=core, functions=functions)
    assert (found.function_pipeline, found.vector_registers) == (pipeline, registers)
