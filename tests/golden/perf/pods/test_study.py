"""Studies on small networks: what their rows say; fused jobs; pictures.

Covers: golden/perf/pods/fused.py, golden/perf/pods/step.py, golden/perf/pods/pictures.py,
golden/perf/pods/report.py.
"""

import json

import pytest

from golden.__main__ import main
from golden.perf.pictures import figure
from golden.perf.pods import pictures, power, simulate, study
from golden.perf.pods.fused import jobs
from golden.perf.pods.graph import Gemm, Graph, Reach
from golden.perf.pods.interconnect import parse
from golden.perf.pods.machine import Machine
from golden.perf.pods.step import digits

from .check import verify

MACHINE = Machine(16, 8, 8, parse("butterfly-2"))
GRAPHS = (Graph("one", (Gemm("a", 1, 60, 40, 50, height=60), Gemm("b", 1, 60, 50, 20, height=60,
                                                                  sources={0: Reach()}))),
          Graph("two", (Gemm("a", 1, 100, 30, 30, height=100),)))
BASE = study.Base(GRAPHS, MACHINE, {"published": power.PodConstants()}, "first-fit")


def test_contention_free_time_by_hand():
    """7 x 2 x 2 operations of 16 on 8 pods are four rounds; 25 on 4 pods seven."""
    graph = Graph("g", (Gemm("a", 1, 100, 30, 30, height=100), Gemm("b", 1, 70, 16, 80, height=70)))
    assert study.contention_free(graph, 8, 16, 16) == (4 + 4) * 16
    assert study.mean([1.0, 3.0]) == 1.5 and study.mean([1.0, 0.0]) == 0.0


def test_partition_and_interconnect():
    rows = study.partition(BASE)
    assert [row["partition"] for row in rows] == list(study.PARTITIONS) and rows[0]["one"] < rows[-1]["one"]
    rows = {row["interconnect"]: row for row in study.interconnect(BASE)}
    assert rows["benes"]["tops"] < rows["butterfly-2"]["tops"] <= rows["crossbar"]["tops"]
    assert rows["crossbar"]["one"] == simulate.run([simulate.Tenant(GRAPHS[0])], Machine(
        16, 8, 8, parse("crossbar"))).cycles


def test_granularity(monkeypatch):
    monkeypatch.setattr(study, "SIZES", (32, 128))
    monkeypatch.setattr(study, "SIMULATED", (128,))
    small, large = study.granularity(BASE)
    assert (small["pods"], large["pods"], large["simulated_pods"]) == (386, 44, 32) and "simulated_tops" not in small
    assert large["tops"] == pytest.approx(study.mean([
        2e-3 * each.macs / study.contention_free(each, 44, 128, 128) for each in GRAPHS]))


def test_fused_jobs_share_rounds():
    graph = digits()
    rows = study.fused(study.Base((graph,), Machine(64, 32, 32, parse("butterfly-2")), BASE.constants, "first-fit"))
    gain = {(row["pods"], row["models"]): row["gain"] for row in rows}
    assert gain[64, 1] == 1 and gain[64, 16] >= 10 and gain[64, 64] >= 20 and gain[2, 64] < 2
    both = jobs(GRAPHS[0], 3)
    assert [dict(each.sources) for each in both.gemms] == [{}] * 3 + [{0: Reach()}, {1: Reach()}, {2: Reach()}]
    outcome = simulate.run([simulate.Tenant(both)], MACHINE)
    verify(outcome.tiles, outcome.machine, outcome.plan)
    assert both.macs == 3 * GRAPHS[0].macs


def test_tenants_and_banks():
    rows = study.tenancy(BASE)
    assert len(rows) == 6 and all(row["gain"] == row["sequential"] / row["together"] > 1 for row in rows)
    rows = study.banks(BASE)
    assert len(rows) == 2 * len(study.BANKS) * len(study.BANDWIDTHS) and min(row["over_ideal"] for row in rows) >= 1


FILE = "import torch\ndef model(): return torch.nn.Linear(96, 64)\ndef inputs(): return torch.ones(64, 96),\n"


@pytest.mark.parametrize("name", study.STUDIES)
def test_every_study_is_written(name, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.setattr(study, "SIMULATED", (128,))
    words = ["--network", str(tmp_path / "mine.py")] * (2 if name == "tenancy" else 1)
    main(["pods", "--study", name, "--out", str(tmp_path), "--json", str(tmp_path / "s.json"), *words])
    data = json.loads((tmp_path / "s.json").read_text())
    assert data["study"] == name and data["rows"]
    assert (tmp_path / f"{name}.csv").read_text().count("\n") == 1 + len(data["rows"])
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_a_schedule_is_drawn_with_memories_and_power(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    words = ["--network", str(tmp_path / "mine.py")] * 2
    main(["pods", *words, "--pods", "8", "--view", "--dram", "16", "--policy", "adaptive", "--arrival", "0",
          "--arrival", "500", "--out", str(tmp_path), "--json", str(tmp_path / "p.json")])
    data = json.loads((tmp_path / "p.json").read_text())
    assert data["cycles_with_dram"] > data["cycles"] > 500 and data["weight_bytes"] == 2 * 6 * 1024
    assert data["watts"] == pytest.approx(data["watts_banks"] + data["watts_arrays"] + data["watts_network"])
    assert (tmp_path / "schedule.png").stat().st_size > 5_000
    assert data["constants"]["budget_w"]["value"] == 400.0


def test_bars_have_room_beside_long_names():
    """Names and figures are whole, and bars take a third of the picture at least, however many there are."""
    rows = [{"tenants": "resnet152 + bert-medium@20", "pods": 256, "policy": f"first-fit, whole layers, {n}", "gain": n}
            for n in range(1, 19)]
    drawn, (axes,) = figure(1)
    pictures.DRAW["tenancy"](axes, rows)
    drawn.canvas.draw()
    inside = drawn.bbox
    for text in (*axes.get_yticklabels(), *axes.texts):
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 and box.x1 <= inside.x1
    assert axes.get_window_extent().width > inside.width / 3
    assert axes.get_window_extent().height > len(rows) * axes.texts[0].get_window_extent().height * 1.5
