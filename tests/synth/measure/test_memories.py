"""Memories in areas: a price a bit.

Covers: synth/measure/memories.py
"""

import pytest

from hbfp.design import Design
from hbfp.values import OptionError
from synth.command.core import make_parser, prepare
from synth.measure import memories
from synth.measure.area import COMPONENTS, Figures, Report


def report(bit):
    components = dict.fromkeys(COMPONENTS, Figures()) | {
        "elements": Figures(area=400), "accumulation": Figures(area=100, bits=300),
        "side unit": Figures(area=50, bits=7)}
    return Report("core", Design(), "area", None, {}, {}, components, 10, bit)


@pytest.mark.parametrize("bit", [0, 1.2, 4.3])
def test_each_bit_has_its_price(bit):
    """The core's bits beside its logic; those of the side unit only where that counts."""
    scopes = report(bit).scopes()
    assert (scopes["core"], scopes["core and side"]) == (50, 55)
    assert scopes["core and memories"] == pytest.approx(50 + 30 * bit)
    assert scopes["everything"] == pytest.approx(55 + 30.7 * bit)


def test_default_is_a_memory_with_two_ports():
    assert memories.BIT == memories.PRICES["two ports"]
    assert Report("core", Design(), "area", None, {}, {}, {}, 1).bit == memories.BIT


@pytest.mark.parametrize("value", ["-0.1", "100.5", "nan", "much"])
def test_wrong_price(value):
    arguments = make_parser().parse_args(["--memory-bit=" + value])
    with pytest.raises(OptionError, match=rf"^--memory-bit {value}: must be 0 to 100$"):
        prepare(arguments)
