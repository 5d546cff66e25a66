"""Order, seeds, limits and parts of the tests themselves."""

import ast
import math
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from tests import conftest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "tests").rglob("*.py"))


def pytest_run(*args):
    """A run of pytest with this checkout's settings: lines of its output, of its errors, and its exit status."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "tests.conftest", "-p",
                           "no:cacheprovider", *args], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines(), done.stderr.splitlines(), done.returncode


def unseeded(path):
    """Lines that make a generator of random numbers whose seed is the machine's."""
    text, names = path.read_text(), ("default_rng", "Random", "RandomState", "SystemRandom")
    for node in ast.walk(ast.parse(text)) if any(f"{name}()" in text for name in names) else ():
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in names:
                yield f"{path.name}:{node.lineno}"


def test_generators_have_seeds():
    assert [line for path in FILES for line in unseeded(path)] == []


def test_generators_without_a_seed_are_seen(tmp_path):
    path = tmp_path / "one.py"
    path.write_text("a = np.random.default_rng()\nb = Random()\nc = Random(1)\nd = default_rng(seed=2)\n")
    assert list(unseeded(path)) == ["one.py:1", "one.py:2"]


def test_every_test_starts_from_the_same_seed():
    assert random.random() == random.Random(0).random()
    assert np.random.random() == np.random.RandomState(0).random_sample()


def test_torch_is_seeded():
    torch = pytest.importorskip("torch")
    conftest.seed()
    drawn = torch.rand(1)
    conftest.seed()
    assert drawn == torch.rand(1) != torch.rand(1)


def test_properties_have_the_same_examples_and_no_deadline():
    assert hypothesis.settings().derandomize and hypothesis.settings().deadline is None


TESTS = """if True:
    import itertools, time, pytest
    def test_waits(): time.sleep(100)
    def test_hangs(): sum(itertools.repeat(0))
    def test_passes(): pass
    @pytest.mark.parametrize("n", range(3))
    def test_without_a_tool(n): pytest.skip("no tool")
    @pytest.mark.skipif(True, reason="no card")
    def test_without_a_card(): pass
"""


def test_tests_end_at_their_limit_and_skips_are_counted(tmp_path):
    """One that waits, and one that hangs in a library, where no exception reaches it: others go on."""
    (tmp_path / "test_one.py").write_text(TESTS)
    lines, _, status = pytest_run("-n", "1", "--timeout=1", "-o", "faulthandler_timeout=3", "--durations=1", tmp_path)
    assert status == 1 and "2 failed, 1 passed, 4 skipped in" in lines[-1]
    assert [line for line in lines if line.startswith("    ")][-2:] == ["    3 no tool", "    1 no card"]
    assert "worker 'gw0' crashed while running 'test_one.py::test_hangs'" in lines
    slowest = next(number for number, line in enumerate(lines) if " slowest files " in line)
    assert [line.split()[1:] for line in lines[slowest + 1:slowest + 3]] == [["all"], ["test_one.py"]]


def test_every_test_has_a_limit():
    """Of both kinds: the second is the last resort, and comes after the first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert 0 < settings["timeout"] < settings["faulthandler_timeout"] and settings["faulthandler_exit_on_timeout"]
    command = make("regression")[0]
    limits = [int(re.search(rf"{name}=(\d+)", command)[1]) for name in ("--timeout", "faulthandler_timeout")]
    assert settings["timeout"] < limits[0] < limits[1]


def make(*args):
    """What make would run, and its complaint."""
    done = subprocess.run(["make", "--dry-run", *args], cwd=ROOT, capture_output=True, text=True)
    return done.stdout, done.stderr


@pytest.mark.parametrize("part, wanted", [("1/1", "--splits 1 --group 1"), ("3/12", "--splits 12 --group 3")])
def test_regression_has_parts(part, wanted):
    assert f"{wanted} " in make("regression", f"PART={part}")[0]


@pytest.mark.parametrize("part", ["3", "/12", "3/", "1/2/3", "3 12"])
def test_wrong_part(part):
    out, error = make("regression", f"PART={part}")
    assert re.fullmatch(rf"Makefile:\d+: \*\*\* PART={re.escape(part)}: it must be a part of a number of parts, "
                        r"such as 3/12\.  Stop\.\n", error) and " pytest " not in out


def test_what_touches_changes_comes_first():
    """By steps of imports; a page and a kernel count through those that name them."""
    tests = {name: ROOT / "tests" / name for name in ("golden/fast/test_stack.py", "golden/test_matmul.py",
                                                      "hbfp/test_values.py")}
    assert set(conftest.distances(tests.values(), set()).values()) == {math.inf}
    steps = conftest.distances(tests.values(), {"golden/fast/stack.py", "tests/hbfp/test_values.py"})
    steps = {name: steps[path] for name, path in tests.items()}
    assert steps["hbfp/test_values.py"] == 0 < steps["golden/fast/test_stack.py"] == 1 < steps["golden/test_matmul.py"]
    for name, test in (("docs/options.md", "hbfp/test_options.py"),
                       ("golden/fast/across.h", "golden/fast/test_stack.py")):
        assert conftest.distances([ROOT / "tests" / test], {name})[ROOT / "tests" / test] < 3


def test_wrong_since(tmp_path):
    _, errors, status = pytest_run("--since=nothing", tmp_path)
    assert status == 4 and re.fullmatch("ERROR: --since=nothing: it must be a commit of this checkout: fatal: .+",
                                        "".join(errors))
