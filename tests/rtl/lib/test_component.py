# amaranth: UnusedElaboratable=no
"""Cells are logic by themselves, and instances where a platform places them."""

from dataclasses import dataclass

import pytest
from amaranth import Instance, Module
from amaranth.lib.wiring import In, Out

from hbfp.design import Design
from rtl.core.core import Core
from rtl.lib.component import Component
from rtl.lib.memory import Ram
from rtl.lib.names import parameter


class Half(Component):
    """The smallest cell: wires."""
    kind = "half"

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("w")
        rule: str = parameter("r", "x")

    @staticmethod
    def ports(params):
        return {"i": In(params.width), "o": Out(params.width)}

    def body(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.i >> 1)
        return m


class Placing:
    """A platform that places every cell, or none."""

    def __init__(self, wanted):
        self.wanted, self.seen = wanted, []

    def place(self, cell):
        self.seen.append(cell)
        return Instance(cell.module) if self.wanted else None


def test_name_says_kind_and_parameters():
    assert Half(5).module == "hbfp_half_w5" and Half(5, "y").module == "hbfp_half_w5_ry"
    assert Ram(8, 12, 3).module == "hbfp_ram_d8_w12_g3"
    assert Core.of(Design()).module == Design().name


def test_alone_it_is_its_logic():
    assert isinstance(Half(4).elaborate(None), Module)


@pytest.mark.parametrize("wanted, what", [(True, Instance), (False, Module)])
def test_platform_decides(wanted, what):
    cell, platform = Half(4), Placing(wanted)
    assert isinstance(cell.elaborate(platform), what)
    assert platform.seen == [cell]


def test_body_is_the_subclass_s_task():
    class Empty(Component):
        """Has no logic."""
        kind = "empty"

        @staticmethod
        def ports(params):
            return {"i": In(1)}
    with pytest.raises(NotImplementedError):
        Empty().elaborate(None)
