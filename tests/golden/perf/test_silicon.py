"""Area times time: shares counted layer by layer and epoch by epoch, and what follows from them.

Covers: golden/perf/silicon_command.py.
"""

import json

import pytest

from golden.__main__ import main
from golden.perf.prices import FP32_CORE, NAND2, WIDE_CORE
from golden.perf.silicon import NETWORKS, case, cases


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("epochs", [1, 3])
def test_shares_are_counted(epochs, ends):
    macs = [3, 50, 7]
    wide = sum(count for epoch in range(epochs) for place, count in enumerate(macs)
               if epoch == epochs - 1 or ends and place != 1)
    found = case("any", macs, epochs, ends)
    assert found.wide == pytest.approx(wide / (epochs * sum(macs)))
    cycles = (4 * wide + epochs * sum(macs) - wide) / (epochs * sum(macs))
    assert found.area_time["HBFP4 --wide 6"] == pytest.approx(WIDE_CORE * cycles)
    assert found.over()["HBFP4 --wide 6"] == pytest.approx(FP32_CORE / WIDE_CORE / cycles)
    assert found.over()["FP32"] == 1 and found.over("HBFP6")["HBFP6"] == 1


def test_networks_have_the_published_sizes():
    assert sum(NETWORKS["ResNet-20"]) == 40_551_040    # 40.6 and 4 089 million
    assert sum(NETWORKS["ResNet-50"]) == 4_089_184_256


def test_every_case(capsys, tmp_path):
    assert len(cases()) == 12
    assert main(["silicon", "--json", str(tmp_path / "s.json")]) == 0
    others = f"HBFP6 {NAND2['hbfp6']:.1f}, HBFP8 {NAND2['hbfp8']:.1f}, BF16 {NAND2['bf16']:.1f}, FP32 {FP32_CORE:.1f}"
    assert f"the others: {others}" in capsys.readouterr().out
    data = json.loads((tmp_path / "s.json").read_text())
    assert [row["epochs"] for row in data] == [90, 160, 330] * 4
    # A longer training has a smaller share of its last epoch.
    assert all(a["wide"] > b["wide"] for a, b in zip(data, data[1:], strict=False) if b["epochs"] > a["epochs"])


def test_a_file_that_cannot_be_written(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["silicon", "--json", "/no/such/folder/file"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == ("python -m golden: error: --json /no/such/folder/file: cannot be written (No "
                                       "such file or directory)\n")
