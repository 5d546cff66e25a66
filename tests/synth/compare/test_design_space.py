"""Which designs a sweep measures."""

import itertools

import pytest

from hbfp.options import OPTIONS
from hbfp.values import OptionError
from synth.compare import design_space
from synth.compare.clocks import FLOAT_GROUPS

AXES = design_space.AXES | {"mantissa": ("4",), "rows": ("8",)}


def test_axes_are_crossed_in_order():
    designs, left_out = design_space.cross(AXES | {"mantissa": ("4", "8"), "group": ("1x1", "4x2")})
    assert [(design.format.mantissa, design.group) for design in designs] == [
        (4, (1, 1)), (4, (4, 2)), (8, (1, 1)), (8, (4, 2))]
    assert left_out == 0 and all(design.recoded for design in designs)


def test_contradictions_are_left_out():
    designs, left_out = design_space.cross(AXES | {"group": ("4x4", "3x1")})
    assert len(designs) == 1 and left_out == 1


def test_wrong_value_is_refused():
    with pytest.raises(OptionError, match="^--mantissa 99: must be 2 to 16$"):
        design_space.cross(AXES | {"mantissa": ("99",)})


def test_study_covers_what_is_asked():
    """Widths 2 to 12, arrays of 8 to 128, and each other axis at 32 x 32."""
    designs, _ = design_space.designs_of_plan("study")
    assert {(design.format.mantissa, design.rows) for design in designs} >= {
        (width, rows) for width in (2, 3, 4, 5, 6, 8, 12) for rows in (8, 16, 24, 32, 64, 128)}
    assert {design.accumulate for design in designs} == {"fp32", "aligned"}
    assert {design.group for design in designs} >= {(1, 1), (4, 1), (8, 4), (8, 8)}
    assert len(set(designs)) == len(designs)
    assert sum(design_space.is_plain(design) for design in designs) == 42


def test_table_of_the_readme():
    designs, left_out = design_space.designs_of_plan("table")
    plain = [each for each in designs if each.accumulate == "fp32" and not each.wide and not each.takes_sparse]
    assert left_out == 0 and [(design.format.block[1], design.share, design.format.mantissa) for design in plain] == [
        (block, share, width) for block, share in ((32, 1), (64, 2), (128, 4)) for width in (4, 6, 8)]
    assert [(design.format.mantissa, design.wide) for design in designs if design.wide] == [(4, 6), (8, 12)]
    assert [(each.format.mantissa, each.format.terms, each.sparse) for each in designs if each.takes_sparse] == [
        (4, 64, (2, 4)), (8, 64, (2, 4))]
    assert [(each.format.mantissa, each.format.block, each.accumulate) for each in designs
            if each.accumulate != "fp32"] == [
        *((width, (32, 32), "aligned") for width in (4, 6, 8)),
        *((8, (1, 32), sums) for sums in ("aligned", "fp24", "bf16"))]


def test_pipelines_are_crossed():
    designs, left_out = design_space.cross(AXES | {"pipeline": ("0", "8"), "accumulate": ("fp32", "aligned")})
    assert [(design.accumulate, design.pipeline) for design in designs] == [("fp32", 0), ("aligned", 0)]
    assert left_out == 2


def test_every_option_is_an_axis():
    """But those that sweeps fix."""
    assert sorted((*design_space.AXES, *design_space.APART)) == sorted(OPTIONS)
    designs, _ = design_space.cross(design_space.axes_of({"mantissa": "4", "exponent": "8,10", "cols": "16"} | {
        name: None for name in design_space.AXES if name not in ("mantissa", "exponent", "cols")}))
    assert [(design.format.exponent, design.cols) for design in designs] == [(8, 16), (10, 16)]


def test_denominators_are_every_float_in_every_group():
    designs, left_out = design_space.designs_of_plan("denominators")
    assert left_out == 0 and {(each.arithmetic, each.multiplier, each.group) for each in designs} == set(
        itertools.product(("fp32", "fma", "bf16"), ("plain", "recoded"), FLOAT_GROUPS))
