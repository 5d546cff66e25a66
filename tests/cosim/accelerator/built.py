"""The Verilated accelerators that tests share: 8 x 8 with small memories, built for a quick build.

The vector unit of one has fewer lanes than columns, which share evaluators, and its memories have one port, and parity;
that of the other has as many of all, and memories of two ports, without parity.
"""

from dataclasses import replace

import numpy as np

from cosim.accelerator.device import Device, Timing
from cosim.emit import emit_accelerator
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator

ACCELERATOR = Accelerator(
    core=Design(rows=8, cols=8, depth=32, format=HBFPFormat(mantissa=8, block=(1, 8))), x_words=128, w_words=128,
    v_words=256, p_words=64, row_words=4, vector_rows=4, vector_lanes=4, function_lanes=2, memory_banks=2,
    reads=3, burst=6, parity=True)
#: The same for an FPGA: registers inside the core, and inside products, sums and functions of the vector unit.
FPGA = replace(ACCELERATOR, core=replace(ACCELERATOR.core, pipeline=4, fabric="fpga"))
#: The same with two contexts, memories of which four sixteenths are enough for a random program, and a gated clock.
TWO = replace(ACCELERATOR, core=replace(ACCELERATOR.core, weight_clock="gated"), x_words=256, w_words=256,
              v_words=256, p_words=128, contexts=2, vector_lanes=8, function_lanes=8, memory_banks=0, reads=8,
              burst=16, parity=False)
#: The same with a dispatcher, and a ring of descriptors.
DISPATCHED = replace(TWO, dispatch=16, dispatch_batch=4, dispatch_ring=True)
LEVEL = "-O0"
SIZE = 1 << 18


def renewed(device, *timing):
    """A device that has forgotten what was before, DRAM of this timing."""
    device.heal()
    device.place(0)
    device.reset()
    device.set_timing(Timing(*timing))
    return device


def opened(accelerator=ACCELERATOR, size=SIZE):
    """An accelerator and its manifest; ``size`` bytes of DRAM."""
    manifest = emit_accelerator(accelerator)
    memory = np.zeros(size, np.uint8)
    return manifest, Device(manifest.verilog, manifest.top, beat=accelerator.beat, memory=memory,
                            burst=accelerator.burst, contexts=accelerator.contexts, level=LEVEL)
