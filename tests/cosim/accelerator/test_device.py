"""The DRAM and the host on a stand-in that copies: times by the stated rule, responses, every broken rule named.

Covers: cosim/accelerator/device.py.
"""

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from cosim.accelerator.device import ANSWER, BusError, Device, Timing

pytestmark = pytest.mark.cosim
VERILOG = Path(__file__).with_name("master.v")
BEAT, LEN, SIZE = 32, 4, 1 << 16
START, STATUS, SOURCE, TARGET, BURSTS, FAULT, CLEAR, REFUSED = 0x40, 0x44, 0x50, 0x54, 0x58, 0x5C, 0x70, 0xFFC
DONE, ERROR = 2, 4


@pytest.fixture(scope="module")
def opened():
    memory = np.zeros(SIZE, np.uint8)
    with Device(VERILOG, "master", beat=BEAT, memory=memory, burst=16, level="-O1") as device:
        yield device


@pytest.fixture
def device(opened):
    opened.reset()
    opened.heal()
    opened.set_pauses(0)
    opened.set_timing(Timing(20, BEAT))
    opened.memory[:] = np.random.default_rng(0).integers(0, 256, SIZE)
    yield opened
    with suppress(BusError):
        opened.write(FAULT, 0)


def copy(device, source=0x1000, target=0x8000, bursts=3, limit=10_000):
    """Copy, and the cycles from the first one in which the address of a read is offered to the interrupt."""
    for register, value in ((SOURCE, source), (TARGET, target), (BURSTS, bursts), (CLEAR, 1)):
        device.write(register, value)
    device.record()
    device.write(START, 1)
    done = device.run(limit)
    events = device.events()
    begin = events["cycle"][events["waiting"] == 2][0]
    return device.cycle - begin if done else None


@pytest.mark.parametrize("latency, bandwidth, cycles", [
    (1, 32, 12), (20, 32, 50), (20, 64, 50),    # 2 latencies and 10: 4 beats each way, 2 addresses
    (7, 16, 24 + 6), (7, 24, 24 + 2),           # half the bandwidth: 3 beats a cycle later; three quarters: 1
    (50, 8, 110 + 9 + 10)])                     # the first write waits a cycle for what the last read took
def test_copies_take_the_time_that_the_rule_says(device, latency, bandwidth, cycles):
    device.set_timing(Timing(latency, bandwidth))
    before = device.memory.copy()
    assert copy(device) == 3 * cycles
    length = 3 * LEN * BEAT
    before[0x8000:0x8000 + length] = before[0x1000:0x1000 + length]
    assert np.array_equal(device.memory, before)
    assert device.read(STATUS) == DONE and device.read(SOURCE) == 0x1000 + length


def test_pauses_change_times_alone(device):
    before = device.memory.copy()
    usual = copy(device)
    device.memory[:] = before
    device.set_pauses(0.5)
    assert copy(device) > usual
    before[0x8000:0x8180] = before[0x1000:0x1180]
    assert np.array_equal(device.memory, before)


def test_events_and_counts(device):
    begun, before = device.counts, device.cycle
    copy(device, bursts=2)
    events = device.events()
    assert device.counts[:2] == (begun[0] + 8, begun[1] + 8) and before < device.counts[2] < device.cycle
    reads = events[events["completed"] == 1]
    assert (reads["reads"] - begun[0]).tolist() == [4, 8] and (reads["writes"] - begun[1]).tolist() == [0, 4]
    assert events["started"].nonzero()[0].size == 3 and (events["completed"] == 2).sum() == 2
    device.record(False)
    copy_events = device.events()
    assert len(copy_events) == 0


@pytest.mark.parametrize("begin, source, target", [(0x1080, 0x1000, 0x8000), (0x8080, 0x1000, 0x8000)])
def test_poisoned_bytes_answer_with_an_error_and_stay(device, begin, source, target):
    before = device.memory.copy()
    device.poison(begin, begin + 1)
    copy(device)
    assert device.read(STATUS) == DONE | ERROR
    assert np.array_equal(device.memory[0x8080:0x80A0], before[0x8080:0x80A0]) == (begin == 0x8080)


@pytest.mark.parametrize("source, target", [(SIZE - 256, 0x8000), (0x1000, SIZE - 256)])
def test_addresses_beyond_the_memory_answer_with_an_error(device, source, target):
    copy(device, source, target)
    assert device.read(STATUS) == DONE | ERROR


def test_silent_reads_never_answer(device):
    device.silence(0x1080, 0x1081)
    assert copy(device) is None
    assert device.read(STATUS) == 1
    device.heal()
    device.reset()
    assert copy(device) is not None


def test_refused_and_silent_registers(device):
    assert device.write(REFUSED, 0) == 2 and device.write(SOURCE, 0) == 0
    with pytest.raises(BusError, match=r"^Cycle \d+: register 0xffc answered a read with response 2$"):
        device.read(REFUSED)
    device.write(FAULT, 9)
    with pytest.raises(BusError, match=rf"^Cycle \d+: no answer to a write of register 0x5c in {ANSWER} cycles$"):
        device.write(FAULT, 0)


FAULTS = {
    1: "the payload of ar changed before arready was high", 2: "arvalid fell before arready was high",
    3: "aw burst of 4 beats at 0x8fe0 crosses 4 KiB", 4: "arvalid, awvalid and wvalid must be low in reset",
    5: "the payload of w changed before wready was high", 6: "araddr must be a multiple of 32, not 0x1001",
    7: "wlast must be 0 in beat 3 of a burst of 4, not 1", 8: "awburst must be 1 (INCR), not 0",
    10: "s_axil_rvalid is high without a read", 11: "s_axil_bvalid is high without a write",
    12: "the payload of s_axil_r changed before s_axil_rready was high",
    13: "s_axil_bvalid fell before s_axil_bready was high"}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_rules_are_named(device, fault):
    device.set_pauses(0.5)
    with pytest.raises(BusError, match=rf"^Cycle \d+: {re.escape(FAULTS[fault])}$"):
        device.write(FAULT, fault)
        copy(device, bursts=40)
        for _ in range(10):
            device.read(STATUS)
        device.idle(10)
        device.reset()


def test_longest_burst(device):
    with Device(VERILOG, "master", beat=BEAT, memory=device.memory, burst=3, level="-O1") as short:
        with pytest.raises(BusError, match=r"^Cycle \d+: arlen must be below 3, not 3$"):
            copy(short)


def test_memory_must_be_shared():
    message = "The memory must be bytes in one row, not float64 of (4,)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Device(VERILOG, "master", beat=BEAT, memory=np.zeros(4))
