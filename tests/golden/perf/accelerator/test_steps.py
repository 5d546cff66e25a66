"""The compiled stepper is kept under a key that follows from every file that it is made of."""

import ast
import enum
import importlib
import inspect
import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import njit

from golden.perf.accelerator import steps
from golden.perf.accelerator.record import part

FOLDER = Path(steps.__file__).parent
COMPILED = [path for path in sorted(FOLDER.glob("*.py")) if re.search("@(njit|part)", path.read_text())]


def imported(path):
    """Names that a module takes from elsewhere, and what they are there."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("hbfp", "spec")):
            module = importlib.import_module("." * node.level + node.module, "golden.perf.accelerator")
            yield from ((module, getattr(module, alias.name)) for alias in node.names)


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.name)
def test_what_is_compiled_is_in_the_key(path):
    """Enumerations and constants become part of the code; classes and functions are called before it."""
    assert path in steps.sources()
    for module, value in imported(path):
        plain = inspect.isclass(value) and not issubclass(value, enum.Enum)
        assert plain or inspect.isfunction(value) or inspect.ismodule(value) or Path(module.__file__) in steps.sources()


def test_another_file_is_another_key(tmp_path, monkeypatch):
    copies = []
    for number, path in enumerate(steps.sources()):
        copies.append(tmp_path / f"{number}.py")
        copies[-1].write_bytes(path.read_bytes())
    monkeypatch.setattr(steps, "sources", lambda: copies)
    seen = {steps.key()}
    for copy in copies:
        copy.write_bytes(copy.read_bytes() + b"\n")
        seen.add(steps.key())
    assert len(seen) == len(copies) + 1 > len(COMPILED)


def test_one_process_compiles_while_others_wait(monkeypatch):
    """Where no folder can be written, each by itself."""
    held, compiled = [], []

    @contextmanager
    def lock(path):
        held.append(path)
        yield
        held.pop()

    def refused(path):
        raise PermissionError(path)

    monkeypatch.setattr(steps, "_STEPPER", SimpleNamespace(compile=lambda types: compiled.append((types, len(held)))))
    for each in (lock, refused):
        monkeypatch.setattr(steps.files, "lock", each)
        steps._compile("types")
    assert compiled == [("types", 1), ("types", 0)]


def test_a_part_is_called_by_what_is_compiled_alone():
    """It has no way in from Python, where the call would end the process."""
    def double(x):
        return 2 * x

    found = part(double)
    assert njit(lambda x: found(x))(3) == 6
    with pytest.raises(TypeError, match=r"^double is a part of the compiled stepper: Python cannot call it$"):
        found(3)
