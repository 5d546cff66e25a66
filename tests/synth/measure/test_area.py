"""What is read from the statistics of a mapped unit."""

import json
from pathlib import Path

import pytest

from synth.measure.area import figures
from synth.tools.library import Library


@pytest.mark.parametrize("library, types, count", [
    (Library("a", Path("a.lib"), 2.0, "", frozenset({"REG1", "FD1"})),
     {"REG1": 3, "FD1": 4, "DFFBUF": 5, "NAND2": 6, "$scopeinfo": 1}, 7),
    (None, {"$_DFF_P_": 3, "$_SDFFCE_PP0P_": 4, "$_FF_": 1, "$_DLATCH_P_": 9, "$_NAND_": 6}, 8)])
def test_flip_flops_are_those_of_the_library(tmp_path, library, types, count):
    """Of generic gates, which have no library, those that Yosys calls so."""
    path = tmp_path / "stat.json"
    path.write_text(json.dumps({"modules": {"\\top": {"num_cells_by_type": types | {"hbfp_inner": 2}, "area": 10,
                                                      "sequential_area": 4}}}))
    found = figures(path, "top", library)
    assert found.flipflops == count and found.cells == sum(types.values()) - types.get("$scopeinfo", 0)
    assert (found.area, found.registers) == ((5, 2) if library else (0, None))
