"""Every command that a page or a command's help shows is accepted, up to where its work would begin."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import synth.tools.library
from hbfp import command
from hbfp.program import Program
from hbfp.system import Accelerator
from tests.commands import COMMANDS, ROOT, documented, stand_in_tools
from tests.synth.tiny import LIBERTY

LINES = documented()
#: Names of files on the pages that a user has, or that another command on the same page has written.
LIBRARIES = ("cells.lib", "a.lib", "b.lib", "build/lib/osu018_stdcells.lib", "NangateOpenCellLibrary.lib",
             "NangateOpenCellLibrary_typical.lib")
PROGRAMS = ("network.hbfp", "net.program")
NETWORK = """\
import torch


def model():
    return torch.nn.Linear(16, 8)


def inputs():
    return (torch.ones(4, 16),)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with all that the pages name, and the tools that not every machine has."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "build/lib").mkdir(parents=True)
    for n, name in enumerate(LIBRARIES):
        Path(name).write_text(LIBERTY.replace("tiny", f"tiny{n}", 1))
    Path("design.toml").write_text("rows = 4\nblock = [1, 4]\n")
    Path("mine.py").write_text(NETWORK)
    Path("area.json").write_text(json.dumps({
        "system": Accelerator().as_dict(), "logic": 1e6, "bits": 1, "bit": 1.2, "library": None,
        "components": {"elements": {"area": 1e5}}}))
    for name in PROGRAMS:
        Program(accelerator=Accelerator(), limit=128, memory=(), instructions=(), tensors={}, layers=()).save(name)
    monkeypatch.setattr(synth.tools.library, "OSU018", tmp_path / "build/lib/osu018_stdcells.lib")
    stand_in_tools(monkeypatch)
    return tmp_path


def start_of(words):
    """The first words of a command of ours, None of another module."""
    return next((words[:count] for count in (2, 1) if words[:count] in COMMANDS), None)


def test_pages_are_read():
    """What stands in blocks, in backticks and in help, with comments and without."""
    shown = {words for _, words, _ in LINES}
    assert {("synth", "--mantissa", "8", "--side-lanes", "4"), ("synth",), ("cosim", "run", "mine.py", "--rows", "16",
            "--mantissa", "4", "--check", "layers"), ("synth", "--side-lanes", "4")} <= shown
    assert {start for _, words, _ in LINES if (start := start_of(words))} == {*COMMANDS}
    assert len(shown) > 150


@pytest.mark.parametrize("where, words, status", LINES, ids=[" ".join(words) for _, words, _ in LINES])
def test_documented_line_is_accepted(place, monkeypatch, capsys, where, words, status):
    start = start_of(words)
    if start is None or start == words and any(not action.option_strings for action in COMMANDS[start][1]._actions):
        assert find_spec(words[0]) or words == ("golden",)    # a module, or a name without what it needs
        return
    monkeypatch.setattr(command, "perform", lambda job: 0)
    try:
        ended = COMMANDS[start][0](list(words[1:]))
    except SystemExit as stop:
        ended = stop.code
    assert ended == status, (where, capsys.readouterr().err)
