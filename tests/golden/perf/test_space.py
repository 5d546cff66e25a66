"""The analytic design space: the published points, the constants and their sources.

Covers: golden/perf/constants.py, golden/perf/prices.py, golden/perf/workloads.py.
"""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from golden.perf.accelerator.energy import EnergyConstants
from golden.perf.constants import SETS, Constants, published
from golden.perf.pods.power import PodConstants
from golden.perf.prices import BOOK, NAND2, as_dict, override
from golden.perf.space import best, front, sweep
from golden.perf.workloads import WORKLOADS, lstm, resnet50
from hbfp.figures import figure

ROOT = Path(__file__).resolve().parents[3]


def toy(rows, columns):
    """The model of the published slides: power / n, throughput / n and latency of r rows and c / n columns; n is large.

    An access to SRAM costs as much as ten operations: power 10 c + 10 r + r c (10 r vanishes beside n), throughput r c,
    latency n / c.
    """
    return (10 + rows) * columns, rows * columns, 1 / columns


@pytest.mark.parametrize("rows, columns, power, throughput, latency", [
    (1, Fraction(1), 11, 1, 1), (2, Fraction(1), 12, 2, 1), (4, Fraction(1, 2), 7, 2, 2),
    (12, Fraction(1, 2), 11, 6, 2)])
def test_toy_model_has_the_four_points_of_the_slides(rows, columns, power, throughput, latency):
    assert toy(rows, columns) == (power, throughput, latency)


def test_published_point_of_50_us():
    constants, _ = published("hbfp8")
    points = sweep(constants, lstm())
    chosen = best(points, 50)
    assert (chosen.rows, chosen.columns, chosen.ghz) == (14, 20288, 0.55)
    assert 290 <= chosen.tops <= 350
    one = best([each for each in points if each.rows == 1])
    assert 5.7 <= round(best(points, 500).tops / one.tops, 1) <= 7.5


@pytest.mark.parametrize("weight_pj, one, fifty", [(4.0, 52, 293), (2.7, 68, 321)])
def test_energy_of_a_weight_moves_the_optimum(weight_pj, one, fifty, tmp_path):
    (tmp_path / "own.toml").write_text(f"weight_pj = {weight_pj}\n")
    constants, sources = override(*published("hbfp8"), tmp_path / "own.toml")
    points = sweep(constants, lstm())
    assert round(best([each for each in points if each.rows == 1]).tops) == one
    assert round(best(points, 50).tops) == fifty
    assert sources["weight_pj"] == str(tmp_path / "own.toml")


@pytest.mark.parametrize("kind, number", [*(("published", number) for number in NAND2),
                                          *(("measured", number) for number in ("hbfp8", "hbfp6", "hbfp4"))])
def test_table_of_the_page(kind, number):
    """As ``python -m golden space`` prints it; figures that were published elsewhere stand in brackets."""
    points = sweep(SETS[kind](number)[0], lstm())
    one, fifty, most = best([each for each in points if each.rows == 1]), best(points, 50), best(points, 500)
    row = (f"{one.tops:.0f} | {fifty.tops:.0f} | {most.tops:.0f} | {most.tops / one.tops:.2f} | "
           f"{fifty.rows}, {fifty.columns}, {fifty.ghz:g} GHz |")
    page = re.sub(r" \([\d.]+ published\)|\*\*", "", (ROOT / "docs/dispatch.md").read_text())
    name = number if number == "int8" else number.upper()
    heading = ", published constants" if (kind, number) == ("published", "hbfp8") else \
        ", areas measured here" if (kind, number) == ("measured", "hbfp8") else ""
    first, second = page.split("| HBFP8, areas measured here |")
    assert f"| {name}{heading} | {row}" in (first if kind == "published" else
                                            "| HBFP8, areas measured here |" + second)


def test_points_keep_area_and_power():
    for name, kinds in SETS.items():
        constants, _ = kinds("hbfp4")
        for point in sweep(constants, lstm()):
            assert point.mm2 <= constants.area_mm2 and point.watts <= constants.power_w, name
            assert point.columns % constants.array_columns == 0


def test_front_holds_what_no_point_beats():
    points = sweep(published("hbfp8")[0], lstm())
    found = front(points)
    assert [each.tops for each in found] == sorted(each.tops for each in found)
    for bound in (20, 50, 100, 500):
        assert best(points, bound) in found


def test_every_constant_has_a_unit_and_a_source():
    for kinds in SETS.values():
        for number in NAND2:
            for name, entry in as_dict(*kinds(number)).items():
                assert entry["unit"] and entry["source"] and entry["value"] > 0, name


def test_every_price_is_one_entry():
    """A model of cost takes it from the book, whatever the model calls it."""
    names = [name for part in figure("prices").values() for name in part]
    assert len(names) == len(set(names)) == len(BOOK)
    for name, entry in BOOK.items():
        assert entry.unit and entry.source and isinstance(entry.value, int | float), name
    models = (Constants(), PodConstants(), EnergyConstants())
    assert len({each.mac_pj for each in models}) == 1
    assert models[0].activation_pj == models[1].bank_pj == models[2].sram256_pj == BOOK["sram256_pj"].value


def test_workloads_have_their_published_arithmetic():
    macs = {name: sum(each.macs for each in products) for name, (products, _) in WORKLOADS.items()}
    assert macs["lstm"] == 15 * 4096 * 8192
    assert macs["resnet50"] == pytest.approx(4.089e9, rel=1e-3)
    assert macs["bert"] == 12 * (4 * 128 * 768**2 + 2 * 128 * 128 * 768 + 2 * 128 * 768 * 3072)
    assert len(resnet50()) == 54


@pytest.mark.parametrize("text, message", [
    ("nope = 1\n", r"unknown constant 'nope'; valid are mac_pj, .*step_cycles"),
    ("mac_pj = -1\n", r"mac_pj must be a number above 0 and below 1e12, not -1"),
    ("mac_pj = true\n", r"mac_pj must be a number above 0 and below 1e12, not True"),
    ("array_columns = 1.5\n", r"array_columns must be a whole number, not 1\.5"),
    ("mac_pj = ", r"is not TOML \(.*\)")])
def test_wrong_constants(text, message, tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}$"):
        override(*published("hbfp8"), path)
