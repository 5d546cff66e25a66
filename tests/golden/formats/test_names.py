"""Formats by name."""

import re
from pathlib import Path

import pytest

from golden.formats import names
from golden.spec.numbers import ALIASES, NUMBERS
from hbfp.format import HBFPFormat


@pytest.mark.parametrize("name, fmt", [
    ("hbfp8", HBFPFormat()), ("HBFP16", HBFPFormat(mantissa=16)), ("hbfp6_576", HBFPFormat(mantissa=6, block=(24, 24))),
    ("hbfp4_1x64", HBFPFormat(mantissa=4, block=(1, 64))), ("bfp5_1x16_e8", HBFPFormat(mantissa=5, exponent=8,
                                                                                       block=(1, 16))),
    ("hbfp4-sr", HBFPFormat(mantissa=4, rounding="stochastic")), ("bfp8_e5", HBFPFormat(exponent=5)),
    ("msfp12", HBFPFormat(mantissa=4, exponent=8, block=(1, 16))),
    ("msfp16", HBFPFormat(mantissa=8, exponent=8, block=(1, 16)))])
def test_hbfp(name, fmt):
    assert names.read(name) == fmt


def test_numbers():
    for name, number in NUMBERS.items():
        assert names.read(name.upper()) is number and names.words(number) == name and names.bits(number) == number.bits
    for name, other in ALIASES.items():
        assert names.read(name) is NUMBERS[other]


def test_bits_count_what_is_shared():
    shared = {"hbfp8": 8.3125, "hbfp4_1x64": 4.15625, "hbfp8_576": 8 + 10 / 576, "msfp12": 4.5, "mxfp8": 8.25,
              "mxfp6": 6.25, "mxfp4": 4.25, "nvfp4": 4.5, "int8": 8, "bf16": 16}
    assert {name: names.bits(names.read(name)) for name in shared} == shared


@pytest.mark.parametrize("name", ["hbfp1", "hbfp17", "hbfp", "msfp11", "mxfp5", "int8-column", "fp32", ""])
def test_wrong_names(name):
    with pytest.raises(ValueError, match=f"^{re.escape(f'Name of a format {names.rule()}, not {name!r}')}$"):
        names.read(name)


def test_a_tile_is_square():
    with pytest.raises(ValueError, match="'hbfp8_12': 12 elements are no square tile$"):
        names.read("hbfp8_12")
    with pytest.raises(ValueError, match="^Exponent width must be 5 to 16 bits, not 4$"):
        names.read("hbfp8_e4")


def test_page_lists_all():
    page = (Path(__file__).parents[3] / "docs/formats.md").read_text()
    assert re.search(r"<!-- names: -->\n(.*?)\n<!-- /names -->", page, re.DOTALL)[1] == names.table()
