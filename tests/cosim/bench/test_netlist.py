"""After mapping: netlists of gates pass the benches that their Verilog passes, and broken ones fail them.

Covers: cosim/bench/units/align.py, cosim/bench/units/array.py,
cosim/bench/units/encode_lane.py, synth/measure/mapped.py.
"""

import re

import pytest

from cosim.bench.catalogue import BENCHES, bench_outcome
from cosim.bench.runner import run_bench
from cosim.emit import emit, emit_netlist
from cosim.manifest import Manifest
from hbfp.options import design_from_values
from synth.measure.mapped import mapped_netlist
from synth.tools.library import load
from tests.cases import sweep
from tests.synth.tiny import LIBERTY

pytestmark = [pytest.mark.cosim, pytest.mark.synth]

ELEMENTS = {"rows": 2, "block": (1, 2), "group": (1, 1)}
LANE = {"mantissa": 8, "rows": 4}
#: Slower than a few seconds: behind the marker.
MORE = [("array", ELEMENTS | {"mantissa": 4}), ("array", ELEMENTS | {"mantissa": 4, "multiplier": "recoded"}),
        ("array", ELEMENTS | {"mantissa": 8}),
        ("array", ELEMENTS | {"mantissa": 8, "multiplier": "recoded"}),
        ("array", {"mantissa": 8, "rows": 4, "group": (4, 2), "multiplier": "recoded"}),
        ("array", {"mantissa": 3, "rows": 4, "block": (1, 2), "group": (2, 2), "multiplier": "recoded"}),
        ("encode_lane", {"mantissa": 4, "rows": 4}),
        ("encode_lane", {"mantissa": 6, "rows": 4, "rounding": "stochastic", "exponent": 6}),
        ("encode", {"mantissa": 4, "rows": 4}), ("encode", {"mantissa": 8, "rows": 4, "block": (4, 4)}),
        ("core", {"mantissa": 8, "rows": 8, "block": (1, 8), "depth": 64}),
        ("core", {"mantissa": 8, "rows": 8, "block": (1, 8), "depth": 64, "accumulate": "aligned",
                  "multiplier": "recoded"})]


def check(unit, values, recipe="generic"):
    outcome = bench_outcome(emit_netlist(design_from_values(values), recipe, unit=unit), unit)
    assert outcome.passed, (outcome.comparison.first, outcome.notes["log"])
    assert outcome.notes["netlist"]["recipe"] == recipe


@pytest.mark.parametrize("unit, values", sweep(2, [
    ("encode_lane", LANE), ("align", {"mantissa": 4, "rows": 4, "accumulate": "aligned"})]))
def test_netlist_passes_the_bench(unit, values):
    check(unit, values)


@pytest.mark.slow
@pytest.mark.parametrize("unit, values", MORE)
def test_more_netlists_pass_the_bench(unit, values):
    check(unit, values)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["array", "encode"])
def test_verilog_passes_the_same_bench(unit):
    outcome = bench_outcome(emit(design_from_values({"mantissa": 5, "rows": 4}), unit=unit), unit)
    assert outcome.passed, (outcome.comparison.first, outcome.notes["log"])


def write(folder, text, manifest):
    (folder / manifest.verilog).write_text(text)
    (folder / "manifest.json").write_text(manifest.text())
    return Manifest.load(folder)


def test_cells_of_a_library_and_one_wrong_gate(tmp_path):
    """Cells as their Liberty functions say; one function changed in one of them is a mismatch."""
    (tmp_path / "cells.lib").write_text(LIBERTY)
    text, manifest = mapped_netlist(design_from_values(LANE), "encode_lane", "area", load(tmp_path / "cells.lib"))
    result = run_bench(write(tmp_path, text, manifest), BENCHES["encode_lane"])
    assert result.passed, (result.failures, result.missing)
    wrong, count = re.subn(r"^  NAND2 (\S+ \(\s+\.A)", r"  NOR2 \1", text, count=1, flags=re.MULTILINE)
    assert count == 1
    result = run_bench(write(tmp_path, wrong, manifest), BENCHES["encode_lane"])
    assert not result.passed and result.failed == 1 and "instead of" in result.failures[0][1]
