"""``python -m golden pods``: what it writes, and refusals word for word.

Covers: golden/perf/pods/simulate.py.
"""

import json

import pytest

from golden.__main__ import main
from golden.perf.pods.power import PodConstants
from tests.cases import sweep

FILE = "import torch\ndef model(): return torch.nn.Linear(96, 64)\ndef inputs(): return torch.ones(64, 96),\n"


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def run(tmp_path, *words):
    """The JSON of a run."""
    assert main(["pods", *map(str, words), "--json", str(tmp_path / "p.json")]) in (0, None)
    return json.loads((tmp_path / "p.json").read_text())


def test_a_file_by_hand(mine, tmp_path):
    """12 operations on 4 pods are three rounds of 33; the three partial sums of a tile meet in two additions."""
    data = run(tmp_path, "--network", mine, "--pods", 4, "--interconnect", "crossbar")
    assert {"cycles", "rounds", "utilisation", "operations", "seconds"} <= set(data)
    assert (data["operations"], data["chained"], data["additions"]) == (12, 0, 8)
    # The last sums start in round 2 and are there 66 cycles, two rounds, later; then two additions in turn.
    assert data["rounds"] == 2 + 2 + 2 and data["cycles"] == 5 * 33 + 2 + 4 + 32
    assert data["utilisation"] == 64 * 96 * 64 / (4 * 32 * 32 * data["cycles"])


def test_resnet50_as_published(tmp_path):
    """Within 5 % of the published simulator's 70 172 cycles, with the strides where its network has them and not."""
    for name in ("resnet50", "resnet50-v1"):
        data = run(tmp_path, "--network", name)
        assert abs(data["cycles"] / 70_172 - 1) < 0.05 and data["round_cycles"] == 33


@pytest.mark.parametrize("banks, partition, cycles, error", sweep(3, [
    ("product", 16, 96_415, 0.06), ("product", 32, 60_331, 0.06), ("product", 50, 55_124, 0.06),
    ("product", 64, 66_576, 0.06), ("product", 100, 73_852, 0.15), ("network", 32, 60_331, 0.06),
    ("network", 100, 52_539, 0.01)]))
def test_bert_beside_the_published_simulator(banks, partition, cycles, error, tmp_path):
    """Heads of few rows run one after the other where each has its tiles of X in the first banks, and only there."""
    data = run(tmp_path, "--network", "bert-medium-v1@100", "--waits", "layer", "--banks", banks, "--partition",
               partition)
    assert data["operations"] == {16: 181_264, 32: 103_696, 50: 51_984, 64: 51_984, 100: 26_128}[partition]
    assert abs(data["cycles"] / cycles - 1) < error


def test_two_tenants(mine, tmp_path):
    data = run(tmp_path, "--network", mine, "--network", mine, "--pods", 16)
    alone = run(tmp_path, "--network", mine, "--pods", 16)
    assert data["operations"] == 24 and data["cycles"] < 2 * alone["cycles"] and len(data["finished"]) == 2


NAMES = ("inception, resnet50, resnet101, resnet152, densenet121, densenet169, densenet201, resnet50-v1, "
         "resnet101-v1, resnet152-v1, bert-medium, bert-base, bert-large, bert-medium-v1, bert-base-v1, bert-large-v1")


