"""OpenSTA is given what its script reads, and what it says is read."""

import sys
from types import SimpleNamespace

import pytest

from synth.measure import timing
from synth.measure.partition import Unit
from synth.tools import opensta
from synth.tools.errors import SynthError

#: Opens the files that the script names, as OpenSTA would, and prints what the netlist says.
STA = """#!{python}
import re, sys
if "-version" in sys.argv:
    print("{version}")
else:
    texts = [open(name).read() for name in re.findall(r"read_\\w+ (\\S+)", open("run.tcl").read())]
    print("cells" in texts[0] and texts[1])
"""


@pytest.fixture
def sta(tmp_path, monkeypatch):
    """Writes a timer of a version, and finds it."""
    def write(version):
        program = tmp_path / "sta"
        program.write_text(STA.format(python=sys.executable, version=version))
        program.chmod(0o755)
        opensta.version.cache_clear()

    write("2.0")
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(opensta.shutil, "which", lambda command: str(tmp_path / "sta"))
    yield write
    opensta.version.cache_clear()


@pytest.fixture
def period(tmp_path, monkeypatch):
    """The period of a unit whose netlist is given."""
    def run(text):
        (tmp_path / "mapped.v").write_text(text)
        unit = Unit("top", "group", 1, "")
        return timing.period(unit, {}, "area", SimpleNamespace(path=tmp_path / "cells.lib", sha256="0"))

    (tmp_path / "cells.lib").write_text("cells")
    monkeypatch.setattr(timing, "synthesise", lambda *_: tmp_path)
    return run


def test_period_is_what_the_slack_leaves(sta, period):
    assert period("worst slack 9990.50") == 9.5


def test_another_version_is_asked_again(sta, period, monkeypatch):
    asked = []
    slack = opensta.worst_slack
    monkeypatch.setattr(opensta, "worst_slack", lambda *args: asked.append(args) or slack(*args))
    for version, count in (("2.0", 1), ("2.0", 1), ("2.1", 2)):
        sta(version)
        assert period("worst slack 9990.50") == 9.5 and len(asked) == count


def test_failure_is_one_line(sta, period):
    with pytest.raises(SynthError, match="^OpenSTA failed on top: Error: no such pin$"):
        period("reading\nError: no such pin\n")
    with pytest.raises(SynthError, match="^OpenSTA failed on top: no slack reported$"):
        period("nothing")
