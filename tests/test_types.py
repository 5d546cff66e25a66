"""Types: public functions have them, but those of rtl, and mypy finds no contradiction in the whole package."""

import ast
import pathlib
import subprocess
import sys

import pytest

from hbfp.checkout import PARTS

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: Folders whose public functions have types.
TYPED = ("hbfp", "golden", "gen", "synth", "runtime", "cosim")
FILES = sorted(path for part in TYPED for path in (ROOT / part).rglob("*.py"))


def untyped(tree):
    """Public functions and methods, constructors included, that lack the type of an argument or of the result.

    A kernel of Triton or Gluon has none: it is compiled for the types that it is called with.
    """
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef)
                           and not node.name.startswith("_"))]
    for function in (node for body in bodies for node in body if isinstance(node, ast.FunctionDef)):
        if function.name.startswith("_") and function.name not in ("__init__", "__call__"):
            continue
        if any(ast.unparse(each).partition("(")[0] in ("triton.jit", "gluon.jit") for each in function.decorator_list):
            continue
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        if function.returns is None or any(argument and argument.annotation is None
                                           and argument.arg not in ("self", "cls") for argument in every):
            yield function.name


def test_public_functions_are_typed():
    assert [f"{path.relative_to(ROOT)}: {name}" for path in FILES
            for name in untyped(ast.parse(path.read_text()))] == []


def test_what_is_untyped_is_seen():
    for text, seen in [("def f(a: int) -> int: ...", []), ("def f(a) -> int: ...", ["f"]),
                       ("def f(a: int): ...", ["f"]), ("def _f(a): ...", []),
                       ("class C:\n  def __init__(self, *a) -> None: ...", ["__init__"]),
                       ("class _C:\n  def f(self): ...", []), ("class C:\n  def f(self, *, b): ...", ["f"]),
                       ("@triton.jit(a=1)\ndef f(a): ...", []), ("@gluon.jit\ndef f(a): ...", []),
                       ("@jit\ndef f(a): ...", ["f"])]:
        assert list(untyped(ast.parse(text))) == seen, text


@pytest.fixture
def installed(tmp_path):
    """The packages as they are installed, where tools find them that run none of our code."""
    place = tmp_path / "hbfp"
    place.mkdir()
    for path in [*(ROOT / "hbfp").iterdir(), *(ROOT / part for part in PARTS)]:
        (place / path.name).symlink_to(path)
    return place


def mypy(installed, *arguments):
    return subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *arguments],
                          cwd=installed.parent, capture_output=True, text=True)


def test_types_agree(installed):
    found = mypy(installed, "-p", "hbfp")
    assert not found.returncode, found.stdout + found.stderr


def test_disagreement_is_seen(installed, tmp_path):
    wrong = tmp_path / "wrong.py"
    calls = {"hbfp.values": "flag('rows')", "hbfp.golden.noise": "mix(1)", "hbfp.gen.text": "rewritten('', ())",
             "hbfp.synth.tools.recipes": "script('area', 'a.v', 'a')", "hbfp.cosim.manifest": "port_bytes(9)",
             "hbfp.runtime.library": "compiler()"}
    wrong.write_text("".join(f"from {module} import {call.partition('(')[0]}\n\nX{number}: bytes = {call}\n"
                             for number, (module, call) in enumerate(calls.items())))
    found = mypy(installed, wrong)
    assert found.returncode == 1 and found.stdout.count("Incompatible types in assignment") == len(calls) == len(TYPED)
