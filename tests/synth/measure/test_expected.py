"""Areas do not grow unnoticed.

Covers: synth/measure/area.py, synth/tools/recipes.py.
"""

import json

import pytest

from synth.measure.expected import EXPECTED_UNITS, FILE, cells

EXPECTED = json.loads(FILE.read_text())


def test_every_unit_has_a_figure():
    assert list(EXPECTED["cells"]) == list(EXPECTED_UNITS)


@pytest.mark.synth
@pytest.mark.parametrize("name", EXPECTED_UNITS)
def test_cells(name):
    """Smaller is a failure, too: the figures in the documents are then out of date."""
    assert cells(name) == pytest.approx(EXPECTED["cells"][name], rel=EXPECTED["tolerance"])
