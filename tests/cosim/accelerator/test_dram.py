"""The cycle model's DRAM takes the same cycles as the simulated one, at any latency and bandwidth.

Covers: golden/perf/accelerator/dram.py.
"""

from pathlib import Path

import numpy as np
import pytest
from numba import njit

from cosim.accelerator.device import Device, Timing
from golden.perf.accelerator import dram

pytestmark = pytest.mark.cosim
BEAT, LEN = 32, 4
#: The parts, compiled once more with a way in from Python.
BEGIN, END = njit(dram.begin.py_func), njit(dram.end.py_func)


def modelled(timing, bursts):
    """Cycles of the stand-in's copies: address, beats, address, beats, response; again."""
    state = dram.fresh(timing.latency, timing.bandwidth, BEAT)
    at, cycle, beat = "read", 0, 0
    while bursts:
        BEGIN(state, cycle)
        ready = {"read": "ar_ready", "take": "r_valid", "write": "aw_ready", "put": "w_ready", "answer": "b_valid"}[at]
        moves, last = state[ready], state["r_last"] if at == "take" else beat == LEN - 1
        END(state, cycle, LEN * (at == "read"), LEN * (at == "write"), at == "put", at == "take", at == "answer")
        cycle += 1
        if at in ("take", "put") and moves:
            beat = 0 if last else beat + 1
        if moves and (at not in ("take", "put") or last):
            bursts -= at == "answer"
            at = {"read": "take", "take": "write", "write": "put", "put": "answer", "answer": "read"}[at]
    return cycle


def test_same_cycles():
    memory = np.zeros(1 << 16, np.uint8)
    rng = np.random.default_rng(0)
    timings = [Timing(1, 32), Timing(20, 32), Timing(20, 64), Timing(7, 16), Timing(7, 24), Timing(50, 8)]
    timings += [Timing(int(rng.integers(1, 60)), int(rng.integers(1, 70))) for _ in range(20)]
    with Device(Path(__file__).with_name("master.v"), "master", beat=BEAT, memory=memory, level="-O1") as device:
        for timing in timings:
            device.set_timing(timing)
            device.idle(64)    # until the credit is full
            for register, value in ((0x50, 0x1000), (0x54, 0x8000), (0x58, 5), (0x70, 1)):
                device.write(register, value)
            device.record()
            device.write(0x40, 1)
            assert device.run(100_000)
            events = device.events()
            found = device.cycle - events["cycle"][events["waiting"] == 2][0]
            assert found == modelled(timing, 5), timing
