"""The command line: what it compares, what it leaves behind, how it fails."""

import json

import numpy as np
import pytest

from cosim.__main__ import main
from cosim.bench.comparison import Comparison
from cosim.command import core
from cosim.command.core import _not_asked_for, bulk_design, smaller
from cosim.simulate.simulation import ProtocolError, Simulation
from cosim.work.products import Outcome
from hbfp.design import Design
from hbfp.format import HBFPFormat
from tests.cosim.standin import write_standin


@pytest.mark.parametrize("words, message", [
    (["--bench", "all,core"], "--bench all,core: must be one of core, workload, all"),
    (["--seed", "-1"], "--seed -1: must be 0 to 4294967295"),
    (["--seed", "4294967296"], "--seed 4294967296: must be 0 to 4294967295"),
    (["--seed", "x"], "--seed x: must be 0 to 4294967295"),
    (["--rows", "300"], "--rows 300: must be 1 to 256"),
    (["--json", "/no/such/folder/file"],
     "--json /no/such/folder/file: cannot be written (No such file or directory)"),
    (["--waves", "/no/such/folder/file"],
     "--waves /no/such/folder/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim: error: {message}\n"


def test_nothing_compared_is_a_failure():
    assert not Outcome("empty", Comparison()).passed
    assert Outcome("some", Comparison(compared=1)).passed
    assert not Outcome("wrong", Comparison(compared=9, mismatches=1)).passed


def test_coverage_is_apart_from_bits():
    """A corner that was not seen fails a bench under its own name, and so does a stream that broke a rule."""
    outcome = Outcome("some", Comparison(compared=9), corners={"one row": 2, "NaN result": 0},
                      unreachable={"bias": "reasons"})
    assert not outcome.passed and outcome.problems == ["corner not seen: NaN result"]
    data = outcome.as_dict()
    assert data["mismatches"] == 0 and data["failures"] == [] and not data["passed"]
    assert data["coverage"] == {"seen": {"one row": 2}, "missing": ["NaN result"], "unreachable": {"bias": "reasons"}}
    outcome = Outcome("some", Comparison(compared=9), corners={"one row": 2})
    assert outcome.passed
    with outcome.protocol():
        raise ProtocolError("o stands still")
    assert not outcome.passed and outcome.problems == ["o stands still"] and outcome.as_dict()["mismatches"] == 0
    assert Outcome("empty", Comparison()).problems == ["nothing was compared"]


def test_unreachable_corners_are_told_by_reason():
    outcome = Outcome("some", Comparison(compared=1), unreachable={"a": "it is so", "b": "not", "c": "not", "d": "not"})
    assert list(_not_asked_for(outcome)) == ["not asked for: a, because it is so",
                                             "not asked for: 3 corners, because not"]


def test_comparison_is_of_bits():
    result = Comparison()
    result.add("zeros", np.float32([0.0, 1.0]), np.float32([-0.0, 1.0]))
    assert (result.compared, result.mismatches) == (2, 1)
    assert result.first == ["zeros: 1 of 2 differ, first at (0,): 0 instead of 80000000"]
    nan = np.uint32([0x7FC00000]).view(np.float32)
    result.add("NaN", nan, nan)
    assert (result.compared, result.mismatches) == (3, 1)


def test_small_designs_keep_what_matters():
    design = Design(format=HBFPFormat(mantissa=6, block=(1, 16)), rows=32, accumulate="aligned")
    small = smaller(design)
    assert (small.rows, small.cols, small.segments, small.accumulate) == (8, 8, design.segments, "aligned")
    long = smaller(Design(format=HBFPFormat(block=(24, 24)), rows=12))
    assert (long.format.block, long.rows, long.block_tiles) == ((16, 16), 8, 2)
    assert smaller(small) == small


def test_smaller_is_valid_and_keeps_passes_and_segments():
    """Any design has a smaller one, however its block lies on the rows."""
    from cosim.work.random_designs import draw

    for seed in range(400):
        design = draw(seed, side=64, block=100, recoded=10**6)
        small = smaller(design)
        assert (small.block_tiles, small.segments <= design.segments) == (design.block_tiles, True), design


def test_large_recoded_arrays_run_plain():
    design = Design(multiplier="recoded")
    assert bulk_design(design).multiplier == "plain" and smaller(design).multiplier == "recoded"
    assert smaller(design).rows == 4
    tiny = Design(format=HBFPFormat(block=(1, 4)), rows=4, multiplier="recoded")
    assert bulk_design(tiny) == smaller(tiny) == tiny


@pytest.mark.cosim
def test_standstill_is_reported_with_its_stream(tmp_path, monkeypatch, capsys):
    from cosim.manifest import Manifest

    manifest = Manifest.load(write_standin(tmp_path / "design", fault=5))
    monkeypatch.setattr(core, "emit", lambda design: manifest)
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    words = ["--arithmetic", "int", "--rows", "4", "--cols", "3", "--bench", "workload", "--quiet",
             "--json", str(tmp_path / "out.json")]
    assert main(words) == 1
    outcome = json.loads((tmp_path / "out.json").read_text())["outcomes"][0]
    assert outcome["mismatches"] == 0 and not outcome["passed"]
    assert "no transfer for 20000 cycles on i_cmd, i_x, i_w, o (" in outcome["failures"][0]
    out = capsys.readouterr().out
    assert "FAILED" in out and f"workload: {outcome['failures'][0]}\n" in out


def test_network_longer_than_commands(capsys):
    words = ["--arithmetic", "int", "--rows", "4", "--growth", "5", "--bench", "workload"]
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert capsys.readouterr().err == ("python -m cosim: error: --growth 5: must be more for --bench workload: its "
                                       "products are 256 terms long, and a command holds 128\n")


@pytest.mark.cosim
@pytest.mark.parametrize("fault, status", [(0, 0), (2, 1)])
def test_workload_and_waves(fault, status, tmp_path, monkeypatch, capsys):
    from vcd.reader import TokenKind, tokenize

    from cosim.manifest import Manifest

    manifest = Manifest.load(write_standin(tmp_path / "design", fault=fault))
    monkeypatch.setattr(core, "emit", lambda design: manifest)
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    words = ["--arithmetic", "int", "--rows", "4", "--cols", "3", "--bench", "workload", "--quiet",
             "--json", str(tmp_path / "out.json")]
    if not fault:
        words += ["--waves", str(tmp_path / "waves.vcd")]
    assert main(words) == status
    data = json.loads((tmp_path / "out.json").read_text())
    outcome = data["outcomes"][0]
    assert data["passed"] == (status == 0) and outcome["compared"] > 360 * 256 and outcome["images"] == 360
    assert (outcome["mismatches"] > 0) == bool(fault)
    if fault:
        assert "layer 1 sums: " in capsys.readouterr().out
        return
    assert outcome["accuracy"] > 0.95
    for name in ("digits.png", "activity.png"):
        picture = next(tmp_path.glob(f"cosim/*/{name}")).read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    with open(tmp_path / "waves.vcd", "rb") as file:
        kinds = [token.kind for token in tokenize(file)]
    assert kinds.count(TokenKind.VAR) > 10 and kinds.count(TokenKind.CHANGE_TIME) > 100
    assert kinds.count(TokenKind.CHANGE_VECTOR) > 100


@pytest.mark.cosim
def test_cycles_meet_the_formula(tmp_path):
    from cosim.emit import emit
    from cosim.work.device import Core
    from golden.device import Golden
    from golden.perf.cycles import product_cycles

    design = Design(format=HBFPFormat(block=(1, 4)), rows=4, depth=32)
    manifest = emit(design)
    core, golden = Core(Simulation(manifest, level="-O1")), Golden(design)
    bias = np.ones(50, np.float32)
    for shape in ((1, 1, 1), (5, 9, 7), (40, 50, 30), (1, 100, 9), (1, 3, 50), (70, 8, 9)):
        x, w = golden.encode(np.ones(shape[:2], np.float32)), golden.encode(np.ones(shape[1:], np.float32), -2)
        for steps in ({}, {"bias": bias[:shape[2]]}, {"bias": bias[:shape[2]], "scale": bias[:shape[2]]}):
            core.simulation.reset()
            core.matmul(x, w, **steps)
            assert core.last_run.cycles == product_cycles(design, manifest.latency, *shape, len(steps)), (shape, steps)
