"""The report of an area: what is taken from it, and one line for what is none."""

import json
from dataclasses import replace

import pytest

from golden.perf.accelerator.area import Area, read_area
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from hbfp.values import OptionError

SYSTEM = Accelerator(core=Design(rows=8, cols=8, format=HBFPFormat(mantissa=8, block=(1, 8)), multiplier="recoded"))
REPORT = {"system": SYSTEM.as_dict(), "logic": 1000.0, "memories": 150.0, "library": "osu018", "recipe": "area",
          "components": [
    {"name": name, "logic": logic} for name, logic in (("elements", 300.0), ("control", 50.0), ("vector unit", 650.0))]}


def written(tmp_path, report):
    """A file of it."""
    path = tmp_path / "area.json"
    path.write_text(report if isinstance(report, str) else json.dumps(report))
    return str(path)


def test_area(tmp_path):
    """Multipliers compute the same, whatever they are."""
    for multiplier in ("plain", "recoded"):
        other = replace(SYSTEM, core=replace(SYSTEM.core, multiplier=multiplier))
        found = read_area(written(tmp_path, REPORT), other)
        assert found == Area(1000.0, 150.0, 350.0, "osu018", "area") and found.total == 1150


@pytest.mark.parametrize("report, line", [
    ("{", "is not what python -m synth accelerator --json FILE writes"),
    ("[]", "is not what python -m synth accelerator --json FILE writes"),
    (REPORT | {"system": {}, "memories": "x"}, "is not what python -m synth accelerator --json FILE writes"),
    (REPORT | {"components": []}, "has no area of the array"),
    (REPORT | {"system": replace(SYSTEM, v_words=128, queue=3).as_dict()},
     "is of another accelerator: --v-words 128 --queue 3, not --v-words 4096 --queue 4")])
def test_what_is_no_report(tmp_path, report, line):
    path = written(tmp_path, report)
    with pytest.raises(OptionError) as caught:
        read_area(path, SYSTEM)
    assert str(caught.value) == f"--area {path}: {line}"
