"""Which registers and recipe meet a period: the fewest, the first recipe; what is said where none does."""

import re
from types import SimpleNamespace

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from synth.compare import period
from synth.measure.partition import Unit
from synth.measure.timing import Path
from synth.tools.errors import SynthError

#: Recipe -> period of each unit by registers: side, group and the whole core.
TIMES = {"area": {"side": (90, 50, *(40,) * 6), "group": (9,) * 8, "core": (91, 51, *(41,) * 6)},
         "speed": {"side": (30, 12, 6, *(5,) * 5), "group": (6.5,) * 8, "core": (60, 12.5, 7, 6.8, 6.9, 7, 7, 7)}}


@pytest.fixture
def timed(monkeypatch):
    """What is timed, in order."""
    asked = []

    def longest_path(unit, by_name, recipe, library, access):
        depth = int(unit.verilog)
        asked.append((depth, recipe, unit.kind))
        return Path(TIMES[recipe][unit.kind][depth], "a", "b", [(unit.kind, 1.0)])
    monkeypatch.setattr(period, "generate", lambda design: (str(design.pipeline), None))
    monkeypatch.setattr(period.partition, "units", lambda text, _: [
        Unit(kind, kind, 1, text) for kind in ("group", "side", "core")])
    monkeypatch.setattr(period.timing, "longest_path", longest_path)
    monkeypatch.setattr(period, "measure", lambda *words: SimpleNamespace(words=words))
    return asked


@pytest.mark.parametrize("goal, depth, recipe", [(91, 0, "area"), (60, 0, "speed"), (51, 1, "area"), (12.5, 1, "speed"),
                                                (12.4, 2, "speed"), (6.8, 3, "speed")])
def test_fewest_registers_first_recipe(timed, goal, depth, recipe):
    found = period.meet(Design(), goal, None)
    assert (found.design.pipeline, found.recipe, found.path.period) == (
        depth, recipe, TIMES[recipe]["core"][depth])


def test_no_more_is_timed_than_needed(timed):
    period.meet(Design(), 7, None, ["speed"])
    assert timed == [(0, "speed", "side"), (1, "speed", "side"), (2, "speed", "side"), (2, "speed", "group"),
                     (2, "speed", "core")]


@pytest.mark.parametrize("goal", [6.79, 6.5, 6, 1])
def test_what_cannot_be_met_says_the_best(timed, goal):
    """However little of the others was timed."""
    with pytest.raises(SynthError, match=re.escape(
            f"--period {goal:g}: is not met, the best is 6.80 ns with --pipeline 3 and recipe speed; critical path: "
            "a to b (through core 1.00)")):
        period.meet(Design(), goal, None)


def test_levels_are_those_that_a_design_can_have():
    assert [each.pipeline for each in period.levels(Design(pipeline=2))] == list(range(8))
    assert [each.pipeline for each in period.levels(Design(arithmetic="int"))] == [0]
    assert [each.pipeline for each in period.levels(Design(fabric="fpga", pipeline=3))] == list(range(1, 8))
    segments = Design(format=HBFPFormat(block=(1, 16)))
    assert [each.pipeline for each in period.levels(segments)] == [0, 1, 2]
