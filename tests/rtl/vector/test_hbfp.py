# amaranth: UnusedElaboratable=no
"""Sums in, blocks out: the vector unit between its converters."""

import itertools

import numpy as np
import pytest

import golden.vector.programs as programs
from golden.bfp import encode
from golden.noise import Stream
from golden.number.to_fp32 import to_fp32
from golden.spec.vector import VectorUnit
from golden.vector.unit import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.convert.encode import encoded_layout
from rtl.lib.layout import ArrayLayout
from rtl.vector.hbfp import VectorHBFP, sums_layout
from tests.cases import sweep

from ..drive import Bench, Pauses, pack, unpack

UNIT = VectorUnit(lanes=4, beats=8, functions=("exp", "recip"), pipeline=1)
LENGTH = 24


def make(**options):
    return Design(format=HBFPFormat(mantissa=6, block=(1, 8), **options), rows=4, cols=1)


def run(design, program, words, from_sums, to_blocks, count, pauses=0.0):
    """Payloads that leave, of words that enter."""
    dut = VectorHBFP.of(design, UNIT)
    bench = Bench(dut)

    async def pins(ctx):
        ctx.set(dut.from_sums, from_sums)
        ctx.set(dut.to_blocks, to_blocks)
        await ctx.tick()

    bench.process(pins)
    bench.send(dut.i_program, [item.encode() for item in program], Pauses(pauses, 1))
    bench.send(dut.i_sums if from_sums else dut.i, words, Pauses(pauses, 2))
    got = bench.receive(dut.o_q if to_blocks else dut.o, count, Pauses(pauses, 3))
    bench.run()
    return got


def expected_blocks(design, bits):
    """Beats of the converter for one row of FP32 bits."""
    x, fmt = bits.view(np.float32)[None], design.format
    noise = Stream(1, design.encode_lanes).draw(x.shape, fmt) if fmt.rounding == "stochastic" else None
    blocks = encode(x, fmt, noise)
    return [{"mantissa": mantissa.tolist(), "exponent": [int(blocks.exponent[0, beat // 2])],
             "invalid": [int(blocks.invalid[0, beat // 2])]}
            for beat, mantissa in enumerate(blocks.mantissa.reshape(-1, 4))]


def sums(design, seed):
    """Random block sums of one row, one of them of an invalid block: payloads, and their FP32 bits."""
    fmt, rng = design.format, np.random.default_rng(seed)
    limit = fmt.terms * fmt.limit ** 2
    total, exponent = rng.integers(-limit, limit + 1, LENGTH), rng.integers(-4, 4, LENGTH)
    invalid = np.arange(LENGTH) == 9
    layout = sums_layout(fmt, fmt.terms, design.encode_lanes)
    words = [pack(layout, sum=s, exponent=e, invalid=i.astype(int)) for s, e, i in
             zip(total.reshape(-1, 4), exponent.reshape(-1, 4), invalid.reshape(-1, 4), strict=True)]
    bits = to_fp32(total, exponent - 2 * fmt.magnitude).view(np.uint32)
    return words, np.where(invalid, np.uint32(0x7FC00000), bits)


@pytest.mark.parametrize("options, pauses", sweep(6, itertools.product(
    [{"rounding": "truncate"}, {}, {"rounding": "stochastic"}], [0.4, 0.0])), ids=str)
def test_sums_to_blocks_equals_golden(options, pauses):
    design = make(**options)
    words, bits = sums(design, 4)
    program = [programs.length(LENGTH), *programs.activation("relu")]
    got = run(design, program, words, True, True, LENGTH // 4, pauses)
    want, = Machine(UNIT).run(program, [bits])
    assert [unpack(encoded_layout(design), word) for word in got] == expected_blocks(design, want)
    assert sum(beat["invalid"][0] for beat in expected_blocks(design, want)) == 2


def test_sums_to_fp32_and_fp32_to_blocks():
    design, layout = make(), ArrayLayout(32, 4)
    words, bits = sums(design, 5)
    program = [programs.length(LENGTH), *programs.softmax()]
    bits = np.where(np.arange(LENGTH) == 9, np.uint32(0x3F800000), bits)
    fp32 = [pack(layout, value=beat) for beat in bits.reshape(-1, 4)]
    want, = Machine(UNIT).run(program, [bits])
    got = run(design, program, fp32, False, True, LENGTH // 4)
    assert [unpack(encoded_layout(design), word) for word in got] == expected_blocks(design, want)

    program = [programs.length(LENGTH), *programs.activation()]
    got = run(design, program, words, True, False, LENGTH // 4)
    want, = Machine(UNIT).run(program, [sums(design, 5)[1]])
    assert [word for beat in got for word in unpack(layout, beat)["value"]] == want.tolist()


def test_wrong_lanes():
    with pytest.raises(ValueError, match=r"^Lanes must be the converter's 4, not 8$"):
        VectorHBFP.of(make(), VectorUnit(lanes=8))


def test_wrong_arithmetic():
    with pytest.raises(ValueError, match=r"^Vector unit with HBFP needs arithmetic hbfp, not 'fp32'$"):
        VectorHBFP.of(Design(arithmetic="fp32", rows=4, cols=1))
    with pytest.raises(ValueError, match=r"^Vector unit with HBFP needs mantissas of one width, not wide 12$"):
        VectorHBFP.of(Design(wide=12))
