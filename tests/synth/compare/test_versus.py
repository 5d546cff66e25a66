"""Which core is the largest that fits, by costs of small ones, and ratios between numbers."""

from dataclasses import asdict

import pytest

from synth.compare.versus import BINDING, COLUMNS, NUMBERS, ROWS, candidates, compared, fit, largest, sizes
from synth.measure.devices import Use
from synth.tools.errors import SynthError

DEVICE = Use(luts=20_000, flipflops=30_000, rams=64, dsps=40)


def count(design, blocks, bend=0.0):
    """Costs in closed form: a product takes a DSP block or 30 LUTs; ``bend`` is what no model of small cores sees."""
    elements = design.rows * design.cols
    soft = max(0, elements + 2 - blocks)
    luts = 500 + 7 * design.rows + 90 * design.cols + 11 * elements + 30 * soft + bend * elements ** 2
    flipflops = 400 + 25 * elements + 8 * design.rows * (design.rows - 1) / 2
    return Use(luts, flipflops, design.cols, elements + 2 - soft), soft


@pytest.mark.parametrize("name", NUMBERS)
def test_every_size_is_a_design(name):
    for rows, cols in sizes(name):
        design = NUMBERS[name].design(rows, cols)
        assert (design.rows, design.cols) == (rows, cols) and design.group == (1, COLUMNS)
        assert not design.blocked or design.format.terms == rows


@pytest.mark.parametrize("name", ["hbfp8", "int8", "fp16"])
def test_model_is_exact_where_costs_are_linear(name):
    model = fit(name, count)
    assert model.costs["luts"] == pytest.approx({"core": 500, "row": 7, "column": 90, "element": 11, "product": 30})
    assert model.costs["flipflops"]["pair of rows"] == pytest.approx(8)
    for rows, cols, blocks in ((8, 4, 34), (8, 4, 33), (64, 12, 40), (16, 8, 0)):
        use, _ = count(NUMBERS[name].design(rows, cols), blocks)
        assert asdict(model.use(rows, cols, blocks)) == pytest.approx(asdict(use))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("bend", [0, 1e-3, -2e-3])
def test_largest_fits_and_no_larger_one_does(share, bend):
    def bent(design, blocks):
        return count(design, blocks, bend)

    def fits(rows, cols):
        use, _ = bent(NUMBERS["fp16"].design(rows, cols), 40)
        return all(getattr(use, kind) <= share * getattr(DEVICE, kind) for kind in BINDING)
    found = largest("fp16", bent, DEVICE, share)
    assert fits(found.counted.rows, found.counted.cols) and found.counted.use.dsps <= 40
    assert all(found.shares[kind] <= share for kind in BINDING)
    assert found.binds == max(BINDING, key=found.shares.get)
    if not bend:
        most = max(rows * cols for rows in range(1, ROWS + 1) for cols in range(COLUMNS, 4 * ROWS + 1, COLUMNS)
                   if fits(rows, cols))
        assert found.elements == most
        assert found.guess.luts == pytest.approx(found.counted.use.luts)
    assert found.as_dict()["elements"] == found.elements


def test_of_equals_the_one_of_fewest_luts_comes_first():
    model = fit("fp16", count)
    found = candidates("fp16", model, DEVICE, 0.5)
    keys = [(-rows * cols, model.use(rows, cols, 40).luts) for rows, cols in found]
    assert keys == sorted(keys) and len(found) > 100


def test_nothing_fits():
    with pytest.raises(SynthError, match="^FP16: no core fits 1% of the device$"):
        largest("fp16", count, DEVICE, 0.01)


def row(name, rows, clock=None, placed=None):
    return {"name": name, "rows": rows, "cols": 10, "elements": 10 * rows, "clock": clock, "placed": placed}


def test_ratios():
    rows = compared([row("hbfp8", 80, 50.0, [80, 10]), row("fp16", 10, 80.0, (10, 10)), row("int8", 5),
                     row("hbfp4", 160, 90.0, [8, 4])])
    assert [each["ratio"] for each in rows] == [8, 1, 0.5, 16]
    assert [each["gmacs"] for each in rows] == [40, 8, None, None]
    assert [each["speed"] for each in rows] == [5, 1, None, None]
    alone = compared([row("hbfp8", 80, 50.0, [80, 10])])
    assert (alone[0]["ratio"], alone[0]["speed"], alone[0]["gmacs"]) == (None, None, 40)
    assert compared([]) == []
