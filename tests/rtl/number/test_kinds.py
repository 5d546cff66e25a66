"""Kinds of number in hardware agree with what descriptions know of them."""

import pytest
from amaranth import Shape

from hbfp.arithmetic import KINDS
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.lib.stages import LEVELS
from rtl.number.kinds import FLOATS, INTEGERS, accumulation_of, number_of


def make(name, **options):
    return Design(arithmetic=name, rows=4, format=HBFPFormat(mantissa=6, block=(1, 4)), **options)


def test_every_float_has_hardware():
    assert set(FLOATS) == {name for name, kind in KINDS.items() if not kind.exact}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("multiplier", INTEGERS)
def test_widths_are_those_of_the_design(name, multiplier):
    design = make(name, multiplier=multiplier)
    number, accumulation = number_of(design), accumulation_of(design)
    element, result = Shape.cast(number.element), Shape.cast(accumulation.result_shape)
    assert (element.width, element.signed) == (design.lane_width, KINDS[name].exact)
    assert number.sum(4, 4).width == (HBFPFormat(mantissa=design.lane_width).sum_width(4) if design.integer else 32)
    assert (result.width, result.signed) == (design.result_width, name == "int")
    assert accumulation.float_results == KINDS[name].float_results


@pytest.mark.parametrize("name, registers", [
    (name, n) for name, kind in KINDS.items() for n in range(kind.registers + 1)])
def test_registers_of_an_element_are_its_units(name, registers):
    number = number_of(make(name, pipeline=registers, group=None))
    assert number.lead + number.step == 1 + (LEVELS[registers].element if KINDS[name].exact else registers)


@pytest.mark.parametrize("accumulate, kind", [("fp32", "scaled"), ("aligned", "aligned")])
def test_block_sums_add_up_as_the_design_says(accumulate, kind):
    assert accumulation_of(make("hbfp", accumulate=accumulate)).NAME == kind
