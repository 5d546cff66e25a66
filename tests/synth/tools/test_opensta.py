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
    print("cells" in texts[0] and "access" in texts[1] and texts[2])
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
        cells = SimpleNamespace(name="cells", path=tmp_path / "cells.lib", sha256="0")
        return timing.longest_path(unit, {}, "area", cells)

    (tmp_path / "cells.lib").write_text("cells")
    monkeypatch.setattr(timing, "synthesise", lambda *_: tmp_path)
    return run


REPORT = """\
         0.00    0.00   clock network delay (ideal)
         0.31    0.31 ^ queue/_12_/Q (DFFPOSX1)
    3                   queue/credits (net)
         0.40    0.71 v add/one/_7_/Y (NAND2X1)
    1                   add/one/_3_ (net)
         1.10    1.81 ^ add/one/_8_/Y (INVX1)
         0.00    1.81 ^ row/_9_/D (DFFPOSX1)
                 1.81   data arrival time
                 9990.50   slack (MET)
register row/sum[3]
"""


def test_path_is_what_the_report_says(sta, period):
    found = period(REPORT)
    assert found.period == 9.5
    assert found.places == [("queue", 0.31), ("add/one", 1.81), ("row", 1.81)]
    assert str(found) == "queue/credits to row/sum[3] (through queue 0.31, add/one 1.81, row 1.81)"


def test_path_to_a_port_ends_there(sta, period):
    found = period("     0.10    0.10 ^ _1_/Q (DFFPOSX1)\n    1      o (net)\n     0.00    0.10 ^ o (out)\n"
                   "   9999.90   slack (MET)\n")
    assert (found.start, found.end, str(found)) == ("o", "o", "o to o")


def test_another_version_is_asked_again(sta, period, monkeypatch):
    asked = []
    ask = opensta.longest_path
    monkeypatch.setattr(opensta, "longest_path", lambda *args: asked.append(args) or ask(*args))
    for version, count in (("2.0", 1), ("2.0", 1), ("2.1", 2)):
        sta(version)
        assert period(REPORT).period == 9.5 and len(asked) == count


def test_failure_is_one_line(sta, period):
    with pytest.raises(SynthError, match="^OpenSTA failed on top: Error: no such pin$"):
        period("reading\nError: no such pin\n")
    with pytest.raises(SynthError, match="^OpenSTA failed on top: no slack reported$"):
        period("nothing")
