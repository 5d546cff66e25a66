"""The area of a dot-product unit: what is compared with what."""

import json

import pytest

from synth.__main__ import main
from synth.compare import dot_product
from synth.measure.area import Figures, Report


def report(logic, registers, terms):
    parts = {"elements": Figures(logic), "weight load": Figures(registers)}
    return Report("u", {}, "area", None, {}, {}, parts, terms)


def test_ratios_are_per_term_with_and_without_registers():
    own, other = report(20, 4, 4), report(100, 20, 4)
    assert dot_product.scopes(own) == {"combinational": 5, "with registers": 6}
    assert dot_product.ratios(own, {"fp32": other}) == {"fp32": {"combinational": 5, "with registers": 5}}


def test_wrong_baseline(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--unit", "dot_product", "--against", "fp32,int"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ("python -m synth: error: --against int: must be fp32 for --unit dot_product\n")


@pytest.mark.synth
def test_small_units(tmp_path, monkeypatch, capsys):
    """Conversion of the second operand costs what the first one's does, and no weights are kept."""
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "none.lib")
    found = {}
    for unit in dot_product.DOT_PRODUCT_UNITS:
        words = ["--unit", unit, "--mantissa", "3", "--rows", "2", "--block", "1,2", "--out", str(tmp_path)]
        assert main(words) == 0
        found[unit] = json.loads((tmp_path / f"{unit}.json").read_text())
    one, two = (found[unit]["report"]["components"] for unit in dot_product.DOT_PRODUCT_UNITS)
    assert two["converter"]["area"] == 2 * one["converter"]["area"]
    assert one["weight load"]["flipflops"] == 32 + 2 * 3 + 9 and two["weight load"]["flipflops"] == 32
    assert found["dot_product"]["terms"] == 2
    assert found["dot_product"]["ratios"]["fp32"]["combinational"] > found["dot_product.both"]["ratios"]["fp32"][
        "combinational"]
    assert "fp32 / this" in capsys.readouterr().out
