"""Memories as macros: every macro of the kit by the law, and the smallest way to build a memory.

Covers: hbfp/macros.py.
"""

import pytest

from hbfp.figures import figure
from hbfp.macros import LEAST_COLUMNS, LEAST_ROWS, MUXES, memory, size

MACROS = figure("macros.macros")


@pytest.mark.parametrize("macro", MACROS.values(), ids=list(MACROS))
def test_the_law_gives_every_macro(macro):
    """Two of them are drawn on a coarser grid of 0.02 micrometres."""
    assert size(*(macro[name] for name in ("words", "width", "mux", "ports"))) == pytest.approx(
        (macro["x"], macro["y"]), abs=0.025)


@pytest.mark.parametrize("ports, words, width", [(1, 1024, 64), (1, 8192, 32), (2, 1024, 32),
                                                  (2, 512, 32), (2, 64, 32)])
def test_a_memory_of_a_macros_size_is_that_macro_or_less(ports, words, width):
    macro = MACROS[f"p{ports}_{words}x{width}"]
    found = memory(words, width, ports)
    assert found.macros >= 1
    assert found.area <= macro["x"] * macro["y"] / figure("macros.nand2_um2") * 1.0001


def test_a_large_memory_takes_what_is_published():
    """75 MB of 28 nm: 0.2448 square micrometres a bit, and 0.49 of them a NAND2."""
    published = figure("prices.areas.sram_um2")["value"] / figure("prices.areas.nand2_um2")["value"]
    found = memory(2 ** 14, 2048, 1)
    assert found.area / (2 ** 14 * 2048) == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize("words, width, macros", [(16, 32, 0), (31, 8, 0), (32, 32, 1), (64, 32, 1), (1024, 33, 2),
                                                  (1025, 32, 2), (4096, 64, 8)])
def test_small_memories_are_flip_flops_and_large_ones_several_macros(words, width, macros):
    found = memory(words, width)
    assert found.macros == macros
    assert found.words * found.width * max(macros, 1) >= words * width
    if not macros:
        assert found.area == words * width * figure("prices.areas.register_bit")["value"]


@pytest.mark.parametrize("ports, words, width", [(1, 10834, 1221), (1, 39594, 344), (2, 5937, 1090), (2, 778, 1091),
                                                 (2, 16384, 100), (1, 48, 9), (2, 4096, 266)])
def test_no_number_of_macros_takes_less(ports, words, width):
    """By every number of words and every width that a macro can have."""
    law, ways = figure(f"macros.law.p{ports}"), []
    for mux in (mux for mux in MUXES if mux <= law["mux"]):
        for deep in {-(-words // (rows * mux)): rows for rows in range(law["rows"], LEAST_ROWS - 1, -1)}.items():
            for bits in range(LEAST_COLUMNS // mux, law["columns"] // mux + 1):
                x, y = size(deep[1] * mux, bits, mux, ports)
                ways.append(deep[0] * -(-width // bits) * x * y / figure("macros.nand2_um2"))
    found = memory(words, width, ports)
    assert found.macros and found.area == pytest.approx(min(ways), rel=1e-12)


def test_one_port_takes_less_than_two():
    for words, width in ((64, 8), (512, 32), (4096, 266)):
        assert memory(words, width, 1).area < memory(words, width, 2).area


def test_prices_on_the_page_are_those_of_the_law():
    for row in figure("macros.bit").values():
        assert [memory(row["words"], 32, ports).area / (row["words"] * 32) for ports in (1, 2)] == pytest.approx(
            [row["one"], row["two"]], abs=1e-4)
