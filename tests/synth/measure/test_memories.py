"""Memories in areas: as macros by their shape, or a price a bit.

Covers: synth/measure/memories.py
"""

import pytest

from hbfp import macros
from hbfp.design import Design
from hbfp.manifest import Module
from hbfp.values import OptionError
from synth.command.core import make_parser, prepare
from synth.measure import memories
from synth.measure.area import COMPONENTS, Figures, Report, memory


def report(bit):
    components = dict.fromkeys(COMPONENTS, Figures()) | {
        "elements": Figures(area=400), "accumulation": Figures(area=100, bits=300, macros=90),
        "side unit": Figures(area=50, bits=7, macros=40)}
    return Report("core", Design(), "area", None, {}, {}, components, 10, bit)


@pytest.mark.parametrize("bit", [0, 1.2, 4.3])
def test_each_bit_has_its_price(bit):
    """The core's bits beside its logic; those of the side unit only where that counts."""
    scopes = report(bit).scopes()
    assert (scopes["core"], scopes["core and side"]) == (50, 55)
    assert scopes["core and memories"] == pytest.approx(50 + 30 * bit)
    assert scopes["everything"] == pytest.approx(55 + 30.7 * bit)


def test_without_a_price_memories_are_macros():
    scopes = report(None).scopes()
    assert (scopes["core and memories"], scopes["everything"]) == (59, 68)
    assert Report("core", Design(), "area", None, {}, {}, {}, 1).bit is None
    assert (memories.label(None), memories.label(1.2)) == ("as macros", "1.2 a bit")


def test_macros_follow_from_the_shape_of_a_memory():
    wide, deep = (Module("ram", 1, None, True, 4, shape) for shape in ((64, 512), (1024, 32)))
    assert wide.bits == deep.bits == 2 ** 15
    assert memory(wide) == Figures(bits=2 ** 15, macros=macros.memory(64, 512).area)
    assert memory(deep).macros < memory(wide).macros / 3
    assert memory(Module("lane", 1, None, None, 4)) == Figures()
    assert (memory(deep) * 3 + memory(deep)).macros == pytest.approx(4 * memory(deep).macros)


@pytest.mark.parametrize("value", ["-0.1", "100.5", "nan", "much"])
def test_wrong_price(value):
    arguments = make_parser().parse_args(["--memory-bit=" + value])
    with pytest.raises(OptionError, match=rf"^--memory-bit {value}: must be 0 to 100$"):
        prepare(arguments)
