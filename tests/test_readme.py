"""The README's Verilog and its Python are made as they stand there; its other commands: test_documented_commands.py."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SHELL = [line.split("#")[0].strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
         for line in block.splitlines()]
GENERATED = [line for line in SHELL if line.startswith("python -m gen")]


def run(words):
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)


def test_readme_names_both_commands():
    assert "make" in SHELL and "make test" in SHELL
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^all:", makefile, re.MULTILINE) and re.search(r"^test:", makefile, re.MULTILINE)


@pytest.mark.parametrize("line", GENERATED)
def test_generation_runs(line, tmp_path):
    done = run([*shlex.split(line)[1:], "--out", str(tmp_path)])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "manifest.json").exists()


def test_python_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = run(["-c", code])
    assert done.returncode == 0, done.stderr


def test_options_are_listed_on_one_page():
    """The README has examples, and no table of its own beside docs/options.md."""
    assert "(docs/options.md)" in README and not re.search(r"^\| `--", README, re.MULTILINE)
    known = set(re.findall(r"^\| `(--.*?)`", (ROOT / "docs/options.md").read_text(), re.MULTILINE))
    for line in GENERATED:
        assert set(re.findall(r"--[a-z-]+", line)) <= known | {"--unit"}, line


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_area_table_divides_by_the_smallest_fp32_core():
    """Bold is that core over the row's; the text names its area."""
    rows = re.findall(r"^\| HBFP.*? \| ([\d.]+) \| \*\*([\d.]+)\*\* \|", README, re.MULTILINE)
    smallest = int(re.search(r"smallest one found \(groups of \d+ x \d+: (\d+)\)", README)[1])
    assert len(rows) == 10 and smallest == 3919
    assert all(abs(float(ratio) * float(core) / smallest - 1) < 1e-3 for core, ratio in rows)
