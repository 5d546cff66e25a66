"""What is compared, by name, with what was measured of its hardware."""

import re

import pytest

pytest.importorskip("torch")

from golden.study.compare.choice import Choice  # noqa: E402
from hbfp.figures import figure  # noqa: E402


@pytest.mark.parametrize("name, width, boost, sparsity, after", [
    ("hbfp4", 4, 0, "", False), ("hbfp4_1x64+6", 4, 6, "", False), ("2:4-hbfp6", 6, 0, "2:4", False),
    ("hbfp6-2:4", 6, 0, "2:4", True), ("50%-hbfp8-sr", 8, 0, "50%", False), ("hbfp8-sr-10%", 8, 0, "10%", True)])
def test_names(name, width, boost, sparsity, after):
    choice = Choice.of(name)
    assert choice.formats.x.mantissa == width
    assert (choice.boosted.x.mantissa if choice.boosted else 0) == boost
    assert (choice.name, choice.sparsity, choice.after) == (name, sparsity, after)


def test_any_format_may_be_a_boost():
    choice = Choice.of("50%-mxfp4+mxfp8-e5m2")
    assert str(choice.formats.x) == "mxfp4" and str(choice.boosted.x) == "mxfp8-e5m2" and choice.sparsity == "50%"


def test_formats_of_roles_and_fixed_scales():
    choice = Choice.of("2:4-bf16:w=hbfp4_1x16:g=mxfp8+mxfp6:w=mxfp8")
    assert [str(fmt) for fmt in (choice.formats.x, choice.formats.g, choice.boosted.x, choice.boosted.w)] == [
        "bf16", "mxfp8-e4m3", "mxfp6-e2m3", "mxfp8-e4m3"]
    assert choice.formats.w.block == (1, 16) and choice.bits() == (16 + 4 + 10 / 16 + 8.25) / 3
    assert choice.bits(True) == (16 + 4 + 10 / 16) / 2
    static, clipped = Choice.of("int8-static"), Choice.of("50%-fp8-e5m2:w=int8-row-clipped")
    assert (static.reach, clipped.reach, Choice.of("int8").reach) == ("largest", "error", "")
    assert str(clipped.formats.w) == "int8-row" and clipped.sparsity == "50%"
    assert static.measured("area") == Choice.of("int8").measured("area") is not None


def test_fp32_is_no_format():
    assert Choice.of("FP32").formats is None and Choice.of("fp32").bits() == 32
    assert Choice.of("2:4-fp32").sparsity == "2:4"


@pytest.mark.parametrize("name, key", [
    ("fp32", "floats.fp32"), ("bf16", "floats.bf16"), ("int8", "integers.int8"), ("hbfp8", "cores.hbfp8"),
    ("hbfp4_1x32", "cores.hbfp4"), ("hbfp8@aligned", "cores.hbfp8_aligned"), ("hbfp8@fp24", "cores.hbfp8_fp24"),
    ("bfp6_1x32_e10", "cores.hbfp6")])
def test_area_is_the_measured_one(name, key):
    assert Choice.of(name).measured("area") == figure(f"area.{key}.core")


@pytest.mark.parametrize("name", ["hbfp5", "hbfp4_1x16", "hbfp8-sr", "hbfp8_e8", "mxfp8", "int8-token", "msfp16",
                                  "hbfp4+6", "2:4-hbfp8", "2:4-fp32", "hbfp6@fp24"])
def test_what_was_not_measured_has_no_area(name):
    assert Choice.of(name).measured("area") is None and Choice.of(name).measured("energy") is None


def test_energy():
    names = ("fp32", "bf16", "int8", "hbfp8", "hbfp6", "hbfp4")
    assert [Choice.of(name).measured("energy") for name in names] == [figure(f"energy.cores.{name}.core")
                                                                      for name in names]


@pytest.mark.parametrize("name, message", [
    ("mxfp5", "Name of a format must be hbfpW .*, not 'mxfp5'; with \\+NAME behind it"),
    ("mxfp4+6", "A mantissa width needs HBFP formats, not mxfp4$"),
    ("mxfp4+", "Name of a format must be hbfpW .*, not ''; with "),
    ("hbfp4+17", "Mantissa width must be 2 to 16 bits, not 17$"),
    ("hbfp8@fp12", "Accumulation must be one of fp32, aligned, fp24, bf16, not 'fp12'$"),
    ("bf16:x=int8", "Name of a format must have w=NAME or g=NAME behind a colon, not 'x=int8'"),
    ("bf16:w=int9", "Name of a format must be hbfpW .*, not 'int9'; with "),
    ("bf16:w", "Name of a format must be hbfpW .*, not ''; with "),
    ("hbfp8-static", "a scale can be fixed that all of a tensor has, and hbfp8 has none$"),
    ("mxfp8-clipped", "a scale can be fixed that all of a tensor has, and mxfp8 has none$"),
    ("", "Name of a format must be ")])
def test_wrong_names(name, message):
    with pytest.raises(ValueError, match=f"^format {re.escape(name)}: {message}"):
        Choice.of(name)
