"""Corners of a library: what they must have, and what is timed where."""

import pytest

from hbfp.design import Design
from hbfp.values import OptionError
from synth.compare import corners
from synth.measure import timing
from synth.tools import library
from tests.synth.tiny import LIBERTY


@pytest.fixture
def cells(tmp_path):
    """Loads a library of this text."""
    def write(name, text=LIBERTY):
        path = tmp_path / name
        path.write_text(text)
        return library.load(path)
    return write


def test_a_cell_that_a_corner_lacks(cells):
    typical = cells("typical.lib")
    slow = cells("slow.lib", LIBERTY.replace("cell (XOR2)", "cell (XOR3)"))
    corners.check(typical, {"slow": cells("same.lib", LIBERTY.replace("cell (BUF)", "cell (MORE) { }\ncell (BUF)"))})
    with pytest.raises(OptionError) as caught:
        corners.check(typical, {"slow": slow})
    assert str(caught.value) == f"--corners slow={slow.path}: has no cell XOR2, which typical.lib has"


@pytest.mark.parametrize("pipeline, kinds", [(0, corners.TIMED), (2, (timing.WHOLE,))])
def test_each_corner_without_and_with_wires(cells, monkeypatch, pipeline, kinds):
    typical, slow = cells("typical.lib"), cells("slow.lib")

    def paths(design, recipe, mapped, access, kinds, timed, wire):
        assert (recipe, mapped, access) == ("speed", typical, 0.3)
        return {kind: timing.Path(n + 1 + 10 * (timed is slow) + 100 * wire, "a", "b", [])
                for n, kind in enumerate(kinds)}

    monkeypatch.setattr(timing, "paths", paths)
    found = corners.periods(Design(pipeline=pipeline), "speed", typical, {"slow": slow}, 2.0, 0.3)
    last = len(kinds)
    assert [(each.corner, each.wire, each.kind, each.path.period) for each in found] == [
        ("typical", 0, kinds[-1], last), ("typical", 2, kinds[-1], last + 200),
        ("slow", 0, kinds[-1], last + 10), ("slow", 2, kinds[-1], last + 210)]
    assert found[1].mhz == 1000 / (last + 200)
    assert len(corners.periods(Design(pipeline=pipeline), "speed", typical, {}, 0.0, 0.3)) == 1
