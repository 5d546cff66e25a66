"""The estimate: sums of stated energies, and throughput on a stated area."""

from collections import Counter

import pytest

from golden.perf.accelerator.energy import MEASURED, EnergyConstants, add, constants_for, kilobytes, picojoules
from golden.perf.prices import NAND2
from hbfp.design import Design
from hbfp.figures import figure
from hbfp.format import HBFPFormat
from hbfp.options import design_from_values
from hbfp.system import Accelerator

CORE = NAND2["hbfp8"]
SYSTEM = Accelerator(core=Design(rows=32, cols=32, format=HBFPFormat(mantissa=8, block=(1, 32))))


def test_sizes_and_prices():
    """The default: X of 8192 words of 267 bits, W of 4096 rows of 256 and 11 bits, V of 4096 of 1024."""
    assert kilobytes(SYSTEM) == {"sums": 64.0, "X": 8192 * 267 / 8192, "W": 4096 * (256 + 11) / 8192, "V": 512.0,
                                 "P": 4.0}
    counts = dict.fromkeys(("array", "vector", "sums", "X", "W", "V", "P", "DRAM"), 1000)
    assert picojoules(counts, SYSTEM, EnergyConstants()) == pytest.approx({
        "array": 400, "vector": 4600, "sums": 1100, "X": 4100, "W": 2700, "V": 4100, "P": 1100, "DRAM": 31200})


def test_rows():
    rows = [{"macs": 2048, "cycles": 100}, {"macs": 0, "cycles": 50}]
    whole = add(rows, [Counter(array=2048), Counter(DRAM=10, vector=0)], SYSTEM, 2.0, EnergyConstants(ghz=0.5))
    assert [row["gmacs_mm2"] for row in rows] == [pytest.approx(2048 * 0.5 / 200), None]
    assert [row["energy_uj"] for row in rows] == pytest.approx([819.2e-6, 312e-6])
    assert rows[0]["energy_pj_mac"] == pytest.approx(0.4) and rows[1]["energy_pj_mac"] is None
    assert whole["gmacs_mm2"] == pytest.approx(2048 * 0.5 / 300)
    assert whole["energy_uj"] == pytest.approx(1131.2e-6) and whole["energy_pj_mac"] == pytest.approx(1131.2 / 2048)


@pytest.mark.parametrize("name, values", [("hbfp4", {"format": HBFPFormat(mantissa=4)}),
                                          ("fp32", {"arithmetic": "fp32"}),
                                          ("int8", {"arithmetic": "int8"})])
def test_energy_of_a_product_is_the_measured_one(name, values):
    """Without the accumulators' accesses, which are counted apart, and with the leakage of a period at 1 GHz."""
    constants, sources = constants_for(Design(rows=32, cols=32, **values), CORE / 2, None)
    own, period = figure(f"energy.cores.{name}"), figure("energy.period")
    assert constants.mac_pj * 1000 == pytest.approx(
        own["core"] - own["sums"] - own["leakage"] + own["leakage"] / period / constants.ghz)
    assert "measured" in sources["mac_pj"] and "proportion" not in sources["mac_pj"]
    assert set(sources) == set(EnergyConstants.__dataclass_fields__)


def test_energy_of_another_product_is_in_proportion_to_its_area():
    of = [constants_for(Design(rows=32, cols=32, format=HBFPFormat(mantissa=mantissa)), CORE / 2, None)
          for mantissa in (8, 5)]
    assert of[1][0].mac_pj == pytest.approx(of[0][0].mac_pj / 2)
    assert f"{CORE / 2:.1f} of {CORE:.1f} NAND2" in of[1][1]["mac_pj"]


def test_constants_of_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("dram_pj = 20\n")
    constants, sources = constants_for(SYSTEM.core, CORE, path)
    assert constants.dram_pj == 20 and sources["dram_pj"] == str(path) and constants.mac_pj != 20
    for text, line in (("dram_pj = 0", "dram_pj must be a number above 0 and below 1e12, not 0"),
                       ("x = 1", "unknown constant 'x'; valid are ghz, ")):
        path.write_text(text)
        with pytest.raises(ValueError, match=line):
            constants_for(SYSTEM.core, CORE, path)


@pytest.mark.parametrize("words, recipe, cores, otherwise", [
    ({}, "area", "energy.cores.hbfp8", ""), ({}, "adders", "energy_smaller.adders.hbfp8", ""),
    ({"rows": 64, "cols": 16, "block": (1, 64)}, "adders", "energy_smaller.tall.hbfp8", ""),
    ({"rows": 64, "cols": 16, "block": (1, 64), "weight_clock": "gated"}, "adders", "energy_smaller.tall.hbfp8",
     "; this one has --weight-clock gated"),
    ({"rows": 64, "cols": 16, "block": (1, 64)}, "area", "energy.cores.hbfp8",
     "; this one has --block 1,64 --rows 64 --cols 16"),
    ({"rows": 8, "block": (1, 8)}, "adders", "energy.cores.hbfp8",
     "; this one has --block 1,8 --rows 8 --cols 8 --recipe adders"),
    ({"arithmetic": "fp32"}, "adders", "energy.cores.fp32", "; this one has --pipeline 0 --recipe adders")])
def test_which_core_a_product_s_energy_is_of(words, recipe, cores, otherwise):
    """Of the measured core with the array's shape and recipe, or of that of 32 x 32; what differs is said."""
    constants, sources = constants_for(design_from_values(words), CORE, None, recipe)
    own, period = figure(cores), figure("energy.period")
    assert constants.mac_pj * 1000 == pytest.approx(own["core"] - own["sums"] - own["leakage"] * (1 - 1 / period))
    made, rows, columns = MEASURED[cores.rpartition(".")[0]]
    said = sources["mac_pj"]
    assert f"a core of {rows} x {columns} for {cores.rpartition('.')[2].upper()}, recipe {made}, " in said
    assert said.partition(" GHz")[2] == otherwise
