"""cocotb tests of one converter lane, FP32 to mantissa; run by :mod:`cosim.bench.runner`."""

import os
from dataclasses import replace

import cocotb
import numpy as np
from cocotb.triggers import Timer

from hbfp.format import HBFPFormat
from hbfp.golden.bfp import encode

from ...manifest import Manifest
from ..awkward import awkward_blocks
from ..comparison import WrongBits
from ..coverage import Coverage
from ..directed import directed_blocks

MANIFEST = Manifest.load(os.environ["HBFP_MANIFEST"])
DESIGN = MANIFEST.design
SEED = int(os.environ.get("HBFP_SEED", "1"))
ELEMENTS = 4000    # of each sort, at least


def decisions(rng: np.random.Generator, count: int, elements: int, fmt: HBFPFormat) -> np.ndarray:
    """Blocks about what rounding looks at: fractions cut off anywhere with one bit below, subnormals beside all."""
    top = np.where(rng.random(count) < 0.5, rng.integers(1, 12, count), rng.integers(12, 255, count))[:, None]
    field = np.maximum(top - rng.integers(0, fmt.magnitude + 4, (count, elements)), 0)
    field[rng.random((count, elements)) < 0.1] = 0
    field[:, 0] = top[:, 0]
    cut, bit = rng.integers(0, 24, (2, count, elements))
    fraction = rng.integers(0, 1 << 23, (count, elements)) >> cut << cut
    fraction |= np.where(rng.random((count, elements)) < 0.7, 1 << bit, 0) & (1 << 23) - 1
    sign = rng.integers(0, 2, (count, elements))
    return (sign << 31 | field << 23 | fraction).astype(np.uint32)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def mantissas_equal_golden(dut):
    """Blocks of all kinds, element by element, with the exponent that the golden model finds; of either width."""
    coverage = Coverage(DESIGN, "encode_lane")
    if DESIGN.wide:
        await judge(dut, DESIGN.widest)
    bits, want = await judge(dut, DESIGN.format)
    coverage.conversion(bits, want)
    coverage.compared = bits.size
    coverage.save(os.environ["HBFP_COVERAGE"])


async def judge(dut, fmt):
    """Compare mantissas of a format; bit patterns of the blocks, and the fields that a converter gives for them."""
    rng = np.random.default_rng(SEED)
    elements = DESIGN.encode_beats * DESIGN.encode_lanes
    flat = replace(fmt, block=(1, elements))
    count = max(400, ELEMENTS // elements)
    bits = np.concatenate([directed_blocks(fmt, elements), awkward_blocks(rng, count, elements, fmt, rare=0.06),
                           decisions(rng, count, elements, fmt)])
    stochastic = fmt.rounding == "stochastic"
    noise = rng.integers(0, 2 ** fmt.noise_bits, bits.shape) if stochastic else None
    blocks = encode(bits.view(np.float32), flat, noise)
    fine = ~blocks.invalid.reshape(-1).astype(bool)
    bits, mantissa = bits[fine], blocks.mantissa[fine]
    exponent = blocks.exponent.reshape(-1)[fine]
    noise = noise[fine] if stochastic else None
    looked_at = {"rne": 1, "truncate": 0, "stochastic": fmt.noise_bits}[fmt.rounding]
    reach = 2 ** (DESIGN.widest.magnitude + looked_at - 1).bit_length() - 1    # further, nothing is left
    for n in range(len(bits)):
        dut.top.value = top = int(exponent[n]) + 126
        base = top + DESIGN.widest.mantissa - fmt.mantissa
        dut.least.value = max(base - reach, int(fmt.subnormals == "flush"))
        if DESIGN.wide:
            dut.base.value, dut.wide.value = base, int(fmt.mantissa == DESIGN.wide)
        for k in range(elements):
            dut.i.value = int(bits[n, k])
            if stochastic:
                dut.noise.value = int(noise[n, k])
            await Timer(1, "ns")
            got, want = dut.o.value.to_signed(), int(mantissa[n, k])
            if got != want:
                raise WrongBits(f"{int(bits[n, k]):08x} in a block of exponent {exponent[n]}: {got} instead of {want}")
    beats = DESIGN.encode_beats
    return bits, {"mantissa": mantissa, "exponent": exponent.repeat(beats),
                  "invalid": np.zeros(len(bits) * beats, bool)}
