"""cocotb tests of one converter lane, FP32 to mantissa; run by :mod:`cosim.bench`."""

import os

import cocotb
import numpy as np
from cocotb.triggers import Timer

from golden.bfp import encode
from golden.spec.format import HBFPFormat

from .core import design_of
from .coverage import Coverage
from .data import awkward_blocks
from .manifest import Manifest

MANIFEST = Manifest.load(os.environ["HBFP_MANIFEST"])
DESIGN = design_of(MANIFEST)
SEED = int(os.environ.get("HBFP_SEED", "1"))
BLOCKS = 4000
#: What a lane cannot see: it has no word in whether a block is invalid.
BEYOND = ("Inf", "NaN")


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def mantissas_equal_golden(dut):
    """Blocks of all kinds, element by element, with the exponent that the golden model finds."""
    rng, fmt = np.random.default_rng(SEED), DESIGN.format
    elements = DESIGN.encode_beats * DESIGN.encode_lanes
    flat = HBFPFormat(mantissa=fmt.mantissa, exponent=fmt.exponent, block=(1, elements), rounding=fmt.rounding,
                      noise_bits=fmt.noise_bits, subnormals=fmt.subnormals)
    bits = awkward_blocks(rng, max(400, BLOCKS // elements), elements, fmt, rare=0.06)
    stochastic = fmt.rounding == "stochastic"
    noise = rng.integers(0, 2 ** fmt.noise_bits, bits.shape) if stochastic else None
    blocks = encode(bits.view(np.float32), flat, noise)
    fine = ~blocks.invalid.reshape(-1).astype(bool)
    bits, mantissa = bits[fine], blocks.mantissa[fine]
    exponent = blocks.exponent.reshape(-1)[fine]
    noise = noise[fine] if stochastic else None
    looked_at = {"rne": 1, "truncate": 0, "stochastic": fmt.noise_bits}[fmt.rounding]
    reach = 2 ** (fmt.magnitude + looked_at - 1).bit_length() - 1    # further away, nothing is left of an element
    for n in range(len(bits)):
        dut.top.value = top = int(exponent[n]) + 126
        dut.least.value = max(top - reach, int(fmt.subnormals == "flush"))
        for k in range(elements):
            dut.i.value = int(bits[n, k])
            if stochastic:
                dut.noise.value = int(noise[n, k])
            await Timer(1, "ns")
            got, want = dut.o.value.to_signed(), int(mantissa[n, k])
            assert got == want, f"{int(bits[n, k]):08x} in a block of exponent {exponent[n]}: {got} instead of {want}"
    names = [name for name in Coverage.corners(DESIGN) if name.startswith("converter: ")]
    coverage = Coverage(DESIGN, [name for name in names if name.split(": ")[1] not in BEYOND])
    beats = DESIGN.encode_beats
    coverage.conversion(bits, {"mantissa": mantissa, "exponent": exponent.repeat(beats),
                               "invalid": np.zeros(len(bits) * beats, bool)})
    coverage.compared = bits.size
    coverage.save(os.environ["HBFP_COVERAGE"])
