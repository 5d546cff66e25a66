"""Mapped netlists equal their Verilog, for all inputs and states."""

import re

import pytest

from golden.spec.options import design_from_values
from synth.equal import check, netlists
from synth.errors import SynthError
from synth.regress import UNITS

pytestmark = pytest.mark.synth


def parts(name):
    unit, values = UNITS[name]
    return netlists(design_from_values(values), unit)


@pytest.mark.parametrize("name", ["encode_lane_m4", "encode_lane_m8", "element_m4"])
def test_netlist_equals_verilog(name):
    for unit, mapped in parts(name):
        check(unit, mapped)


def test_wrong_netlist_is_found():
    (unit, mapped), = parts("encode_lane_m4")
    wrong = re.sub(r"~\((\w+) & (\w+)\)", r"~(\1 | \2)", mapped, count=1)
    assert wrong != mapped
    with pytest.raises(SynthError, match="Found [0-9]+ unproven"):
        check(unit, wrong)
