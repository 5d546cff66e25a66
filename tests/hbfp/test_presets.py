"""Every preset is a design."""

import pytest

from hbfp.options import design_from_values
from hbfp.presets import PRESETS, SYSTEMS
from hbfp.system import Accelerator


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_a_design(name):
    design = design_from_values(PRESETS[name])
    for option, value in PRESETS[name].items():
        assert value in (getattr(design, option, None), getattr(design.format, option, None))


@pytest.mark.parametrize("name", SYSTEMS)
def test_preset_is_an_accelerator(name):
    system = design_from_values(SYSTEMS[name], Accelerator)
    assert all(getattr(system, option, getattr(system.core, option, None)) == value
               for option, value in SYSTEMS[name].items())


def test_names_say_what_they_are():
    assert design_from_values(PRESETS["default"]) == design_from_values({})
    assert design_from_values(SYSTEMS["full"], Accelerator) == Accelerator() and next(iter(SYSTEMS)) == "full"
    assert {name: design_from_values(PRESETS[name]).format.mantissa for name in ("hbfp4", "hbfp6", "hbfp8")} == {
        "hbfp4": 4, "hbfp6": 6, "hbfp8": 8}
