"""A YoWASP tool compiles itself in one process, and never in a file that others have mapped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hbfp import yowasp

ROOT = Path(__file__).resolve().parents[2]
#: Behaves as the runtime does: compiles into the cache, slowly and in place, and dies if what is there is half done.
TOOL = """#!{python}
import os, sys, time
from pathlib import Path
place = Path(os.environ["YOWASP_CACHE_DIR"]) / "yowasp_fake" / "fake.wasm" / "digest"
with open({log!r}, "a") as log:
    log.write("started\\n")
if not place.exists() or place.read_text() == "unusable":
    with open({log!r}, "a") as log:
        log.write("compiled\\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place, "w") as file:
        file.write("hal")
        file.flush()
        time.sleep(0.3)
        file.write("ves")
if place.read_text() != "halves":
    sys.exit(135)
print("fake 1.0")
"""
USER = """
import subprocess, sys
from hbfp import yowasp
yowasp.prepare(sys.argv[1])
sys.exit(subprocess.run([sys.argv[1]]).returncode)
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "yowasp-fake"
    path.write_text(TOOL.format(python=sys.executable, log=str(tmp_path / "log")))
    path.chmod(0o755)
    return path


def log(tool):
    return tool.with_name("log").read_text().split()


def at_once(tool, count=4):
    """Exit statuses of several processes that use the tool at the same time."""
    everyone = [subprocess.Popen([sys.executable, "-c", USER, str(tool)], cwd=ROOT, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for _ in range(count)]
    return [each.wait(timeout=60) for each in everyone]


def test_first_runs_at_once(tool):
    assert at_once(tool) == [0, 0, 0, 0]
    assert log(tool).count("compiled") == 1 and log(tool).count("started") == 5


@pytest.mark.parametrize("harm", ["", "unusable", "halv"])
def test_harmed_cache(tool, harm):
    assert at_once(tool, 1) == [0]
    place = tool.with_name("cache") / "yowasp_fake" / "fake.wasm" / "digest"
    before = place.stat().st_ino
    place.write_text(harm)
    assert at_once(tool, 3) == [0, 0, 0]
    assert log(tool).count("compiled") == 2
    assert place.stat().st_ino != before    # whoever has the old file mapped keeps it


def test_prepared_tool_is_not_run_again(tool, capsys):
    yowasp.prepare(tool)
    assert capsys.readouterr().err == "yowasp-fake: its first run here compiles it, which takes half a minute\n"
    yowasp.prepare(tool)
    assert log(tool) == ["started", "compiled"] and capsys.readouterr().err == ""


def test_other_tools_and_broken_ones_are_left_alone(tool, tmp_path):
    yowasp.prepare("/usr/bin/yosys")
    yowasp.prepare(tmp_path / "yowasp-missing")
    assert not (tmp_path / "log").exists()
    tool.write_text("#!/bin/sh\nexit 3\n")
    yowasp.prepare(tool)
    assert subprocess.run([tool]).returncode == 3


@pytest.mark.slow
@pytest.mark.synth
def test_real_first_run(tmp_path):
    """Two area reports at once on a machine where Yosys never ran: half a minute of one processor."""
    words = [sys.executable, "-m", "synth", "--rows", "2", "--block", "1,2", "--mantissa", "2", "--recipe", "generic",
             "--against", "", "--jobs", "2"]
    env = os.environ | {"YOWASP_CACHE_DIR": str(tmp_path / "yowasp"), "HBFP_BUILD": str(tmp_path / "build")}
    both = [subprocess.Popen([*words, "--out", str(tmp_path / name)], cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
            for name in "ab"]
    assert [each.wait(timeout=600) for each in both] == [0, 0]
    assert (tmp_path / "a" / "synth.json").read_bytes() == (tmp_path / "b" / "synth.json").read_bytes()
