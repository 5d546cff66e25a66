"""``python -m cosim pods``: what it prints, writes and refuses; the machine is that of tests/cosim/pods/test_check.py.

Covers: cosim/pods/bench.py, cosim/pods/report.py, cosim/pods/workloads.py.
"""

import json

import numpy as np
import pytest

from cosim.command.pods import main
from cosim.pods import workloads
from cosim.pods.bench import WORKLOADS
from hbfp.options import pods_from_values

MACHINE = ["--pods", "4", "--rows", "2", "--block", "1,1", "--group", "1,2", "--bank", "64", "--rounds", "128"]
KEY = pods_from_values({"pods": 4, "rows": 2, "block": (1, 1), "group": (1, 2), "bank": 64, "rounds": 128}).key


def tiny(bench, rng):
    """Two models, alone and as one job."""
    workloads.together(bench, "tiny", workloads.models(rng, 2, (6, 4, 3), 4))


def large(bench, rng):
    """More than the banks hold."""
    bench.run("large", workloads.models(rng, 1, (64, 64), 4)[0])


def apart(bench, rng):
    """Models of two shapes."""
    workloads.together(bench, "apart", [workloads.models(rng, 1, sizes, 4)[0] for sizes in ((6, 4), (6, 5))])


@pytest.fixture(autouse=True)
def small_workloads(monkeypatch):
    for each in (tiny, large, apart):
        monkeypatch.setitem(WORKLOADS, each.__name__, each)


def refused(capsys, *arguments):
    """The one line of a refused command."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and err.count("\n") == 1
    return err.removeprefix("python -m cosim pods: error: ").removesuffix("\n")


@pytest.mark.cosim
def test_a_workload_and_its_program(tmp_path, capsys):
    """A saved program runs again; another machine refuses it with one line."""
    program, results = tmp_path / "program.json", tmp_path / "results.json"
    assert main([*MACHINE, "--workload", "tiny", "--save", str(program), "--json", str(results)]) == 0
    out, data = capsys.readouterr().out, json.loads(results.read_text())
    assert out.endswith("passed\n") and "4 pods of 2 x 2, butterfly-2" in out and "as one job" in out
    assert data["passed"] and data["key"] == KEY and data["alone"]["mismatches"] == 0
    assert [each["name"] for each in data["programs"]["tiny"]] == ["tiny, model 0", "tiny, model 1",
                                                                  "tiny, 2 as one job"]
    assert data["gains"][0]["times"] > 1
    assert main([*MACHINE, "--program", str(program)]) == 0
    assert capsys.readouterr().out.endswith("passed\n")
    other = pods_from_values({"pods": 4, "rows": 2, "block": (1, 1), "group": (1, 2), "bank": 32, "rounds": 128}).key
    assert refused(capsys, *MACHINE[:-4], "--bank", "32", "--rounds", "128", "--program", str(program)) == (
        f"--program {program}: Program must be for machine {other:08x}, not for {KEY:08x}")


@pytest.mark.cosim
@pytest.mark.parametrize("workload, message", [
    ("large", "Schedule memories of 128 rounds must hold 514"),
    ("apart", "Models cannot be fused: layer linear 0 of model 1 has shape 4x6x5, that of model 0 4x6x4"),
])
def test_what_does_not_fit_a_machine(capsys, workload, message):
    assert refused(capsys, *MACHINE, "--workload", workload) == message


@pytest.mark.parametrize("arguments, message", [
    (["--pods", "6"], "--pods 6: must be a power of two"),
    (["--bank", "4"], "--bank 4: must hold a tile of 8 rows"),
    (["--workload", "none"], f"--workload none: must be one of {', '.join((*WORKLOADS, 'tiny', 'large', 'apart'))}"),
    (["--chain", "0"], "--chain 0: must be 1 to 65536"),
    (["--seed", "-1"], "--seed -1: must be 0 to 4294967295"),
    (["--program", "x", "--chain", "2"], "--chain 2: has no effect with --program"),
    (["--program", "no.json"], "--program no.json: cannot be read (No such file or directory)"),
], ids=str)
def test_wrong_options(capsys, arguments, message):
    assert refused(capsys, *arguments) == message


def test_no_program(tmp_path, capsys):
    file = tmp_path / "a.json"
    file.write_text("{}")
    assert refused(capsys, "--program", str(file)) == (
        f"--program {file}: Program must be a file that this command has saved")


def test_windows_of_a_convolution():
    """X of a convolution times its weights is the convolution."""
    rng = np.random.default_rng(1)
    images, w = rng.integers(-3, 4, (2, 4, 5, 3)).astype(float), rng.integers(-3, 4, (3, 3, 3, 2)).astype(float)
    got = (workloads.patches(images, 3) @ w.reshape(27, 2)).reshape(2, 4, 5, 2)
    for y, x in ((0, 0), (1, 2), (3, 4)):
        want = sum(images[:, y + dy - 1, x + dx - 1] @ w[dy, dx] for dy in range(3) for dx in range(3)
                   if 0 <= y + dy - 1 < 4 and 0 <= x + dx - 1 < 5)
        assert (got[:, y, x] == want).all()


@pytest.mark.slow
@pytest.mark.cosim
@pytest.mark.parametrize("machine", [[], ["--chain", "4"], ["--pods", "4", "--bank", "4096", "--rounds", "4096"]],
                         ids=str)
def test_every_workload(capsys, machine):
    """4 and 8 pods of 8 x 8: digits, a convolution, a transformer's layer, jobs; no bit and no cycle differs."""
    names = [name for name in WORKLOADS if name not in ("tiny", "large", "apart")]
    for name in names:
        assert main([*machine, "--workload", name]) == 0
    assert capsys.readouterr().out.count("passed\n") == len(names)
