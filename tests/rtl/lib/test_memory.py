# amaranth: UnusedElaboratable=no
"""The memory does what its contract says, against a list of words."""

import numpy as np
import pytest

from rtl.lib.memory import Ram

from ..drive import Bench


@pytest.mark.parametrize("depth, width, granules", [(8, 12, 3), (5, 8, 1), (1, 4, 2), (2, 6, 6)])
def test_memory_equals_list(depth, width, granules):
    dut, rng = Ram(depth, width, granules), np.random.default_rng(depth)
    part = width // granules
    words, read = [0] * depth, 0

    async def play(ctx):
        nonlocal read
        for cycle in range(400):
            w_addr, r_addr = rng.integers(depth, size=2).tolist()
            if cycle % 3 == 0:
                r_addr = w_addr    # a word is read as it was before this cycle's write
            enables, data = int(rng.integers(2 ** granules)), int(rng.integers(2 ** width))
            r_en = int(rng.random() < 0.7)
            for port, value in (("w_en", enables), ("w_addr", w_addr), ("w_data", data), ("r_en", r_en),
                                ("r_addr", r_addr)):
                ctx.set(getattr(dut, port), value)
            *_, got = await ctx.tick().sample(dut.r_data)
            assert got == read, f"cycle {cycle}"
            read = words[r_addr] if r_en else read
            for n in range(granules):
                if enables >> n & 1:
                    mask = (2 ** part - 1) << n * part
                    words[w_addr] = words[w_addr] & ~mask | data & mask
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert any(words)


def test_one_port_reads_or_writes():
    """A word is read where no part is written; ``r_data`` stays while another is written, or nothing is asked for."""
    dut, rng = Ram(8, 8, 2, single=True), np.random.default_rng(1)
    words, read = [0] * 8, 0

    async def play(ctx):
        nonlocal read
        for cycle in range(300):
            en, enables, addr, data = (int(rng.integers(limit)) for limit in (2, 4, 8, 256))
            for port, value in (("en", en), ("w_en", enables), ("addr", addr), ("w_data", data)):
                ctx.set(getattr(dut, port), value)
            *_, got = await ctx.tick().sample(dut.r_data)
            assert got == read, f"cycle {cycle}"
            if en and not enables:
                read = words[addr]
            for n in range(2 * en):
                if enables >> n & 1:
                    words[addr] = words[addr] & ~(15 << 4 * n) | data & 15 << 4 * n
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert any(words) and dut.shape == (8, 8, 1)


def test_reset_keeps_the_words():
    dut = Ram(4, 8)

    async def play(ctx):
        ctx.set(dut.w_en, 1)
        ctx.set(dut.w_addr, 2)
        ctx.set(dut.w_data, 0xA5)
        await ctx.tick()
        ctx.set(dut.w_en, 0)
        ctx.set(bench.reset, 1)
        await ctx.tick()
        ctx.set(bench.reset, 0)
        ctx.set(dut.r_en, 1)
        ctx.set(dut.r_addr, 2)
        await ctx.tick()
        assert ctx.get(dut.r_data) == 0xA5
    bench = Bench(dut)
    bench.process(play)
    bench.run()


def test_wrong_granules():
    with pytest.raises(ValueError, match=r"^RAM width 10 must be a multiple of its granules, not of 3$"):
        Ram(4, 10, 3)
