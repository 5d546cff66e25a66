"""``python -m synth fpga``: what is said of bad options, and what is written.

Covers: synth/report/fpga_table.py.
"""

import json

import pytest

from synth.command.fpga import main
from synth.measure import fpga
from synth.tools import nextpnr


@pytest.mark.parametrize("words, line", [
    (["--family", "spartan"], "--family spartan: must be one of ecp5, ice40, xc7"),
    (["--dsp", "some"], "--dsp some: must be one of yes, no, both"),
    (["--units", "element,pod"], "--units pod: must be of element, group, core"),
    (["--units", ""], "--units : must name one at least"),
    (["--clock", "chip"], "--clock chip: must be of element, group, core"),
    (["--mantissa", "4,99"], "--mantissa 99: must be 2 to 16"),
    (["--against", "fp64"], "--against fp64: must be of int, bf16, fp32"),
    (["--rows", "0"], "--rows 0: must be 1 to 256"),
    (["--jobs", "0"], "--jobs 0: must be 1 to 4096"),
])
def test_wrong_option(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth fpga: error: {line}\n"


def test_clock_without_nextpnr(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(nextpnr, "find", lambda family: None)
    with pytest.raises(SystemExit) as caught:
        main(["--clock", "element", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ("python -m synth fpga: error: --clock: needs nextpnr: "
                                       "pip install 'hbfp[fpga]'\n")
    assert not (tmp_path / "out").exists()


def table(folder, *words):
    """The counts of a tiny design by unit and name."""
    base = ["--family", "ice40", "--mantissa", "2", "--rows", "2", "--against", "int", "--dsp", "no", "--jobs", "1"]
    assert main([*base, *words, "--out", str(folder)]) == 0
    return {(row["unit"], row["name"]): row["counts"] for row in json.loads(
        (folder / "ice40.json").read_text())["rows"]}


@pytest.mark.synth
def test_table_of_elements(capsys, tmp_path):
    rows = table(tmp_path, "--units", "element,group")
    assert list(rows) == [(unit, name) for unit in ("element", "group") for name in ("hbfp2", "int2")]
    assert rows["group", "int2"]["luts"] > rows["element", "int2"]["luts"] > 0
    assert rows["element", "hbfp2"] == rows["element", "int2"] and rows["group", "hbfp2"]["rams"] == 0
    assert "hbfp2" in capsys.readouterr().out


@pytest.mark.synth
@pytest.mark.slow
def test_table_of_a_tiny_design(capsys, tmp_path):
    rows = table(tmp_path)
    assert list(rows) == [(unit, name) for unit in fpga.FPGA_UNITS for name in ("hbfp2", "int2")]
    assert rows["core", "hbfp2"]["luts"] > rows["core", "int2"]["luts"] > rows["element", "int2"]["luts"] > 0
    assert rows["core", "hbfp2"]["rams"] > 0 == rows["group", "hbfp2"]["rams"]
    assert rows["element", "hbfp2"] == rows["element", "int2"]
    assert "hbfp2" in capsys.readouterr().out
