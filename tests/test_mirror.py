"""Every module has a test of its name in the same folder of ``tests/``, or is named by the test that covers it.

Such a test says so in a line of its docstring: ``Covers: golden/nn/conv.py, golden/nn/ops.py.`` It must import the
module or something that does, or name it in a string, as in what is run as a program or inside the simulator.
"""

import pathlib
import re

from tests import reach
from tests.reach import PACKAGES, reached

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODULES = sorted(str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
                 if path.name != "__init__.py" and "spec" not in path.parts)


def named(text):
    """Modules that a test's docstring names as covered."""
    docstring = re.match(r'(?:#[^\n]*\n)*"""(.*?)"""', text, re.DOTALL)    # to parse all tests takes seconds
    paragraphs = re.findall(r"^Covers: (.*?)\.$", docstring[1] if docstring else "", re.MULTILINE | re.DOTALL)
    return [name for paragraph in paragraphs for name in re.split(r",\s+", paragraph)]


TESTS = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path != pathlib.Path(__file__)]
COVERED = [(name, str(path.relative_to(ROOT))) for path in TESTS for name in named(path.read_text())]


def mirrored(module):
    """The test of the same name."""
    path = pathlib.Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.name}"


def test_every_module_is_covered():
    covered = dict(COVERED)
    assert [module for module in MODULES if not mirrored(module).exists() and module not in covered] == []


def test_what_is_named_exists():
    assert {name for name, _ in COVERED} <= set(MODULES)


def test_what_is_named_is_used():
    used = {test: reached(ROOT / test) for _, test in COVERED}
    assert [f"{test} names {name}" for name, test in COVERED if name not in used[test]] == []


def test_names_are_read():
    assert named('"""One.\n\nCovers: a/b.py,\nc.py.\nCovers: d.py.\n"""') == ["a/b.py", "c.py", "d.py"]
    assert named('"""One. Covers: a.py."""') == [] and named("x = 1") == []


def test_what_is_used_is_seen(tmp_path, monkeypatch):
    """By imports of every form, and as a program; not what is only alike."""
    files = {"gen/__main__.py": "from .units import one\n", "gen/units.py": "", "rtl/core.py": "import rtl.lib.cell\n",
             "rtl/lib/cell.py": "", "rtl/lib/skew.py": "", "tests/help.py": "RUN = ['-m', 'gen']\n",
             "cosim/units/a.py": "import hbfp.files", "hbfp/files.py": "",
             "tests/test_a.py": "from tests.help import RUN\nfrom rtl import core\nTEXT = 'rtl.lib.skewed'\n"
             "UNIT = f'hbfp.cosim.units.{RUN}'\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(reach, "ROOT", tmp_path)
    steps = reached(tmp_path / "tests/test_a.py")
    assert set(steps) == set(files) - {"rtl/lib/skew.py"}
    assert [steps[name] for name in ("tests/test_a.py", "rtl/core.py", "gen/__main__.py", "gen/units.py")
            ] == [0, 1, 2, 3]
