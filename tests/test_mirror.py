"""Every module has a test of its name in the same folder of ``tests/``, or is named by the test that covers it.

Such a test says so in a line of its docstring: ``Covers: golden/nn/conv.py, golden/nn/ops.py.`` It must import the
module or something that does, or name it in a string, as in what is run as a program or inside the simulator.
"""

import ast
import pathlib
import re
from functools import cache

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("hbfp", "golden", "rtl", "gen", "cosim", "synth", "flow")
MODULES = sorted(str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
                 if path.name != "__init__.py" and "spec" not in path.parts)


def named(text):
    """Modules that a test's docstring names as covered."""
    paragraphs = re.findall(r"^Covers: (.*?)\.$", ast.get_docstring(ast.parse(text)) or "", re.MULTILINE | re.DOTALL)
    return [name for paragraph in paragraphs for name in re.split(r",\s+", paragraph)]


TESTS = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path != pathlib.Path(__file__)]
COVERED = [(name, str(path.relative_to(ROOT))) for path in TESTS for name in named(path.read_text())]


def mirrored(module):
    """The test of the same name."""
    path = pathlib.Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.name}"


def files_of(name):
    """The file of a module with dots; of a package, what is run when it is imported and as a program.

    Packages are found below ``hbfp``, too, where an installation has them. A name that ends in a dot is the start of
    one that is completed when the code runs: any module of that folder.
    """
    package, _, rest = name.partition(".")
    name = rest if package == "hbfp" and rest.split(".")[0] in PACKAGES else name
    path = ROOT / name.replace(".", "/")
    if name.endswith("."):
        return set(path.glob("*.py"))
    return {file for file in (path.with_suffix(".py"), path / "__init__.py", path / "__main__.py") if file.is_file()}


def mentions(path):
    """Modules, with dots, that a file imports or names in a string; what is no module is among them."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def used(path):
    """Files of ours that a file imports or names."""
    names = {name for name in mentions(path) if re.fullmatch(rf"({'|'.join(PACKAGES)}|tests)(\.\w+)*\.?", name)}
    return set().union(*map(files_of, names))


def reached(path):
    """Files of ours that a file imports or names, and those that they do, and so on."""
    found, new = set(), {path}
    while new:
        found |= new
        new = set().union(*(used(file) for file in new)) - found
    return {str(file.relative_to(ROOT)) for file in found}


@pytest.mark.parametrize("module", MODULES)
def test_module_is_covered(module):
    assert mirrored(module).exists() or module in dict(COVERED)


def test_what_is_named_exists():
    assert {name for name, _ in COVERED} <= set(MODULES)


@pytest.mark.parametrize("test", sorted({test for _, test in COVERED}))
def test_what_is_named_is_used(test):
    assert {name for name, where in COVERED if where == test} <= reached(ROOT / test)


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
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert reached(tmp_path / "tests/test_a.py") == set(files) - {"rtl/lib/skew.py"}
