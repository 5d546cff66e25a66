"""Benches of parts: which there are, and what one run of one says.

Covers: cosim/bench/units/encode.py.
"""

import pytest

from cosim.bench.catalogue import bench_outcome, check_unit
from cosim.emit import emit
from hbfp.options import design_from_values
from hbfp.values import OptionError


def test_units_with_a_bench():
    check_unit("array", design_from_values({"arithmetic": "int"}))
    check_unit("encode", design_from_values({"arithmetic": "hbfp"}))
    with pytest.raises(OptionError, match="^--unit drain: must be one of core, array, align, encode, encode_lane$"):
        check_unit("drain", design_from_values({}))
    with pytest.raises(OptionError, match="^--unit array: must be of integers, not --arithmetic fp32$"):
        check_unit("array", design_from_values({"arithmetic": "fp32"}))
    sparse = design_from_values({"rows": 4, "block": (1, 4), "sparse": (2, 4)})
    check_unit("encode", sparse)
    with pytest.raises(OptionError, match="^--unit array: must be of dense weights, not --sparse 2,4: "
                                          "its bench has no indices$"):
        check_unit("array", sparse)


@pytest.mark.cosim
def test_converter_passes_its_bench():
    """The corner that no data reaches is told apart."""
    design = design_from_values({"mantissa": 3, "rows": 2, "block": (1, 2)})
    outcome = bench_outcome(emit(design, unit="encode"), "encode")
    assert outcome.passed and outcome.comparison.compared > 1000, (outcome.problems, outcome.notes["log"])
    assert (outcome.name, outcome.notes["failed"], outcome.notes["netlist"]) == ("encode", 0, None)
    assert list(outcome.unreachable) == ["converter: exponent clamped"]
