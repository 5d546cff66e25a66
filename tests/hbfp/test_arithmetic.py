"""Kinds of number: what a design takes from the registry."""

import pytest

from hbfp.arithmetic import KINDS
from hbfp.design import ConflictError, Design
from hbfp.format import HBFPFormat


def make(name, **options):
    return Design(arithmetic=name, rows=4, format=HBFPFormat(mantissa=6, block=(1, 4)), **options)


@pytest.mark.parametrize("name, width, exact, floats", [
    ("hbfp", 6, True, True), ("fp32", 32, False, True), ("fma", 32, False, True), ("bf16", 16, False, True),
    ("int8", 8, True, True), ("int", 6, True, False)])
def test_design_has_what_its_number_says(name, width, exact, floats):
    design = make(name)
    assert design.number is KINDS[name] and design.blocked == (name == "hbfp")
    assert (design.lane_width, design.integer, design.number.float_results) == (width, exact, floats)
    assert design.result_width == (32 if floats else design.accumulator_width)
    assert design.name.split("_")[0] == ("int6" if name == "int" else name)


@pytest.mark.parametrize("name", KINDS)
def test_as_many_registers_as_the_unit_has_cuts(name):
    most = KINDS[name].registers
    assert make(name, pipeline=most).pipeline == most
    if most == max(kind.registers for kind in KINDS.values()):    # the field's range says so
        return
    rule = f"must be 0 to {most}" if most else "must be 0"
    with pytest.raises(ConflictError, match=f"^Pipeline {most + 1} {rule} where arithmetic is {name}$"):
        make(name, pipeline=most + 1)
