"""``python -m golden space`` and ``dispatch``: what they write, and refusals word for word.

Covers: golden/perf/pictures.py, golden/perf/dispatch/study.py.
"""

import json

import pytest

from golden.__main__ import main
from golden.perf import pictures
from golden.perf.command import POLICIES
from golden.perf.dispatch.study import policy_of


def test_space_writes_points_and_constants(tmp_path, capsys):
    assert main(["space", "--out", str(tmp_path), "--json", str(tmp_path / "s.json")]) in (0, None)
    data = json.loads((tmp_path / "s.json").read_text())
    assert set(data["points"][0]) == {"rows", "columns", "ghz", "latency_us", "tops", "watts", "mm2"}
    assert data["constants"]["mac_um2"]["value"] == 478.0
    assert (tmp_path / "space.csv").read_text().startswith("number,rows,columns,ghz,")
    assert (tmp_path / "space.png").stat().st_size > 10_000
    assert "hbfp8" in capsys.readouterr().out


def test_dispatch_writes_its_figures_and_sweeps(tmp_path):
    assert main(["dispatch", "--requests", "2000", "--study", "--out", str(tmp_path),
                 "--json", str(tmp_path / "d.json")]) in (0, None)
    data = json.loads((tmp_path / "d.json").read_text())
    assert {"p50", "p99", "max", "training", "fill"} <= set(data)
    assert data["p50"] <= data["p99"] <= data["max"]
    assert {row["policy"] for row in data["study"]["loads"]} == {"priority", "greedy", "alternate", "limited"}
    assert (tmp_path / "dispatch.png").stat().st_size > 10_000
    assert (tmp_path / "dispatch.csv").read_text().count("\n") == 1 + len(data["study"]["loads"]) + len(
        data["study"]["timeouts"])


def test_arrivals_from_a_file(tmp_path):
    (tmp_path / "times.txt").write_text("0\n0.5\n4\n")
    main(["dispatch", "--arrivals", str(tmp_path / "times.txt"), "--batch", "2", "--json", str(tmp_path / "d.json")])
    data = json.loads((tmp_path / "d.json").read_text())
    assert (data["requests"], data["batches"]) == (3, 2)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_by_name(name):
    policy = policy_of(name, 14, 3, 4)
    assert (policy.priority, policy.training, policy.timeout, policy.share) == (
        name != "alternate", name != "inference", 0 if name == "greedy" else 3, 4 if name == "limited" else 16)


@pytest.mark.parametrize("given, message", [
    (["dispatch", "--load", "2"], "--load 2: must be 0.001 to 1.5"),
    (["dispatch", "--policy", "none"],
     "--policy none: must be one of priority, greedy, alternate, inference, limited"),
    (["dispatch", "--batch", "14", "--depth", "8"], "--depth 8: must be 14 to 4096"),
    (["space", "--number", "fp4"], "--number fp4: must be one of hbfp8, hbfp6, hbfp4, bf16, int8")])
def test_wrong_values(given, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(given)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m golden: error: {message}\n"


def test_a_line_that_another_covers_is_wider():
    """Equal lines, and those that share a stretch, are seen; others keep their width."""
    one, far = ([1, 2, 3, 4], [1.0, 2.0, 3.0, 9.0]), ([1, 2, 3, 4], [5.0, 6.0, 7.0, 2.0])
    part = ([2, 3, 5], [2.0, 3.0, 0.0])
    assert pictures.covers(one, one) and pictures.covers(part, one) and not pictures.covers(far, one)
    _, (axes,) = pictures.figure(1)
    pictures.lines(axes, {"one": one, "far": far, "part": part, "same": one})
    widths = [line.get_linewidth() for line in axes.lines]
    assert widths[0] > widths[2] > widths[1] == widths[3]
