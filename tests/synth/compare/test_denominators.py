"""What ratios divide by: which floats are measured, and which is the smallest.

Covers: synth/report/denominators_table.py.
"""

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.values import OptionError
from synth.compare import denominators
from synth.compare.clocks import FLOAT_GROUPS
from synth.compare.comparison import Comparison
from synth.report import denominators_table
from tests.synth.fake import FakeReport


def comparisons(library="some"):
    """Two cores of blocks, and floats of two kinds."""
    designs = {Design(): 500, Design(format=HBFPFormat(mantissa=4)): 200,
               Design(arithmetic="fp32", group=(8, 8)): 4200, Design(arithmetic="fp32", group=(1, 4)): 4500,
               Design(arithmetic="fp32", group=(8, 8), multiplier="recoded"): 4000,
               Design(arithmetic="bf16", group=(1, 4)): 1600}
    reports = [FakeReport(core, design) for design, core in designs.items()]
    for report in reports:
        report.library = {"name": library}
    return [Comparison(report, {}) for report in reports]


def test_every_group_with_both_multipliers():
    found = denominators.float_designs(["bf16", "int", "fp32"])
    assert [(each.arithmetic, each.multiplier, each.group) for each in found] == [
        (name, multiplier, group) for name in ("bf16", "fp32") for multiplier in ("recoded", "plain")
        for group in FLOAT_GROUPS]
    assert [each.format.mantissa for each in denominators.block_designs()] == [4, 6, 8]


def test_no_float():
    with pytest.raises(OptionError, match="^--against int: must name a float for the plan denominators$"):
        denominators.float_designs(["int"])


def test_smallest_of_each_kind_over_every_core_of_blocks():
    one, = denominators.Denominators.by_target(comparisons())
    assert {name: report.scopes()["core"] for name, report in one.smallest.items()} == {"fp32": 4000, "bf16": 1600}
    data = one.as_dict()
    assert (data["recipe"], data["library"], data["cores"]) == ("area", "some", {"HBFP8": 500, "HBFP4": 200})
    assert [(each["arithmetic"], each["multiplier"], each["group"], each["core_nand2"], each["smallest"],
             each["ratios"]) for each in data["floats"]] == [
        ("fp32", "plain", [8, 8], 4200, False, {"HBFP8": 8.4, "HBFP4": 21.0}),
        ("fp32", "plain", [1, 4], 4500, False, {"HBFP8": 9.0, "HBFP4": 22.5}),
        ("fp32", "recoded", [8, 8], 4000, True, {"HBFP8": 8.0, "HBFP4": 20.0}),
        ("bf16", "plain", [1, 4], 1600, True, {"HBFP8": 3.2, "HBFP4": 8.0})]


def test_libraries_stay_apart():
    found = denominators.Denominators.by_target([*comparisons(), *comparisons("other")])
    assert [each.as_dict()["library"] for each in found] == ["some", "other"]
    assert all(len(each.floats) == 4 and len(each.blocks) == 2 for each in found)


def test_table_has_the_smallest_in_bold():
    one, = denominators.Denominators.by_target(comparisons())
    found = denominators_table.table(one)
    assert [column.header for column in found.columns] == [
        "float", "multiplier", "group", "element", "core", "HBFP8", "HBFP4"]
    assert list(found.columns[4].cells) == ["4,200.0", "4,500.0", "4,000.0", "1,600.0"]
    assert [row.style for row in found.rows] == [None, None, "bold", "bold"]
    assert list(found.columns[-1].cells) == ["21.00", "22.50", "20.00", "8.00"]
    assert found.caption == "smallest: lean FP32 4,000.0 (recoded, 8 x 8); BF16 x BF16 + FP32 1,600.0 (plain, 1 x 4)"
