"""The breakdown of a design, and of a part that was measured alone."""

import io
from dataclasses import replace

from rich.console import Console

from hbfp.design import Design
from synth.compare.baselines import BASELINES
from synth.compare.comparison import Comparison
from synth.measure.area import COMPONENTS, Figures, Report, macs_of
from synth.report.tables import breakdown_table, ratio_table

DESIGN = Design()


def report(unit, **areas):
    components = {name: Figures(area=area, cells=1) for name, area in areas.items()}
    return Report("top", DESIGN, "area", {"name": "some"}, {}, {}, dict.fromkeys(COMPONENTS, Figures()) | components,
                  macs_of(DESIGN, unit), 1.2, unit)


def rows(found):
    """First, second and share column of the table, by its first."""
    columns = {column.header: list(column.cells) for column in found.columns}
    first, second, *_ = columns
    return list(zip(columns[first], columns[second], columns["share"], strict=True))


def test_core_counts_by_multiply_accumulate_and_keeps_the_side_unit_beside():
    found = breakdown_table(report("core", elements=1024, **{"side unit": 2048}))
    assert rows(found) == [
        ("elements", "1.0", "100.0%"), ("side unit", "2.0", "beside"), ("core without memories", "1.0", ""),
        ("core and memories, 1.2 a bit", "1.0", ""), ("core, side unit and memories, 1.2 a bit", "3.0", "")]
    assert found.columns[1].header == "a MAC"


def test_part_alone_is_all_that_it_has():
    found = breakdown_table(report("side", **{"side unit": 2048}))
    assert rows(found) == [("side unit", "2,048", "100.0%"), ("side without memories", "2,048", "")]
    assert found.columns[1].header == "all"


def test_multiply_accumulates_of_units():
    found = {unit: macs_of(DESIGN, unit) for unit in ("core", "array", "row", "group", "dot_product.both", "encode")}
    assert found == {"core": 1024, "array": 1024, "row": 256, "group": 32, "dot_product.both": 32, "encode": 1}


def text_of(table):
    """A table as a terminal of 80 columns shows it."""
    console = Console(width=80, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_tables_fit_a_terminal():
    """With areas of a large core no number is cut or broken, whatever stands before them."""
    large = {name: Figures(area=1234567.8, cells=234567, flipflops=123456, bits=12345678) for name in COMPONENTS}
    report = Report("a_name_as_long_as_those_of_designs_are_m8_e10_b1x32_r32_c32_g8x4_fp32", DESIGN, "area",
                    {"name": "some"}, {}, {}, large, 1024, 1.2, "core")
    whole = text_of(breakdown_table(report))
    assert all(text in whole for text in ("1,206", "1,234,568", "123,456", "12,345,678", "flip-flops"))
    others = dict.fromkeys(BASELINES, replace(report, components={name: replace(each, area=each.area * 12)
                                                                  for name, each in large.items()}))
    ratios = text_of(ratio_table(Comparison(report, others)))
    assert "12.00" in ratios and "everything" in ratios and max(map(len, (whole + ratios).splitlines())) <= 80
    assert "…" not in whole + ratios
