"""A host beside a simulated system of LiteX: what it does goes over TCP, litex_server and the bridge's serial line."""

import numpy as np
import pytest

from cosim.accelerator.device import BusError
from cosim.simulate.verilator import BuildError
from cosim.system import bridged, firmware, soc
from tests.cosim.accelerator.built import ACCELERATOR

from .test_run import network
from .test_soc import LEVEL

pytest.importorskip("litex")
pytestmark = pytest.mark.cosim
__all__ = ["network"]    # the fixture


def test_a_host_recognises_digits(network):
    """Every number is PyTorch's; firmware does nothing but start the SDRAM."""
    try:
        firmware.compiler()
    except BuildError as error:
        pytest.skip(str(error))
    program, images, _, want = network
    ran = bridged.recognise(program, images, level=LEVEL)
    assert np.array_equal(ran.scores.view(np.uint32), want.view(np.uint32))


def test_a_system_that_does_not_start(monkeypatch):
    """A ROM with a loop alone: the SDRAM is not started, which is said."""
    monkeypatch.setattr(bridged, "LIMIT", 30_000)
    rom, memory = np.full(1 << 12, 0x6F, "<u4").view(np.uint8), np.zeros(soc.ROW, np.uint8)
    with soc.Soc(soc.emit_soc(ACCELERATOR), rom, memory, level=LEVEL) as model:
        with pytest.raises(BusError, match=r"^Cycle 3\d{4}: the firmware has not started the SDRAM$"):
            with bridged.served(model, 0xF000_1000):
                pass
        model.give(b"\2")
        with pytest.raises(BusError, match=r"^Cycle \d+: the bridge does not answer$"):
            model.answer(4, 100)
