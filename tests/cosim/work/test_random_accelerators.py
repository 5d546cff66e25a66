"""Accelerators drawn over all options: possible, the same for a number, and every option takes several values."""

from cosim.work.random_accelerators import RECODED, draw
from hbfp import describe
from hbfp.declared import ACCELERATOR
from hbfp.design import Design
from hbfp.system import Accelerator

DRAWN = [draw(1, number) for number in range(150)]


def test_every_option_takes_several_values():
    """But those that an accelerator may not have, and what has no use here."""
    without = {*describe.unserved(Design, ACCELERATOR)}
    values = [describe.flat(system) for system in DRAWN]
    assert {name for name in describe.declared(Accelerator) if len({each[name] for each in values}) == 1} == without


def test_sides():
    """About half of them are square."""
    assert {(each.core.rows, each.lanes) for each in DRAWN} == {(8, 8), (4, 8), (8, 4), (4, 16), (16, 4)}
    assert 0.3 < sum(each.oblong for each in DRAWN) / len(DRAWN) < 0.7


def test_a_number_stands_for_one():
    assert DRAWN[7] == draw(1, 7) != draw(2, 7) and len(set(DRAWN)) == len(DRAWN)


def test_recoded_multipliers_are_small():
    cores = [each.core for each in DRAWN if each.core.multiplier == "recoded"]
    assert max(core.number.bits or core.format.mantissa for core in cores) == RECODED
