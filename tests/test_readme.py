"""The README's Verilog and its Python are made as they stand there; its other commands: test_documented_commands.py."""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SHELL = [line.split("#")[0].strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
         for line in block.splitlines()]
GENERATED = [line for line in SHELL if line.startswith("python -m gen")]


def run(words):
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)


def test_readme_names_commands_of_the_makefile():
    assert {"make", "make train", "make test"} <= set(SHELL)
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in ("all", "train", "test"))


def test_make_train_is_the_first_training_shown():
    """The README's line, with places for what it writes."""
    line = next(line for line in SHELL if line.startswith("python -m cosim train"))
    command = re.search(r"\$\(BIN\)/(python -m cosim train .*?[^\\])\n", (ROOT / "Makefile").read_text(), re.DOTALL)[1]
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:words.index("--curve")] == shlex.split(line)[:-2]


@pytest.mark.parametrize("line", [pytest.param(line, marks=[pytest.mark.slow] * (number > 1))
                                  for number, line in enumerate(GENERATED)])
def test_generation_runs(line, tmp_path):
    done = run([*shlex.split(line)[1:], "--out", str(tmp_path)])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "manifest.json").exists()


def excerpt(text):
    """Of a file with one module: its heading, and behind its declarations what computes; at most 20 lines."""
    lines = text.splitlines()
    top = next(n for n, line in enumerate(lines) if line.startswith("module "))
    first = max(n for n, line in enumerate(lines[:top]) if not line.startswith("//")) + 1
    end = next(n for n in range(top, len(lines)) if lines[n].endswith(";"))
    works = next(n for n in range(top, len(lines)) if re.match(r"  (assign|always)\b", lines[n]))
    last = min(works + 17 + first - end, lines.index("endmodule", works))
    rest = "endmodule" if lines[last] == "endmodule" else "  // ..."
    return "\n".join([*lines[first:end + 1], "  // ...", *lines[works:last], rest]) + "\n"


def emitted(folder):
    """The README's lines of Verilog, as its command emits them."""
    command, = re.findall(r"`python -m (gen --unit group .*?)`", README)
    done = run([*shlex.split(f"-m {command}"), "--out", str(folder)])
    assert done.returncode == 0, done.stderr
    path, = folder.glob("*.v")
    return excerpt(path.read_text())


def test_verilog_is_what_is_emitted(tmp_path):
    """Written anew by: python -m tests.test_readme."""
    shown, = re.findall(r"```verilog\n(.*?)```", README, re.DOTALL)
    assert shown == emitted(tmp_path) and 15 < shown.count("\n") <= 20


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
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_area_table_divides_by_the_smallest_fp32_core():
    """Bold is that core over the row's; the text names its area."""
    rows = re.findall(r"^\| HBFP.*? \| ([\d.]+) \| \*\*([\d.]+)\*\* \|", README, re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", README)
    smallest = int(re.search(r"smallest one found \(groups of \d+ x \d+: (\d+)\)", text)[1])
    assert len(rows) == 10 and smallest == 3919
    assert all(abs(float(ratio) * float(core) / smallest - 1) < 1e-3 for core, ratio in rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        lines = emitted(Path(folder))
    (ROOT / "README.md").write_text(re.sub(r"(```verilog\n).*?(```)", lambda match: match[1] + lines + match[2], README,
                                           flags=re.DOTALL))
