"""``python -m synth soc``: what is refused, what a clock that is not met says, and what is written.

Covers: synth/measure/soc.py, synth/command/placing.py.
"""

import json

import pytest

from hbfp.ecp5 import DEVICES
from synth.command import placing
from synth.command import soc as command
from synth.measure import soc, whole
from synth.tools import nextpnr, yosys

ABOUT = {"top": "system", "device": "LFE5U-45F", "package": "CABGA381", "speed": "6", "verilog": ["a.v", "b.v"],
         "data": ["rom.init"], "constraints": "pins.lpf"}


@pytest.fixture
def folder(tmp_path):
    """A system's folder, of files that nobody reads."""
    gateware = tmp_path / "soc" / soc.FOLDER
    gateware.mkdir(parents=True)
    for name in ("a.v", "b.v", "rom.init", "pins.lpf"):
        (gateware / name).write_text(name)
    (gateware / soc.FILE).write_text(json.dumps(ABOUT))
    return tmp_path / "soc"


def said(capsys, words):
    """Exit status, and what is said on the way."""
    with pytest.raises(SystemExit) as caught:
        raise SystemExit(command.main([str(word) for word in words]))
    return caught.value.code, capsys.readouterr()


def built(folder, sources, device, clock):
    """What stands for a design that was placed."""
    (folder / "design.bit").write_bytes(b"bits")
    path = [{"ns": 17.5, "what": "logic", "net": None, "cell": "vector.unit.sum"}]
    used = {"TRELLIS_COMB": (3, 43848)}
    return whole.Built(device, {"dsp": 1, "luts": 2}, {"ram": "block"}, {"LUT4": 3}, used, clock, 60.0, path,
                       folder / "design.bit", sources.chains, {"placed": 1.0})


def test_what_is_read(folder):
    device, sources = soc.read(folder)
    assert device == "LFE5U-45F" and sources.top == "system" and sources.constraints == b"pins.lpf"
    assert sources.files == {"a.v": b"a.v", "b.v": b"b.v", "rom.init": b"rom.init"}
    assert sources.read.startswith("read_verilog a.v\nread_verilog b.v\n")
    assert sources.luts == " -nowidelut"
    assert list(sources.options) == ["--package", "CABGA381", "--speed", "6", *nextpnr.PLACER, *nextpnr.ROUTER]


@pytest.mark.parametrize("spoil, why", [
    (lambda gateware: (gateware / "b.v").unlink(), "FileNotFoundError"),
    (lambda gateware: (gateware / soc.FILE).write_text("{"), "JSONDecodeError"),
    (lambda gateware: (gateware / soc.FILE).write_text("{}"), "KeyError"),
    (lambda gateware: (gateware / soc.FILE).write_text("[]"), "TypeError")])
def test_other_folders(capsys, folder, spoil, why):
    spoil(folder / soc.FOLDER)
    status, text = said(capsys, [folder])
    assert status == 2 and text.err.count("\n") == 1
    assert text.err.startswith(f"python -m synth soc: error: {folder}: is no folder that python -m gen soc has written "
                               f"for a board ({why}: ")


@pytest.mark.parametrize("words, line", [
    (["--dsps", "73"], "--dsps 73: must be 0 to 72"), (["--seed", "0"], "--seed 0: must be 1 to 1073741824"),
    (["--limit", "0"], "--limit 0: must be 1 to 1048576")])
def test_wrong_option(capsys, folder, words, line):
    status, text = said(capsys, [folder, *words])
    assert (status, text.err) == (2, f"python -m synth soc: error: {line}\n")


def test_another_fpga(capsys, folder):
    (folder / soc.FOLDER / soc.FILE).write_text(json.dumps(ABOUT | {"device": "LFE5U-12G"}))
    status, text = said(capsys, [folder])
    line = f"--folder {folder}: is for LFE5U-12G, which is none of {', '.join(DEVICES)}"
    assert (status, text.err) == (2, f"python -m synth soc: error: {line}\n")


def test_without_nextpnr(capsys, folder, monkeypatch):
    monkeypatch.setattr(nextpnr, "find", lambda family: None)
    status, text = said(capsys, [folder])
    assert status == 2 and text.err.endswith("nextpnr for ECP5 is needed: pip install 'hbfp[fpga]'\n")


@pytest.mark.parametrize("clock", [59.9, 60.0])
def test_the_clock_is_met_or_not(capsys, folder, tmp_path, monkeypatch, clock):
    def build(sources, device, budget, seed, limit, progress):
        assert (device, budget, seed, limit) == ("LFE5U-45F", 72, 3, 14400)
        return built(tmp_path, sources, device, clock)
    monkeypatch.setattr(nextpnr, "find", lambda family: ("nextpnr", "0.9"))
    monkeypatch.setattr(yosys, "find", lambda: ("yosys", "0.70"))
    monkeypatch.setattr(placing, "build", build)
    words = [str(folder), "--seed", "3", "--out", str(tmp_path / "out")]
    if clock < 60:
        status, text = said(capsys, words)
        assert status == 1 and not (tmp_path / "out").exists() and "vector.unit.sum" in text.out
        assert text.err == ("python -m synth soc: error: the clock of 60.0 MHz is not met: 59.9 MHz with --seed 3; try "
                            "another seed, or write the system with a lower --clock\n")
        return
    assert command.main(words) == 0
    assert (tmp_path / "out" / "system.bit").read_bytes() == b"bits"
    data = json.loads((tmp_path / "out" / "system.json").read_text())
    assert (data["clock"], data["asked"], data["seed"], data["device"]) == (60.0, 60.0, 3, "LFE5U-45F")
    shown = " ".join(capsys.readouterr().out.split())
    assert "LFE5U-45F: 60.0 MHz" in shown and "chains behind the pins" not in shown
