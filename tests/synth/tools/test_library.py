"""Cell libraries, and what is said of bad ones."""

import subprocess
from pathlib import Path

import pytest

from hbfp.values import OptionError
from synth.tools import library
from synth.tools.errors import SynthError

CELLS = """\
library (tiny) {
  cell (INVX1) { area : 16; pin(A) { direction : input; } }
  cell (NAND2X1) { cell_footprint : nand2;
    area : 24.5; }
  cell ("NAND2X2") { area : 40 ; }
  cell (DFF) { area : 96; ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; } }
}
"""
SCAN = 'cell (SDFF) { area : 9; ff (Q, QN) { next_state : "(!SE D) + (SE SI)"; } }'


def test_smallest_nand_is_the_unit(tmp_path):
    (tmp_path / "a.lib").write_text(CELLS)
    found = library.load(tmp_path / "a.lib")
    assert (found.name, found.nand2) == ("tiny", 24.5)


def test_flip_flops_are_those_with_their_group(tmp_path):
    """Whatever they are called: not what is named alike, nor a latch."""
    more = ('cell ("REG1") { area : 9; ff_bank (Q, QN, 2) { next_state : "D"; } }\n  cell (DFFBUF) { area : 2; }\n'
            '  cell (LAT) { area : 5; latch (Q, QN) { enable : "G"; } }\n')
    (tmp_path / "a.lib").write_text(CELLS.replace("  cell (DFF)", f"  {more}  cell ( FD1 )"))
    assert library.load(tmp_path / "a.lib").flipflops == {"REG1", "FD1"}


def test_wrong_file(tmp_path):
    with pytest.raises(OptionError, match=r"^--liberty no.lib: cannot be read \(No such file or directory\)$"):
        library.load("no.lib")
    bad = tmp_path / "bad.lib"
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError) as caught:
        library.load(bad)
    assert str(caught.value) == f"--liberty {bad}: cannot be read (not text)"


@pytest.mark.parametrize("text, complaint", [
    ("module m; endmodule", "is not a Liberty file with cells"),
    ("library (a) { }", "is not a Liberty file with cells"),
    ("library (a) { cell (INV) { area : 1; } }", "has no two-input NAND to count areas in"),
    ("library (a) { cell (NAND2) { area : 1; } }", "has no flip-flop (ff) to map registers to"),
    ("library (a) { cell (NAND2) { area : 1; } " + SCAN + " }", "has no flip-flop (ff) to map registers to"),
])
def test_wrong_content(tmp_path, text, complaint):
    path = tmp_path / "a.lib"
    path.write_text(text)
    with pytest.raises(OptionError) as caught:
        library.load(path)
    assert str(caught.value) == f"--liberty {path}: {complaint}"


def test_fetched_library_that_changed(monkeypatch, tmp_path):
    """Figures of another library under the name of the fetched one would be wrong in silence."""
    def download(package, folder):
        inside = Path(folder) / library._INSIDE
        inside.parent.mkdir(parents=True)
        inside.write_text(CELLS)

    path = tmp_path / "lib" / "osu018_stdcells.lib"
    monkeypatch.setattr(library, "OSU018", path)
    monkeypatch.setattr(library, "_download", download)
    monkeypatch.setattr(library.shutil, "which", lambda tool: tool)
    assert library.default() is None
    assert library.fetch(path) == path and library.default().nand2 == 24.5
    for text in (CELLS.replace("24.5", "25"), CELLS[:40], ""):
        path.write_text(text)
        with pytest.raises(SynthError) as caught:
            library.default()
        assert str(caught.value) == f"{path}: is not what was fetched; fetch it again: python -m synth fetch"
    library.fetch(path)
    assert library.default().nand2 == 24.5


def test_fetch_needs_debian(monkeypatch):
    monkeypatch.setattr(library.shutil, "which", lambda tool: None)
    with pytest.raises(SynthError) as caught:
        library.fetch()
    assert str(caught.value) == ("OSU018 comes as the Debian package qflow-tech-osu018, and there is no apt-get here: "
                                 "give a library with --liberty FILE")


def test_fetch_says_why_it_failed(monkeypatch):
    failed = subprocess.CompletedProcess([], 100, "", "W: one\nE: Unable to locate package qflow-tech-osu018\n")
    monkeypatch.setattr(library.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(library.subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(SynthError) as caught:
        library.fetch()
    assert str(caught.value) == ("apt-get download qflow-tech-osu018 failed: "
                                 "E: Unable to locate package qflow-tech-osu018")


def test_libraries_that_are_present(monkeypatch, tmp_path):
    """OSU018 first, then what a user put beside it."""
    monkeypatch.setattr(library, "OSU018", tmp_path / "osu018_stdcells.lib")
    assert library.present() == []
    for name in ("a.lib", "osu018_stdcells.lib", "notes.txt"):
        (tmp_path / name).write_text(CELLS)
    assert [path.name for path in library.present()] == ["osu018_stdcells.lib", "a.lib"]
