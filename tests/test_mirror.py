"""Every module has a test of its name in the same folder, or is named by the test that covers it.

Such a test says so in a line of its docstring: ``Covers: golden/nn/conv.py, golden/nn/ops.py.``
"""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("flow", "gen", "golden", "hbfp", "synth")
MODULES = sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
                 if path.name != "__init__.py" and "spec" not in path.parts)


def named(text):
    """Modules that a test's docstring names as covered."""
    lines = re.findall(r"^Covers: (.*)\.$", ast.get_docstring(ast.parse(text)) or "", re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


COVERED = {name: path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path != pathlib.Path(__file__)
           for name in named(path.read_text())}


def mirrored(module):
    """The test of the same name."""
    path = pathlib.Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.name}"


@pytest.mark.parametrize("module", MODULES)
def test_module_is_covered(module):
    assert mirrored(module).exists() or module in COVERED


def test_what_is_named_exists():
    assert set(COVERED) <= set(MODULES)


def test_names_are_read():
    assert named('"""One.\n\nCovers: a/b.py, c.py.\nCovers: d.py.\n"""') == ["a/b.py", "c.py", "d.py"]
    assert named('"""One. Covers: a.py."""') == [] and named("x = 1") == []
