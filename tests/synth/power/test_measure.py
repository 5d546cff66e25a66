"""Energies of whole cores: what is added up, and that gates which compute anything else are refused.

Covers: synth/power/operands.py.
"""

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest

from hbfp.figures import figure
from hbfp.options import design_from_values
from hbfp.values import OptionError
from synth.__main__ import main
from synth.measure.area import generate
from synth.power import engine, measure, netlist, operands
from synth.tools import library
from synth.tools.errors import SynthError

from .cells import TEXT
from .made import made

TINY = {"rows": 2, "mantissa": 2, "arithmetic": "int", "depth": 32, "multiplier": "recoded"}
WORDS = ["--rows", "2", "--mantissa", "2", "--arithmetic", "int", "--depth", "32"]


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "easy.lib"
    path.write_text(TEXT)
    return library.load(path)


def counted(**changes):
    """Counts of two components and of inputs; 50 of 100 cycles were followed."""
    counts = engine.Counts(7, 3, 1000.0, 10.0, 20.0, 30.0, 5, 4.0, 6.0, 2)
    result = engine.Result(True, 120, 100, 50, 0, 9, 1.5, 1.0, {}, [counts, counts, replace(counts, leakage=0.0)],
                           [engine.Accesses(0, 1, 8, 32, 640, 160)])
    return asdict(result) | {"compared": 3} | changes


def test_counts_become_energies():
    gates = measure.Gates(None, "", "", ["elements", "accumulation"], [], [], 14)
    one = design_from_values(TINY)
    recorded = {"names": np.array(["a"])}
    found = measure._energy(one, "area", replace_name(), "digits", 2.0, 400, recorded, gates, counted())
    elements, accumulation, inputs = found.components
    assert [part.name for part in found.components] == ["elements", "accumulation", "inputs"]
    # fJ of half of the cycles, over 400 multiply-accumulates: 5e-18 J for each fJ.
    assert (elements.switching, elements.internal, elements.clock) == pytest.approx((5e-17, 1e-16, 1.5e-16))
    assert elements.leakage == pytest.approx(1e-6 * 2e-9 * 100 / 400)    # 1 uW for 2 ns a cycle
    assert elements.settled == pytest.approx(10 * 5e-18 + elements.clock + elements.leakage)
    byte = figure("prices.energies.sram8_pj")["value"] * 1e-12
    assert accumulation.memories == pytest.approx(100 * byte / 400) and elements.memories == 0
    assert accumulation.settled == pytest.approx(elements.settled + accumulation.memories)
    assert found.total() == pytest.approx(sum(part.energy for part in found.components))
    assert found.utilisation == 400 / (100 * 4)


def replace_name():
    """A library of which only the name is looked at."""
    return library.Library("easy", None, 2.0, "")


def test_the_side_unit_stands_beside():
    assert made().total() == pytest.approx(150e-15) and made().total(True) == pytest.approx(70e-15)
    data = made().as_dict()
    assert data["energy"] == pytest.approx(150e-15)
    assert [(part["name"], round(part["energy"] * 1e15)) for part in data["components"]] == [
        ("elements", 100), ("accumulation", 50), ("side unit", 10)]


def test_the_window_leaves_out_the_first_and_the_last_command():
    recorded = {"commands": np.array([[8, 100], [16, 200], [24, 300], [32, 400]])}
    assert operands.commands(recorded) == ((8, 48), 500)


@pytest.mark.parametrize("changes, line", [
    ({"wrong": 2}, "2 nets settle to other values with delays than without"),
    ({"complete": False}, "its gates stopped after 120 cycles"),
    ({"payloads": {"o": np.ones((3, 1), np.uint8)}}, "3 of 3 payloads of o are not those of the golden model")])
def test_gates_that_are_wrong(changes, line):
    result = replace(engine.Result(True, 120, 100, 50, 0, 9, 1.5, 1.0, {}, [], []), **changes)
    with pytest.raises(SynthError, match=f"int2.*: {line}$"):
        measure._check(result, {"o": np.zeros((3, 2), np.uint8)}, design_from_values(TINY))


def test_library_without_power(tmp_path, capsys):
    path = tmp_path / "still.lib"
    path.write_text(re.sub(r"internal_power \(\) \{[^{}]*(\{[^{}]*\}[^{}]*)*\}", "", TEXT))
    with pytest.raises(SystemExit) as caught:
        main(["power", *WORDS, "--liberty", str(path)])
    assert caught.value.code == 2
    assert capsys.readouterr().err == (f"python -m synth power: error: --liberty {path}: has no tables of power "
                                       "(internal_power), which energies are made from\n")


@pytest.mark.synth
@pytest.mark.slow
def test_a_whole_core(tmp_path, capsys, cells, monkeypatch):
    """Integers of two bits: mapped, run and compared; again from the cache; and with one gate that is another."""
    words = ["power", *WORDS, "--liberty", str(cells.path), "--against", "", "--jobs", "1", "--out", str(tmp_path)]
    monkeypatch.setenv("COLUMNS", "200")    # a narrow table breaks names of rows
    assert main([*words, "--json", str(tmp_path / "again.json")]) == 0
    data = json.loads((tmp_path / "again.json").read_text())
    assert {"energy", "components", "against", "library", "period"} <= set(data)
    assert data["library"] == "easy" and data["against"] == {} and data["utilisation"] == 1
    assert data["settled"] < data["energy"] and data["compared"] == 5 * 32
    assert {"elements", "accumulation", "weight load", "control"} <= {part["name"] for part in data["components"]}
    assert all(part["energy"] >= part["settled"] > 0 for part in data["components"] if part["name"] == "elements")
    assert (tmp_path / "power.png").read_bytes().startswith(b"\x89PNG")
    assert "core with memories" in capsys.readouterr().out

    design = design_from_values(TINY)
    with pytest.raises(OptionError, match=rf"^--period 0.5: is not met by {design.name}, whose longest path takes "
                                          rf"{data['longest']:.2f} ns$"):
        measure.measure(design, "area", cells, "gaussian", 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "run", None)    # nothing is simulated again
        assert measure.measure(design, "area", cells, "gaussian").total() == data["energy"]

    made = netlist.read_blif

    def broken(text, units):
        module = made(text, units)
        if "group" in module.name:
            at = next(n for n, (kind, _) in enumerate(module.cells) if kind == "XOR")
            module.cells[at] = "NAND2", module.cells[at][1]
        return module
    monkeypatch.setattr(netlist, "read_blif", broken)
    with pytest.raises(SynthError, match=rf"^{design.name}: \d+ of 160 payloads of o are not those of the golden "
                                         r"model$"):
        measure.measure(design, "area", cells, "gaussian")
    assert generate(design)[1].top == design.name
