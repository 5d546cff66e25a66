"""The watch-dog waits for as many cycles as it is told, whichever of its 32 bits they have."""

import pytest

from hbfp.isa.registers import Cause
from rtl.accelerator.control import PATIENCE

from .test_accelerator import BASE, HALT, device, finish, load, opened, read, start, write

__all__ = ["device", "opened"]
pytestmark = pytest.mark.cosim


def waits(device, watchdog):
    """Begin to wait for data that never come."""
    device.reset()
    device.silence(BASE, BASE + 32)
    start(device, [load(), HALT], watchdog=watchdog)


@pytest.mark.parametrize("bit", range(11, 32))
def test_a_long_time_is_not_a_short_one(device, bit):
    waits(device, 300 | 1 << bit)
    device.idle(1500)
    assert read(device, "status") == 1
    write(device, control=2)
    assert finish(device)[1] == Cause.STOPPED


def test_a_time_is_as_long_as_it_is(device):
    """Behind it the bus, which never answers, is waited for; a few cycles are the host's."""
    waits(device, 0x5555)
    began = device.cycle
    assert finish(device) == (False, Cause.WATCHDOG, 2)
    assert 0 < device.cycle - began - 0x5555 - PATIENCE < 64
