"""What reports are made of comes into the cache: each distinct unit once, the largest first, failures in the end."""

import pytest
from joblib import parallel_config

from hbfp.options import design_from_values
from synth.compare import prepare as module
from synth.compare.prepare import prepare
from synth.measure.partition import Unit
from synth.tools.errors import SynthError

DESIGNS = [design_from_values({"rows": rows}) for rows in (2, 4, 2)]
TARGETS = [("area", "library"), ("generic", None)]
#: Rows of a design -> (name, kind, size) of its units.
UNITS = {2: [("small", "group", 1), ("ram", "ram", 9)],
         4: [("small", "group", 1), ("middle", "align", 2), ("large", "encode_lane", 3)]}


@pytest.fixture
def tools(monkeypatch):
    """Stand-ins for generator and Yosys, in this process: what they were asked for, and units that they refuse."""
    def units(rows):
        return [Unit(name, kind, 1, name[0] * size) for name, kind, size in UNITS[rows]]

    def measure_unit(unit, recipe, library):
        asked.append((unit.top, recipe, library))
        if unit.top in refused:
            raise SynthError(f"Yosys failed on {unit.top}")

    asked, refused = [], []
    monkeypatch.setattr(module, "_processes", lambda jobs, scheduler: parallel_config(backend="sequential"))
    monkeypatch.setattr(module, "generate", lambda design: (design.rows,))
    monkeypatch.setattr(module.partition, "units", units)
    monkeypatch.setattr(module, "measure_unit", measure_unit)
    return asked, refused


def wanted(*names):
    return [(name, *target) for name in names for target in TARGETS]


def test_distinct_units_once_and_the_largest_first(tools):
    steps = []
    prepare(DESIGNS, TARGETS, progress=lambda *step: steps.append(step))
    assert tools[0] == wanted("large", "middle", "small")
    assert steps == [(1, 2, DESIGNS[0].name), (2, 2, DESIGNS[1].name)] + [
        (number, 6, name) for number, (name, *_) in enumerate(tools[0], 1)]


def test_failure_stops_or_waits_until_all_others_are_done(tools):
    asked, refused = tools
    refused.append("large")
    with pytest.raises(SynthError, match="^Yosys failed on large$"):
        prepare(DESIGNS, TARGETS)
    assert asked == wanted("large")[:1]
    asked.clear()
    with pytest.raises(SynthError, match="^Yosys failed on large$"):
        prepare(DESIGNS, TARGETS, go_on=True)
    assert asked == wanted("large", "middle", "small")
