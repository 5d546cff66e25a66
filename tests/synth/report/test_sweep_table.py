"""The table of a sweep."""

from hbfp.design import Design
from hbfp.format import HBFPFormat
from synth.compare.comparison import Comparison
from synth.report import sweep_table
from tests.synth.fake import FakeReport

SMALLEST = {"fp32": FakeReport(4500, Design(arithmetic="fp32", group=(2, 4)))}


def test_table_has_the_columns_that_differ():
    baselines = {"fp32": FakeReport(5000, Design()), "int": FakeReport(400, Design())}
    comparisons = [Comparison(FakeReport(core, Design(format=HBFPFormat(block=(1, block)), share=share)), baselines,
                          smallest=SMALLEST)
               for core, block, share in ((500, 32, 1), (420, 64, 2))]
    found = sweep_table.table(comparisons)
    assert [column.header for column in found.columns] == [
        "W", "array", "block", "share", "element", "core", "+ side", "+ RAM", "+ both", "fp32 / core",
        "same group", "+ side", "+ RAM", "+ both", "core / int"]
    assert [list(column.cells) for column in found.columns[3:]] == [
        ["1", "2"], ["490.0", "410.0"], ["500.0", "420.0"], ["505.0", "425.0"], ["600.0", "520.0"],
        ["605.0", "525.0"], ["[bold]9.00[/bold]", "[bold]10.71[/bold]"],
        ["10.00", "11.90"], ["8.92", "10.60"], ["7.67", "8.85"], ["7.61", "8.77"], ["1.250", "1.050"]]
    assert found.title == "NAND2-equivalents per MAC; memories: 1.2 a bit"
    assert found.caption == "floats in the smallest group found: lean FP32 4,500 in groups of 2 x 4"


def test_options_without_a_column_of_their_own_are_shown_where_they_differ():
    comparisons = [Comparison(FakeReport(500, Design(format=HBFPFormat(exponent=exponent))), {})
                   for exponent in (8, 10)]
    found = sweep_table.table(comparisons)
    assert [column.header for column in found.columns] == [
        "W", "array", "block", "exponent", "element", "core", "+ side", "+ RAM", "+ both"]
    assert list(found.columns[3].cells) == ["8", "10"]


def test_pairs_are_written_as_on_the_command_line():
    comparisons = [Comparison(FakeReport(500, Design(format=HBFPFormat(block=(1, 64)), sparse=sparse)), {})
                   for sparse in ((1, 1), (2, 4))]
    found = sweep_table.table(comparisons)
    assert list(found.columns[3].cells) == ["1,1", "2,4"]


def test_libraries_stand_side_by_side():
    """A row a design, whatever the order; a library that a design lacks is left empty."""
    def of(library, core, mantissa):
        report = FakeReport(core, Design(format=HBFPFormat(mantissa=mantissa)))
        report.library = {"name": library}
        return Comparison(report, {"fp32": FakeReport(5000, Design()), "int": FakeReport(400, Design())},
                          smallest=SMALLEST)
    found = sweep_table.library_table([of("first", 500, 8), of("first", 250, 4), of("second", 450, 8)])
    assert [column.header for column in found.columns] == [
        "W", "array", "block", "first", "fp32 / core", "core / int", "second", "fp32 / core", "core / int"]
    assert [list(column.cells) for column in found.columns[3:]] == [
        ["500.0", "250.0"], ["[bold]9.00[/bold]", "[bold]18.00[/bold]"], ["1.250", "0.625"],
        ["450.0", ""], ["[bold]10.00[/bold]", ""], ["1.125", ""]]
