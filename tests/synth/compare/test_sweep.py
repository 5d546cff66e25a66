"""Sweeps: which designs are crossed, and what is said of wrong lists."""

import json

import pytest

from golden.spec.config import Design
from golden.spec.format import HBFPFormat
from golden.spec.options import OptionError
from synth.command import sweep as command
from synth.compare import design_space, sweep
from synth.compare.comparison import Study
from synth.report import html, plots, sweep_table, tables
from tests.synth.fake import FakeReport

AXES = design_space.AXES | {"mantissa": ("4",), "rows": ("8",)}
SMALLEST = {"fp32": FakeReport(4500, Design(arithmetic="fp32", group=(2, 4)))}


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
    assert sum(design_space.is_plain(design.as_dict()) for design in designs) == 42


@pytest.mark.parametrize("words, line", [
    (["--group", "4"], "--group 4: must be two numbers such as 8x4"),
    (["--rows", "0"], "--rows 0: must be 1 to 256"),
    (["--against", "fp64"], "--against fp64: must be of fp32, fma, bf16, int"),
    (["--recipe", "best"], "--recipe best: must be one of area, stock, speed, generic"),
    (["--group", "3x1"], "no combination is a valid design"),
    (["--plan", "all"], "--plan all: must be one of table, study"),
    (["--plan", "study", "--rows", "8"], "--plan study: names its designs itself, take away --rows"),
])
def test_wrong_list(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        command.main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth sweep: error: {line}\n"


def test_table_of_the_readme():
    designs, left_out = design_space.designs_of_plan("table")
    assert left_out == 0 and [(design.format.block[1], design.share, design.format.mantissa) for design in designs] == [
        (block, share, width) for block, share in ((32, 1), (64, 2), (128, 4)) for width in (4, 6, 8)]


def test_pipelines_are_crossed():
    designs, left_out = design_space.cross(AXES | {"pipeline": ("0", "2"), "accumulate": ("fp32", "aligned")})
    assert [(design.accumulate, design.pipeline) for design in designs] == [("fp32", 0), ("fp32", 2), ("aligned", 0)]
    assert left_out == 1


def test_table_has_the_columns_that_differ():
    baselines = {"fp32": FakeReport(5000, Design()), "int": FakeReport(400, Design())}
    studies = [Study(FakeReport(core, Design(format=HBFPFormat(block=(1, block)), share=share)), baselines,
                     smallest=SMALLEST)
               for core, block, share in ((500, 32, 1), (420, 64, 2))]
    found = sweep_table.table(studies)
    assert [column.header for column in found.columns] == [
        "W", "array", "block", "share", "element", "core", "fp32 / core", "same group", "core / int"]
    assert [list(column.cells) for column in found.columns[3:]] == [
        ["1", "2"], ["490.0", "410.0"], ["500.0", "420.0"], ["[bold]9.00[/bold]", "[bold]10.71[/bold]"],
        ["10.00", "11.90"], ["1.250", "1.050"]]
    assert found.caption == "floats in the smallest group found: lean FP32 4,500 in groups of 2 x 4"


def test_every_figure_is_of_the_smallest_float_core():
    """CSV, JSON, page and picture divide the float core of the best group; that of the same group stands beside."""
    one = Study(FakeReport(500, Design()), {"fp32": FakeReport(5000, Design(arithmetic="fp32"))}, smallest=SMALLEST)
    assert (one.ratios["fp32"]["core"], one.smallest_ratios["fp32"]["core"]) == (10, 9)
    head, row = (line.split(",") for line in tables.csv_text([one]).splitlines())
    assert dict(zip(head, row, strict=True))["smallest fp32 over core"] == "9.000"
    (entry,) = sweep.as_dict([one])["studies"]
    assert entry["smallest_ratios"]["fp32"]["core"] == 9 and entry["ratios"]["fp32"]["core"] == 10
    assert entry["smallest"] == {"fp32": "fp32_r32_c32_g2x4, area, some"}
    (line, *_) = plots.ratio_plot([one]).axes[0].lines
    assert list(line.get_ydata()) == [9]
    assert "<td>9.00</td>" in html._published([one]) and "10.00" not in html._published([one])


def test_smallest_group_of_a_float_is_found(monkeypatch):
    """Groups of 2 x 4 are the smallest here; integers keep the design's."""
    monkeypatch.setattr(sweep, "measure", lambda design, *_: FakeReport(
        abs(design.group[0] * design.group[1] - 8) + 400, design))
    found = sweep._study(Design(), "area", None, ["fp32", "int"])
    assert found.baselines["fp32"].design["group"] == found.baselines["int"].design["group"] == (8, 4)
    assert found.smallest["fp32"].design["group"] == (2, 4) and found.smallest["int"].design["group"] == (8, 4)


@pytest.mark.synth
def test_small_sweep_writes_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "none.lib")
    words = ["--mantissa", "2", "--rows", "2", "--block", "1x2", "--against", "int", "--jobs", "1"]
    assert command.main([*words, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "sweep.json").read_text())
    (study,) = found["studies"]
    assert study["report"]["recipe"] == "generic" and study["ratios"]["int"]["core"] < 1
    assert study["baselines"]["int"] in found["baselines"]
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 2
    assert "data:image/png;base64," in (tmp_path / "area.html").read_text()


@pytest.mark.synth
@pytest.mark.filterwarnings("ignore")    # Dask's own
def test_workers_of_a_cluster_give_the_same(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "none.lib")
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    words = ["--mantissa", "2", "--rows", "2", "--block", "1x2", "--against", "int"]
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        there = ["--scheduler", cluster.scheduler_address, "--out", str(tmp_path / "there")]
        assert command.main([*words, *there]) == 0
    assert (tmp_path / "build" / "cache").exists()
    assert command.main([*words, "--jobs", "1", "--out", str(tmp_path / "here")]) == 0
    assert (tmp_path / "there/sweep.json").read_bytes() == (tmp_path / "here/sweep.json").read_bytes()


def test_no_scheduler(tmp_path, capsys):
    pytest.importorskip("distributed")
    words = ["--mantissa", "2", "--rows", "2", "--block", "1x2", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as caught:
        command.main([*words, "--scheduler", "nowhere"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        "python -m synth sweep: error: --scheduler nowhere: no Dask scheduler answers there\n")
    assert not list(tmp_path.iterdir())
