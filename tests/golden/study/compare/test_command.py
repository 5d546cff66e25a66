"""``python -m golden compare``: what it writes, and what it refuses.

Covers: golden/study/compare/report.py, golden/study/compare/user.py, golden/command/source.py.
"""

import json
import re

import pytest

torch = pytest.importorskip("torch")

from golden.__main__ import main  # noqa: E402
from golden.study.compare import report  # noqa: E402

from .test_runs import FILE, METRIC  # noqa: E402


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE + METRIC)
    return path


def compare(file, tmp_path, *words):
    return main(["compare", str(file), "--out", str(tmp_path / "out"), "--jobs", "1", *words])


def test_what_it_writes(file, tmp_path, capsys):
    assert compare(file, tmp_path, "--formats", "fp32,hbfp8,mxfp4,hbfp4+6", "--epochs", "2", "--seeds", "2",
                   "--json", str(tmp_path / "found.json")) == 0
    shown = capsys.readouterr().out
    assert "metric: accuracy, %; higher is" in shown and "hbfp4+6" in shown
    data = json.loads((tmp_path / "found.json").read_text())
    assert [row["name"] for row in data["formats"]] == ["fp32", "hbfp8", "mxfp4", "hbfp4+6"]
    fp32, hbfp8, mxfp4, boosted = data["formats"]
    assert {"name", "metric", "deviation", "qsnr", "bits", "area"} <= fp32.keys()
    assert fp32["qsnr"] is None and hbfp8["qsnr"] > 30 and mxfp4["area"] is None and boosted["area"] is None
    assert hbfp8["area"] < fp32["area"] and hbfp8["energy"] < fp32["energy"]
    assert (fp32["bits"], hbfp8["bits"], mxfp4["bits"]) == (32, 8.3125, 4.25)
    assert len(hbfp8["values"]) == 2 and len(hbfp8["curves"][0]) == 12 and data["higher"] is True
    assert (tmp_path / "out" / "mine.png").read_bytes()[:4] == b"\x89PNG"
    first = (tmp_path / "found.json").read_bytes()
    assert compare(file, tmp_path, "--formats", "fp32,hbfp8,mxfp4,hbfp4+6", "--epochs", "2", "--seeds", "2",
                   "--json", str(tmp_path / "again.json")) == 0
    assert (tmp_path / "again.json").read_bytes() == first               # results that stand are read


def test_of_learned_weights(file, tmp_path):
    assert compare(file, tmp_path, "--formats", "hbfp4,2:4-hbfp4,50%-mxfp4", "--epochs", "2", "--post") == 0
    data = json.loads((tmp_path / "out" / "mine.json").read_text())
    assert data["post"] and [row["name"] for row in data["formats"]] == ["hbfp4", "2:4-hbfp4", "50%-mxfp4"]
    assert all(len(row["values"]) == 3 for row in data["formats"])


def test_a_front_is_of_what_nothing_beats():
    rows = [{"name": name, "bits": bits, "metric": metric} for name, bits, metric in
            (("a", 4, 50), ("b", 4, 60), ("c", 8, 60), ("d", 8, 70), ("e", 32, 65))]
    assert [row["name"] for row in report.front(rows, "bits", True)] == ["b", "d"]
    assert [row["name"] for row in report.front(rows, "bits", False)] == ["a"]


JUDGED = """
import torch

def model():
    return torch.nn.Linear(20, 4)

def metric(net):
    return 0
"""


def test_fixed_scales_of_a_file_that_trains_nothing(tmp_path, capsys):
    """They follow from batches of its own, which it need not be judged by."""
    path = tmp_path / "judged.py"
    path.write_text(JUDGED.replace("return 0", "return net.formats.x.top or -1") + """
def calibration():
    for number in range(20):
        yield torch.full((3, 20), float(number))
""")
    assert compare(path, tmp_path, "--formats", "int8,int8-static", "--json", str(tmp_path / "found.json")) == 0
    rows = json.loads((tmp_path / "found.json").read_text())["formats"]
    assert [row["metric"] for row in rows] == [-1, 7]                             # of eight batches
    path.write_text(JUDGED)
    with pytest.raises(SystemExit):
        compare(path, tmp_path, "--formats", "int8-static")
    assert "format int8-static: scales are fixed by batches, of calibration() of the file or of --cal" in (
        capsys.readouterr().err)


@pytest.mark.parametrize("words, message", [
    (["--formats", "hbfp8,HBFP8"], "--formats hbfp8,HBFP8: must name each format once"),
    (["--formats", "hbfp8,int7"], "format int7: Name of a format must be hbfpW"),
    (["--formats", "hbfp4+6", "--post"], "format hbfp4+6: a boost is of epochs, and nothing is trained in it"),
    (["--formats", "2:4-mxfp4"], ("format 2:4-mxfp4: training keeps N:M alone, and with HBFP alone; --post prunes what "
                                 "FP32 has learned")),
    (["--formats", "50%-hbfp4"], "format 50%-hbfp4: training keeps N:M alone"),
    (["--formats", "int8-static"], "format int8-static: scales are fixed of what FP32 has learned, with --post"),
    (["--calibration", "x"], "--calibration x: must be given with a folder's model, and with no other"),
    (["--seeds", "0"], "--seeds 0: must be 1 to 10000"),
    (["--device", "tpu"], "--device tpu: must be one of cpu, cuda"),
    pytest.param(["--device", "cuda"], "--device cuda: torch finds no GPU here; --device cpu works",
                 marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")),
    (["--data", "x"], "--data x: must be given with a folder's model, and with no other"),
    (["--checkpoint", "none.pt"], "--checkpoint none.pt: ")])
def test_wrong_options(file, tmp_path, capsys, words, message):
    with pytest.raises(SystemExit) as status:
        compare(file, tmp_path, *words)
    shown = capsys.readouterr().err
    assert status.value.code == 2 and message in shown and shown.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text, message", [
    ("x = 1", "must define model()"), ("1 / 0", "does not run: ZeroDivisionError: division by zero"),
    ("def model(): pass", ("must define metric() or inputs() to be judged, or all of loss(), batches(), optimiser() to "
                          "be trained")),
    ("def model(): pass\ndef loss(y): pass", "must define batches(), optimiser() to be trained"),
    ("def model(): pass\ndef metric(net): pass\ndef better(): return 'more'",
     "better() of FILE must give 'higher' or 'lower', not 'more'"),
    ("def model(): return 3\ndef metric(net): return 1", "model() of FILE must give a torch.nn.Module, not int")])
def test_wrong_files(tmp_path, capsys, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(SystemExit) as status:
        compare(path, tmp_path, "--formats", "hbfp8")
    shown = capsys.readouterr().err
    assert status.value.code == 2 and re.sub(re.escape(str(path)), "FILE", shown).count("\n") == 1
    assert message.replace("FILE", str(path)) in shown
