"""The command line: what it compares, what it leaves behind, how it fails.

Covers: cosim/work/network.py, cosim/work/pictures.py, cosim/work/waves.py.
"""

import json
from functools import partial

import pytest

from cosim.__main__ import main
from cosim.command import core
from cosim.simulate.simulation import Simulation
from hbfp import files
from tests.cosim.standin import write_standin


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("build")


@pytest.fixture
def build(folder, monkeypatch):
    """One build folder for all tests, so that the network is trained once; what models link is that of all tests."""
    if not (folder / "cache").exists():
        shared = files.build() / "cache"
        shared.mkdir(parents=True, exist_ok=True)
        (folder / "cache").symlink_to(shared)
    monkeypatch.setenv("HBFP_BUILD", str(folder))
    monkeypatch.setattr("cosim.simulate.simulation.Simulation", partial(Simulation, level="-O1"))
    return folder


@pytest.mark.parametrize("words, message", [
    (["--bench", "all,core"], "--bench all,core: must be one of core, workload, sparse, boosted, all"),
    (["--bench", "sparse"], "--bench sparse: must be given with --sparse N,M"),
    (["--bench", "sparse", "--unit", "array"], "--bench sparse: must be core with --unit or --netlist"),
    (["--sparse", "2,3"], "--sparse 2,3: must be one of 1,2, 1,4, 2,4, 4,8, or 1,1 for none"),
    (["--sparse", "2,4", "--arithmetic", "int"], "--sparse 2,4: must be 1,1 where arithmetic is int"),
    (["--bench", "boosted"], "--wide 0: must be more than 0 for --bench boosted"),
    (["--bench", "boosted", "--mantissa", "4", "--wide", "6", "--rounding", "stochastic"],
     "--rounding stochastic: must be rne or truncate for --bench boosted"),
    (["--bench", "boosted", "--mantissa", "4", "--wide", "6", "--accumulate", "aligned", "--guard", "5"],
     "--guard 5: must be 4 for --bench boosted"),
    (["--bench", "boosted", "--mantissa", "4", "--wide", "6", "--accumulate", "aligned", "--growth", "1"],
     "--growth 1: must be more for --bench boosted: its products are 128 terms long, and a command holds 64"),
    (["--bench", "boosted", "--unit", "encode"], "--bench boosted: must be core with --unit or --netlist"),
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


@pytest.mark.cosim
def test_standstill_is_reported_with_its_stream(build, tmp_path, monkeypatch, capsys):
    from cosim.manifest import Manifest

    manifest = Manifest.load(write_standin(tmp_path / "design", fault=5))
    monkeypatch.setattr(core, "emit", lambda design: manifest)
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
def test_workload_and_waves(fault, status, build, tmp_path, monkeypatch, capsys):
    from vcd.reader import TokenKind, tokenize

    from cosim.manifest import Manifest

    manifest = Manifest.load(write_standin(tmp_path / "design", fault=fault))
    monkeypatch.setattr(core, "emit", lambda design: manifest)
    monkeypatch.setattr("cosim.simulate.views.write_views", lambda manifest, dump: [dump])    # of emitted text alone
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
        picture = next(build.glob(f"cosim/*/{name}")).read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    with open(tmp_path / "waves.vcd", "rb") as file:
        kinds = [token.kind for token in tokenize(file)]
    assert kinds.count(TokenKind.VAR) > 10 and kinds.count(TokenKind.CHANGE_TIME) > 100
    assert kinds.count(TokenKind.CHANGE_VECTOR) > 100
