# amaranth: UnusedElaboratable=no
"""Weights sends the rows of its tiles with their exponents, a row a cycle."""

import numpy as np
import pytest

from hbfp.isa.instructions import Opcode
from rtl.accelerator.weights import Weights
from tests.cases import cover

from ..drive import Pauses, bits
from .served import Memory, Served, word
from .test_multiply import SPARSE, SYSTEM


def play(instructions, pause=0.0, seed=0, system=SYSTEM):
    dut = Weights.of(system)
    bench = Served(dut)
    rows, scales = Memory(len(bits(dut.w.data))), Memory(len(bits(dut.w.scales)), 1)
    bench.read(dut.w, rows, Pauses(pause, seed), beside=("scales", scales))
    index = int(np.random.default_rng(seed).integers(1 << 16)) if system is SPARSE else 0
    if index:
        bench.hold(bits(dut.w.index), index)
    addresses = [(base + n) % 2 ** 18 for base, tiles, repeats in instructions for _ in range(repeats)
                 for n in range(8 * tiles)]
    given = bench.instructions(Opcode.WEIGHTS)
    bench.send(given, [word(Opcode.WEIGHTS, base=base, tiles=tiles, repeats=repeats)
                                 for base, tiles, repeats in instructions], Pauses(pause, seed + 1))
    got = bench.receive(dut.o_w, len(addresses), Pauses(pause, seed + 2))
    done = bench.until_done(len(instructions))
    bench.run()
    assert got == [rows[address] | scales[address] << rows.width | index << rows.width + scales.width
                   for address in addresses]
    return done, len(addresses)


@pytest.mark.parametrize("system, pause", cover([SYSTEM, SPARSE], [0.0, 0.4], turns=1))
def test_random_instructions(system, pause):
    rng = np.random.default_rng(1)
    done, rows = play([(int(rng.integers(8192) * 8), *rng.integers(1, 5, 2).tolist()) for _ in range(8)], pause,
                      system=system)
    assert pause or done[-1] == rows + 2    # no pause between instructions


def test_a_base_between_tiles_is_refused():
    dut = Weights.of(SYSTEM)
    bench = Served(dut)
    bench.read(dut.w, Memory(1))
    given = bench.instructions(Opcode.WEIGHTS)
    bench.send(given, [word(Opcode.WEIGHTS, base=12, tiles=1, repeats=1)])

    async def watch(ctx):
        for _ in range(10):
            *_, valid = await ctx.tick().sample(dut.o_w.valid)
            assert not valid
        assert ctx.get(dut.fault)
    bench.process(watch)
    bench.run()
