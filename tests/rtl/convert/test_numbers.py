# amaranth: UnusedElaboratable=no
"""Numbers by position in hardware are the golden model's; a lane that may round either way does what it is told."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from golden.bfp import encode
from golden.position import numbers
from hbfp.format import HBFPFormat
from rtl.convert.encode_lane import EncodeLane
from rtl.convert.numbers import Numbers, place_bits
from tests.cases import sweep

from ..drive import Bench, unpack


@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
def test_numbers_equal_golden(lanes):
    """Of all parts of a group, at the ends of places and keys; they stay while nothing is asked for."""
    rng, dut = np.random.default_rng(lanes), Numbers(lanes)
    words = [*range(GROUPS := 32 // lanes), *(int(word) for word in rng.integers(0, 1 << place_bits(lanes), 12)),
             (1 << place_bits(lanes)) - 1]
    asked = [(word, key, True) for word in words for key in (0, 0xFFFFFFFF, int(rng.integers(1 << 32)))]
    asked[5:5] = [(0, 1, False)] * GROUPS
    found = []

    async def play(ctx):
        for word, key, en in asked:
            ctx.set(dut.word, word)
            ctx.set(dut.key, key)
            ctx.set(dut.en, en)
            await ctx.tick()
            found.append(unpack(dut.o.shape(), ctx.get(dut.o.as_value()))["value"])
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    want = None
    for (word, key, en), got in zip(asked, found, strict=True):
        want = numbers(key, np.array(word), lanes).tolist() if en else want
        assert got == want, (word, key)


@pytest.mark.parametrize("mantissa, exponent, bits", sweep(3, [
    (8, 10, 1), (4, 10, 8), (2, 10, 3), (8, 10, 8), (12, 6, 8)]))
def test_a_lane_rounds_as_it_is_told(mantissa, exponent, bits):
    """To nearest, with ties to even, or with the noise: what golden.bfp.encode gives an element beside a larger one."""
    rng = np.random.default_rng(mantissa)
    fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, block=(1, 2), rounding="stochastic", noise_bits=bits)
    count, dut = 1500, EncodeLane(fmt, choice=True)
    field = rng.integers(140, 150, (count, 2))
    field[:, 1] = np.maximum(field[:, 0] - rng.integers(0, mantissa + bits + 2, count), 0)
    short = rng.integers(0, 25, count)                     # ends of zeros, so that there are ties
    x = (field << 23 | rng.integers(0, 1 << 23, (count, 2)) >> short[:, None] << short[:, None]
         | rng.integers(0, 2, (count, 2)) << 31).astype(np.uint32).view(np.float32)
    noise = rng.integers(0, 1 << bits, (count, 2))
    sim, found = Simulator(dut), []

    async def play(ctx):
        reach = 2 ** (mantissa - 1 + bits - 1).bit_length() - 1
        for row, dice, own in zip(x, noise, blocks["stochastic"].exponent[:, 0], strict=True):
            top = int(own) + 126
            ctx.set(dut.i, int(row[1:].view(np.uint32)[0]))
            ctx.set(dut.top, top)
            ctx.set(dut.least, max(top - reach, 1))
            ctx.set(dut.noise, int(dice[1]))
            both = []
            for nearest in (1, 0):
                ctx.set(dut.nearest, nearest)
                both.append(ctx.get(dut.o))
            found.append(both)
    nearest = HBFPFormat(mantissa=mantissa, exponent=exponent, block=(1, 2))
    blocks = {"rne": encode(x, nearest), "stochastic": encode(x, fmt, noise)}
    sim.add_testbench(play)
    sim.run()
    assert found == [list(each) for each in zip(blocks["rne"].mantissa[:, 1].tolist(),
                                                blocks["stochastic"].mantissa[:, 1].tolist(), strict=True)]
