"""``python -m synth netlist``: what is said of bad options, and what is written."""

import hashlib
import json

import pytest

from synth.__main__ import main


@pytest.mark.parametrize("words, line", [
    (["--recipe", "ecp5"], "--recipe ecp5: must be one of area, adders, stock, speed, generic"),
    (["--mantissa", "1"], "--mantissa 1: must be 2 to 16")])
def test_wrong_netlist_option(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(["netlist", *words])
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth netlist: error: {line}\n"


def test_netlist_of_an_unknown_unit(capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main(["netlist", "--unit", "gate", "--recipe", "generic", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith("python -m synth netlist: error: ") and "--unit gate: must be one of" in line
    assert line.count("\n") == 1 and not (tmp_path / "out").exists()


@pytest.mark.synth
def test_netlist_and_its_manifest(tmp_path):
    """The same top and ports as the Verilog, gates inside, and the text that the manifest tells the hash of."""
    words = ["--mantissa", "2", "--rows", "2", "--group", "1,1", "--unit", "group", "--jobs", "1"]
    assert main(["netlist", *words, "--recipe", "generic", "--out", str(tmp_path)]) == 0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    text = (tmp_path / manifest["verilog"]).read_text()
    assert f"module {manifest['top']}(" in text and "always @(posedge clk)" in text and " * " not in text
    assert manifest["netlist"]["recipe"] == "generic"
    assert manifest["sha256"] == hashlib.sha256(text.encode()).hexdigest()
