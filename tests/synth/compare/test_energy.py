"""Energies at an equal clock: which core of a baseline counts.

Covers: synth/report/energy.py.
"""

import pytest

from hbfp.options import design_from_values
from hbfp.values import OptionError, refuse
from synth.compare import energy
from synth.report.energy import against_table, energy_plot, energy_table

from ..power.made import made

#: Registers -> energy over the design's, and ns.
FLOATS = {2: (9.0, 9.0), 3: (7.0, 4.0), 4: (8.0, 2.0), 5: (8.5, 1.9), 6: (9.5, 1.0)}


@pytest.fixture
def found(monkeypatch):
    """Calls compare with energies of :data:`FLOATS`; a period is met or refused."""
    monkeypatch.setattr(energy, "prepare", lambda *args: None)
    monkeypatch.setattr(energy, "operands", lambda *args: None)

    def measured(design, recipe, library, workload, period, wire, progress, strict=True):
        scale, longest = FLOATS.get(design.pipeline, (1.0, 2.0)) if design.arithmetic != "hbfp" else (1.0, 2.0)
        if period and longest > period and strict:
            raise refuse("period", period, f"is not met by {design.name}")
        return made(design, scale, longest, period or longest)
    monkeypatch.setattr(energy, "measure", measured)
    design = design_from_values({"rows": 8, "block": (1, 8), "multiplier": "recoded"})
    return lambda against=("fp32", "int"), **options: energy.compare(design, against, "area", None, "any", **options)


def test_floats_have_the_registers_with_which_they_take_least(found):
    both = found()
    assert both.energy.period == 2.0 and both.against == {"fp32": pytest.approx(8), "int": pytest.approx(1)}
    assert both.baselines["fp32"].design.pipeline == 4 and both.baselines["fp32"].period == 2.0
    assert both.as_dict()["against"] == both.against and both.as_dict()["baselines"]["int"]["arithmetic"] == "int"


def test_more_registers_where_the_clock_asks_for_them(found, monkeypatch):
    monkeypatch.setitem(energy.LEAST, "fp32", 2)
    assert found().baselines["fp32"].design.pipeline == 4


def test_the_least_of_those_that_are_named(found):
    assert found(pipelines=[2, 3, 4, 5], period=5).baselines["fp32"].design.pipeline == 3
    assert found(pipelines=[2, 3, 4, 5], period=3).baselines["fp32"].design.pipeline == 4


def test_where_none_meets_the_clock_the_last_one_counts(found):
    """Its longest path, beside the period, says so."""
    slow = found(pipelines=[2, 3]).baselines["fp32"]
    assert (slow.design.pipeline, slow.longest, slow.period) == (3, 4.0, 2.0)


def test_the_design_meets_the_period(found):
    with pytest.raises(OptionError, match=r"^--period 1\.5: is not met by hbfp_"):
        found(period=1.5)


def test_tables_and_picture(found):
    both = found()
    text = [[*column.cells] for column in energy_table(both.energy).columns]
    assert text[0] == ["elements", "accumulation", "side unit", "core with memories"]
    assert text[1] == ["100.0", "50.0", "10.0", "150.0"] and text[2] == ["66.7%", "33.3%", "beside", ""]
    rows = list(zip(*(column.cells for column in against_table(both).columns), strict=True))
    assert rows[0] == ("fp32", "4", "1 x 4", "2.00", "1,200.0", "8.00", "560.0", "8.00")
    assert [axes.get_title() for axes in energy_plot(both).axes] == ["components", "cores at 2.00 ns"]