@pytest.mark.parametrize("given, message", [
    (["--pods", "48"], "--pods 48: must be a power of two, 2 to 4096"),
    (["--pods", "8192"], "--pods 8192: must be 2 to 4096"),
    (["--network", "lenet"], f"--network lenet: must be a FILE.py or of {NAMES}"),
    (["--network", "resnet50@"], "--network resnet50@: must have a size of 1 to 4096"),
    (["--network", "resnet50@0"], "--network resnet50@0: must have a size of 1 to 4096"),
    (["--network", "gone.py"], "--network gone.py: cannot be read (No such file or directory)"),
    (["--train"], "--network resnet50: must be a FILE.py with --train"),
    (["--interconnect", "butterfly-3"],
     "--interconnect butterfly-3: must be butterfly-K (K 1, 2, 4, 8 or 16), crossbar or benes"),
    (["--waits", "none"], "--waits none: must be one of rows, channels, layer"),
    (["--banks", "none"], "--banks none: must be one of network, product"),
    (["--study", "banks", "--banks", "product"],
     "--banks product: has no effect with a study, or with --policy adaptive"),
    (["--partition", "0"], "--partition 0: must be 1 to 4096"),
    (["--policy", "best"], "--policy best: must be one of first-fit, adaptive"),
    (["--policy", "adaptive", "--partition", "32"],
     "--partition 32: has no effect with a study, or with --policy adaptive"),
    (["--study", "banks", "--waits", "layer"], "--waits layer: has no effect with a study, or with --policy adaptive"),
    (["--study", "all"],
     "--study all: must be one of granularity, partition, interconnect, banks, tenancy, fused"),
    (["--study", "tenancy", "--network", "resnet50"],
     "--network resnet50: must be one of a pair for the study of tenancy"),
    (["--study", "banks", "--arrival", "3"], "--arrival 3: has no effect with --study"),
    (["--study", "banks", "--dram", "3"], "--dram 3: has no effect with --study"),
    (["--study", "banks", "--view"], "--view: has no effect with --study"),
    (["--scheduler", "tcp://a:1"], "--scheduler tcp://a:1: has no effect without --study"),
    (["--arrival", "1", "--arrival", "2"], "--arrival 2: must be given once for each of the 1 networks"),
    (["--priority", "-1"], "--priority -1: must be 0 to 1000"),
    (["--bank", "7"], "--bank 7: must hold two of the largest tile, 8 kB"),
    (["--bank", "8", "--partition", "33"], "--bank 8: must hold two of the largest tile, 9 kB"),
    (["--set", "mine"],
     "--set mine: must be one of published, measured-hbfp8, measured-hbfp6, measured-hbfp4"),
    (["--constants", "mine.toml"],
     f"--constants mine.toml: unknown constant 'volts'; valid are {', '.join(PodConstants.__dataclass_fields__)}")])
def test_wrong_values(given, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("volts = 1\n")
    with pytest.raises(SystemExit) as stop:
        main(["pods", *given])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m golden: error: {message}\n"


@pytest.mark.parametrize("text, message", [
    ("import torch\ndef model(): return torch.nn.ReLU()\ndef inputs(): return torch.ones(2),\n",
     "has no product of matrices"),
    ("import torch\ndef model(): return torch.nn.Linear(3, 2)\ndef inputs(): return torch.ones(2, 4),\n",
     ("The model cannot be lowered: neither torch.export nor torch.fx traces it (a and b must have same "
       "reduction dim, but got "
      "[2, 4] X [3, 2].); a forward whose path does not depend on values would do"))])
def test_files_that_are_refused(text, message, capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["pods", "--network", str(path)])
    assert (stop.value.code, capsys.readouterr().err) == (
        2, f"python -m golden: error: --network {path}: {message}\n")


def test_a_network_too_small_for_its_pixels(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["pods", "--network", "inception@8"])
    assert (stop.value.code, capsys.readouterr().err) == (
        2, ("python -m golden: error: --network inception@8: Given input size: (64x1x1). Calculated output size: "
            "(64x0x0). Output size is too small\n"))


@pytest.mark.parametrize("words, line", [
    (["--network", "--"], "python -m golden pods: error: argument --network: expected one argument"),
    (["--network=--"], f"python -m golden: error: --network --: must be a FILE.py or of {NAMES}")])
def test_two_dashes_are_a_value_only_behind_an_equals_sign(words, line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["pods", *words])
    assert (stop.value.code, capsys.readouterr().err) == (2, f"{line}\n")
