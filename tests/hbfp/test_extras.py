"""Without a library of an extra: one line that says what to install, and status 2.

Covers: hbfp/loading.py, hbfp/__main__.py.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from hbfp import command
from hbfp.extras import missing, need
from tests.cases import sweep

ROOT = Path(__file__).parents[2]
#: Command, library that is missing, extra that brings it.
MISSING = [("gen", [], "amaranth", "hardware"), ("gen.fusesoc", [], "yaml", "soc"),
           ("cosim", [], "rich", "hardware"), ("cosim", [], "cocotb", "hardware"),
           ("cosim", ["matrix"], "amaranth", "hardware"), ("synth", [], "amaranth", "hardware"),
           ("synth", ["fpga"], "rich", "hardware"), ("flow", [], "cocotb", "hardware"),
           ("golden", ["schedule"], "rich", "study"), ("golden", ["train"], "torch", "train"),
           ("golden", ["sweep"], "joblib", "study"), ("golden", ["tune"], "optuna", "tune"),
           ("golden", ["layers", "--model", "digits"], "optuna", "tune"),
           ("golden", ["pods"], "torchvision", "networks"),
           ("golden", ["pods", "--network", "bert-base"], "torch", "train")]


def without(library, call, words, folder):
    """Run a program in a process in which a library is not there, in an empty folder."""
    program = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules[{library!r}] = None; {call}"
    return subprocess.run([sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("part, words, library, extra", sweep(4, MISSING))
def test_missing_library_in_one_line(tmp_path, part, words, library, extra):
    if library != "torch" and words[:1] in (["tune"], ["layers"]) and not importlib.util.find_spec("torch"):
        pytest.skip("PyTorch itself is missing")
    call = f"runpy.run_module({part!r}, run_name='__main__', alter_sys=True)"
    done = without(library, call, words, tmp_path)
    line = f"error: {library} is missing; install it with: pip install 'hbfp[{extra}]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"python -m {part}: {line}")


def test_missing_library_under_the_installed_name(tmp_path):
    call = "from hbfp.__main__ import main; sys.argv[0] = '/somewhere/bin/hbfp'; sys.exit(main())"
    done = without("amaranth", call, ["gen"], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (
        2, "", "hbfp gen: error: amaranth is missing; install it with: pip install 'hbfp[hardware]'\n")


def test_other_errors_say_what_they_say(tmp_path):
    """A module that no extra has is a defect, and its traceback shows where."""
    assert missing(ModuleNotFoundError("x", name="hbfp.nothing"), "python -m gen") is None
    assert missing(ModuleNotFoundError("x"), "python -m gen") is None
    assert missing(ImportError("x", name="rich"), "python -m gen") is None
    assert missing(KeyboardInterrupt(), "python -m gen") is None
    parser = command.Parser(prog="python -m gen")
    with pytest.raises(ModuleNotFoundError, match="^No module named 'nothing'$"):
        command.run(parser, lambda args: need("sys", "nothing"), [])
    done = without("hbfp.design", "runpy.run_module('gen', run_name='__main__', alter_sys=True)", [], tmp_path)
    assert done.returncode == 1 and "Traceback" in done.stderr
