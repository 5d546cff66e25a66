"""The cocotb bench passes a sound core, fails broken ones, and counts what ran.

Covers: cosim/bench/scoreboard.py, cosim/bench/stream.py, cosim/bench/core_bench.py, cosim/bench/units/core.py.
"""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cosim.bench.runner import _variables, run_bench
from cosim.emit import emit
from cosim.manifest import Manifest
from cosim.simulate.verilator import TOP, find_tool
from hbfp import manifest as described
from hbfp.options import design_from_values
from tests.cosim.standin import write_standin

pytestmark = pytest.mark.cosim


class SlowRunner:
    """A cocotb runner that builds nothing, as long as nobody else is at it in the same folder."""
    builds = []

    def build(self, hdl_toplevel, build_dir, **_):
        build_dir.mkdir()
        (build_dir / "object.o").write_text("large")
        (build_dir / hdl_toplevel).write_text("half a ")
        time.sleep(0.2)
        with open(build_dir / hdl_toplevel, "a") as program:
            program.write("program")
        self.builds.append(build_dir)

    def test(self, hdl_toplevel, build_dir, results_xml, **_):
        assert (build_dir / hdl_toplevel).read_text() == "half a program"
        assert [path.name for path in build_dir.iterdir()] == [hdl_toplevel]
        Path(results_xml).write_text("<testsuites><testsuite tests='1'><testcase name='one'/></testsuite></testsuites>")


def test_program_is_built_once_and_again_when_harmed(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr("cocotb_tools.runner.get_runner", lambda _: SlowRunner())
    monkeypatch.setattr("cosim.bench.runner.runtime_objects", lambda tool, vpi: [])
    monkeypatch.setattr(SlowRunner, "builds", [])
    manifest = Manifest.load(write_standin(tmp_path))
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: run_bench(manifest, "cosim.bench.units.array"), range(3)))
    assert [result.ran for result in results] == [1, 1, 1] and len({result.log for result in results}) == 3
    assert len(SlowRunner.builds) == 1
    folder = results[0].log.parent
    (folder / "sim" / TOP).write_text("")
    assert run_bench(manifest, "cosim.bench.units.array").ran == 1 and len(SlowRunner.builds) == 2
    assert capfd.readouterr().err == f"{folder}: sim/{TOP} is not as it was made; making it again\n"


def test_program_is_built_anew_for_another_environment(tmp_path, monkeypatch):
    """It loads cocotb's libraries from there: those of another Python, or that are gone, would not do."""
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr("cocotb_tools.runner.get_runner", lambda _: SlowRunner())
    monkeypatch.setattr("cosim.bench.runner.runtime_objects", lambda tool, vpi: [])
    monkeypatch.setattr(SlowRunner, "builds", [])
    manifest = Manifest.load(write_standin(tmp_path))
    for folder in ("one", "other", "one"):
        monkeypatch.setattr("cocotb_tools.config.libs_dir", tmp_path / folder)
        assert run_bench(manifest, "cosim.bench.units.array").ran == 1
    assert len(SlowRunner.builds) == 2


def test_python_on_path_is_not_asked(tmp_path, monkeypatch):
    """Verilator's makefile runs a script in Python: with the one that runs the bench, whatever stands on PATH."""
    for name in ("python", "python3"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    tool = find_tool()
    (tmp_path / "makefile").write_text(f"VERILATOR_ROOT = {tool.include.parent}\n"
                                       "include $(VERILATOR_ROOT)/include/verilated.mk\n"
                                       "gathered:\n\t$(VERILATOR_INCLUDER) a.cpp b.cpp\n")
    made = subprocess.run(["make", "-s", "-C", tmp_path, "gathered"], capture_output=True, text=True,
                          env=os.environ | _variables(tool, ["OPT_FAST=-O1"]))
    assert made.returncode == 0 and '#include "b.cpp"' in made.stdout, made.stderr


@pytest.mark.slow    # a core passes all of them below
def test_standin_passes(tmp_path):
    result = run_bench(Manifest.load(write_standin(tmp_path)))
    assert result.passed and result.ran == 16 and result.compared > 1000, (result.failures, result.missing)


def test_right_bits_pass(tmp_path):
    """Of what has a fault below."""
    result = run_bench(Manifest.load(write_standin(tmp_path)), tests="products_equal_golden/idle=0/stall=0")
    assert result.ran == 1 and not result.failed and result.compared > 100, result.failures


def test_wrong_bits_fail(tmp_path):
    result = run_bench(Manifest.load(write_standin(tmp_path, fault=2)), tests="products_equal_golden/idle=0/stall=0")
    assert result.ran == 1 and result.failed == 1 and not result.passed
    assert "elements differ, the first in row" in result.failures[0][1] and result.wrong == 1


def test_standstill_fails_and_names_the_streams(tmp_path):
    result = run_bench(Manifest.load(write_standin(tmp_path, fault=5)), tests="products_equal_golden/idle=0/stall=0")
    assert result.ran == 1 and result.failed == 1 and result.wrong == 0 and not result.passed
    assert result.failures[0][1].endswith("no transfer for 20000 cycles: i_cmd is not taken, i_x is not taken, "
                                          "i_w is not taken, o is not offered")


@pytest.mark.parametrize("values", [
    {"rows": 1, "cols": 1, "block": (1, 1), "mantissa": 2, "exponent": 5, "depth": 1},
    pytest.param({"arithmetic": "int", "mantissa": 7, "rows": 4, "cols": 3, "growth": 0}, marks=pytest.mark.slow)],
    ids=["smallest", "one pass"])
def test_good_cores_with_few_corners_pass(values):
    """A core of one element and one row has few results and corners; one without growth takes one pass a command."""
    result = run_bench(emit(design_from_values(values)))
    assert result.passed and result.ran == 16 + 10 * (values.get("arithmetic") != "int"), (
        result.failures, result.missing, result.log)


def test_nothing_ran_is_no_pass(tmp_path):
    result = run_bench(Manifest.load(write_standin(tmp_path)), tests="no_such_test")
    assert not result.passed and result.ran == 0


@pytest.mark.parametrize("values", [
    pytest.param({"preset": "tiny"}, marks=pytest.mark.slow),
    {"rows": 4, "block": (1, 8), "accumulate": "aligned", "rounding": "stochastic", "exponent": 6, "depth": 32,
     "growth": 5},
    pytest.param({"rows": 4, "block": (1, 16), "share": 4, "depth": 32}, marks=pytest.mark.slow)],
    ids=["tiny", "aligned", "share"])
def test_core_keeps_its_contract(values):
    from hbfp.presets import PRESETS

    values = dict(values)
    design = design_from_values(PRESETS[values.pop("preset")] if "preset" in values else values)
    result = run_bench(emit(design))
    assert result.passed, (result.failures, result.missing, result.log)
    assert result.ran == 26


def test_registers_are_random_before_reset(tmp_path):
    """A register without reset starts at another value under another seed, and at the same under the same."""
    (tmp_path / "before_reset.v").write_text(Path(__file__).with_name("before_reset.v").read_text())
    ports = {"value": described.Port("out", 32)}
    design = design_from_values({"rows": 4, "block": (1, 4)})
    manifest = Manifest(tmp_path / "manifest.json", described.Manifest(top="before_reset", verilog="before_reset.v",
                                                                       ports=ports, design=design))
    manifest.path.write_text(manifest.data.text())
    values = [run_bench(manifest, "tests.cosim.bench.before_reset", seed=seed).corners["value"] for seed in (1, 2, 1)]
    assert values[0] == values[2] and len({0, *values}) == 3
