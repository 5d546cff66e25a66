"""``python -m synth fetch``: says where library and timer lie, or why there is none."""

import pytest

from synth.__main__ import main
from synth.tools import library, opensta
from synth.tools.errors import SynthError
from tests.synth.tiny import LIBERTY


@pytest.fixture
def liberty(tmp_path, monkeypatch):
    """A library that is there already."""
    path = tmp_path / "cells.lib"
    path.write_text(LIBERTY)
    monkeypatch.setattr(library, "fetch", lambda: path)
    return path


def test_library_and_timer_are_told(liberty, monkeypatch, capsys):
    monkeypatch.setattr(library, "fetch_timer", lambda path: True)
    monkeypatch.setattr(opensta, "find", lambda: "/usr/bin/sta")
    assert main(["fetch"]) == 0
    name = library.load(liberty).name
    assert capsys.readouterr().out == f"{liberty}: {name}\n/usr/bin/sta: OpenSTA, for --timing\n"


def test_library_alone_where_no_timer_is_to_be_had(liberty, monkeypatch, capsys):
    monkeypatch.setattr(library, "fetch_timer", lambda path: False)
    assert main(["fetch"]) == 0
    assert capsys.readouterr().out == f"{liberty}: {library.load(liberty).name}\n"


def test_failure_is_one_line(monkeypatch, capsys):
    def fail():
        raise SynthError("apt-get found no package")
    monkeypatch.setattr(library, "fetch", fail)
    assert main(["fetch"]) == 1
    assert capsys.readouterr() == ("", "python -m synth fetch: error: apt-get found no package\n")


def test_another_library(monkeypatch, liberty, capsys):
    monkeypatch.setattr("synth.tools.nangate45.fetch", lambda: liberty)
    monkeypatch.setattr(library, "fetch", None)
    monkeypatch.setattr(library, "fetch_timer", lambda path: False)
    assert main(["fetch", "--library", "nangate45"]) == 0
    assert capsys.readouterr().out == f"{liberty}: tiny\n"
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["fetch", "--library", "sky130"])
    assert capsys.readouterr().err == ("python -m synth fetch: error: --library sky130: must be one of osu018, "
                                       "nangate45\n")


def test_no_further_words(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["fetch", "all"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "python -m synth fetch: error: unrecognized arguments: all\n"
