"""Every module is loaded once, whatever its name; what is installed lies below hbfp.

Covers: hbfp/__main__.py, hbfp/checkout.py.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import hbfp
from hbfp import checkout
from hbfp.__main__ import COMMANDS, main
from hbfp.checkout import PARTS
from hbfp.golden.fast import compiled

ROOT = Path(__file__).parents[1]
SEEN = f"""
import json, sys
ROOT = {str(ROOT)!r}
from collections import Counter
files = Counter(file for module in {{id(m): m for m in sys.modules.values()}}.values()
                if (file := getattr(module, "__file__", None)) and file.startswith(ROOT))
print(json.dumps([len(files), [file for file, count in files.items() if count > 1]]))
"""


@pytest.mark.parametrize("names", [
    ("golden.bfp", "hbfp.golden.bfp"), ("hbfp.golden.bfp", "golden.bfp"),
    ("gen.__main__", "cosim.work.device", "hbfp.gen.emit", "hbfp.rtl.core.core", "rtl.fp32.units", "golden.core.core",
     "synth.__main__")])
def test_no_module_is_loaded_twice(names):
    code = "".join(f"import {name}\n" for name in names) + SEEN
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    count, twice = json.loads(done.stdout)
    assert count > 3 and twice == []


def test_a_module_takes_no_function_of_its_packages_name():
    """Packages with a function that is called as the module that it is in, such as ``golden.nn.report``."""
    pytest.importorskip("torch")
    code = ("import hbfp.golden.nn, golden.nn, golden.nn.optimiser, golden.nn.quantise\n"
            "from golden.nn.report import report\n"
            "print([name for name in ('optimiser', 'quantise', 'report', 'sparsify')\n"
            "       if not callable(getattr(golden.nn, name))], report is golden.nn.report)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"


def test_every_package_is_installed():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    here = {".".join(("hbfp", *path.parent.relative_to(ROOT).parts)) for part in PARTS
            for path in (ROOT / part).rglob("__init__.py")}
    own = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "hbfp").rglob("__init__.py")}
    assert set(tool["packages"]) == here | own | {"hbfp.data"}
    assert tool["package-dir"] == {"hbfp": "hbfp", "hbfp.data": "docs/figures"} | {
        f"hbfp.{part}": part for part in PARTS}


@pytest.mark.parametrize("part", PARTS)
def test_parts_name_each_other_as_installed(part):
    for path in (ROOT / part).rglob("*.py"):
        assert not re.search(rf"^\s*from ({'|'.join(PARTS)})\b", path.read_text(), re.MULTILINE), path


def pages():
    """The README and the pages, with their blocks of Python."""
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL):
            yield path, block


def test_pages_import_what_is_there_when_installed():
    """No short name of a checkout: the first line that a user copies works."""
    lines = [line for _, block in pages() for line in block.splitlines() if re.match(r"\s*(import|from) hbfp\b", line)]
    assert len(lines) > 5
    for path, block in pages():
        assert not re.search(rf"^\s*(import|from) ({'|'.join(PARTS)})\b", block, re.MULTILINE), path


def test_version_is_that_of_the_package(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hbfp.__version__ == project["version"]
    for core in ("hbfp.core", "gen/generator.core"):    # FuseSoC asks each file for its own
        assert re.search(r"^name: .*:(.*)$", (ROOT / core).read_text(), re.MULTILINE)[1] == project["version"]
    monkeypatch.setattr(checkout, "_BESIDE", ROOT / "docs")    # installed: nothing lies beside it
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{name} 7")
    assert hbfp.__version__ == "hbfp 7"
    with pytest.raises(AttributeError, match="^module 'hbfp' has no attribute 'nothing'$"):
        hbfp.nothing    # noqa: B018


# --- The command ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_command_has_help_in_its_own_words(command, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/hbfp"])
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    out = capsys.readouterr().out
    part, words = COMMANDS[command]
    assert not ended.value.code and out.startswith(f"usage: {' '.join(['hbfp', part, *words])} ")
    assert "python -m" not in out


def test_command_that_is_none(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bake"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == ("hbfp: error: command bake: must be one of gen, cosim, synth, flow, golden, "
                                       "train\n")


def test_no_command(capsys):
    assert main([]) == 2 and main(["-h"]) == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err and captured.out.startswith("usage: hbfp gen|")


def test_version(capsys):
    assert main(["--version"]) == 0 and capsys.readouterr().out == f"hbfp {hbfp.__version__}\n"


@pytest.mark.slow
def test_wheel_runs(tmp_path):
    """Alone, from another folder, and it brings nothing to the top but hbfp."""
    sources = tmp_path / "sources"    # setuptools leaves what it copies beside them
    sources.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "hbfp", "docs/figures", *PARTS):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, sources / name)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, sources],
                   check=True, capture_output=True)
    wheel, = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    assert {path.name for path in (tmp_path / "site").iterdir() if path.suffix != ".dist-info"} == {"hbfp"}
    code, = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    code += "\nimport hbfp\nfrom hbfp.golden import matmul\nfrom hbfp.golden.fast import compiled, kernels\n" \
            "from hbfp.golden.perf import prices    # figures come with it\n" \
            "print(matmul.__file__, kernels.library() is not None, compiled.levels() == [compiled.NATIVE])"
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "HBFP_BUILD": str(tmp_path / "build")}
    if compiled.compiler() and compiled.levels() != [compiled.NATIVE]:    # what was shipped is what runs
        assert re.fullmatch(r"hbfp-.*-py3-none-manylinux_2_\d\d_x86_64\.whl", wheel.name)
        env["CXX"] = "false"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    path, kernels, native = done.stdout.split()
    assert Path(path) == tmp_path / "site" / "hbfp" / "golden" / "matmul.py"
    assert (kernels == "True" and done.stderr == "") or native == "True" or not compiled.compiler()
    words = ["gen", "--rows", "2", "--block", "1,2", "--out", "out"]
    done = subprocess.run([sys.executable, "-m", "hbfp", *words], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert not done.returncode and (tmp_path / "out" / "manifest.json").exists(), done.stderr
