# amaranth: UnusedElaboratable=no
"""The weight buffer: each word on its diagonal, scales with their segment, two tiles at most, or one and some words.

Covers: rtl/number/streams.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.array.weights import WeightBuffer, spare_words
from rtl.number.kinds import number_of
from rtl.number.streams import operand_layout
from tests.cases import sweep

from ..drive import Bench, bits, pack, unpack

#: (rows, cols, terms of a block, group)
SHAPES = [(4, 4, 4, (2, 2)), (4, 4, 2, (1, 2)), (8, 2, 2, (2, 1)), (1, 1, 1, (1, 1)), (3, 5, 3, (1, 1)),
          (5, 2, 2, (1, 1)), (2, 6, 8, (1, 3)), (8, 2, 8, (8, 2))]


def make(rows, cols, terms, group, arithmetic="hbfp", pipeline=0, weight_tiles=2):
    return Design(format=HBFPFormat(mantissa=5, block=(1, terms)), rows=rows, cols=cols, group=group,
                  ragged=arithmetic == "hbfp", arithmetic=arithmetic, pipeline=pipeline, weight_tiles=weight_tiles)


class Tiles:
    """Random tiles and what the buffer must show of them."""

    def __init__(self, design, count, seed=0):
        self.design = design
        rng = np.random.default_rng(seed)
        shape = (count, design.rows, design.cols)
        self.mantissa = rng.integers(-15, 16, shape) if design.integer else rng.integers(0, 2 ** 16, shape)
        self.exponent, self.invalid = rng.integers(-500, 500, shape), rng.integers(0, 2, shape)

    def beats(self):
        layout = operand_layout(self.design, self.design.cols, self.design.cols)
        for tile, scale, flag in zip(self.mantissa, self.exponent, self.invalid, strict=True):
            for row in range(self.design.rows):
                scales = {"exponent": scale[row], "invalid": flag[row]} if self.design.blocked else {}
                yield pack(layout, mantissa=tile[row], **scales)

    def word(self, n, i, j):
        kr, kc = self.design.group
        return self.mantissa[n, i * kr:(i + 1) * kr, j * kc:(j + 1) * kc].reshape(-1).tolist()

    def scale(self, n, s, j):
        kc = self.design.group[1]
        row, columns = (s + 1) * self.design.height - 1, slice(j * kc, (j + 1) * kc)
        return {"exponent": self.exponent[n, row, columns].tolist(), "invalid": self.invalid[n, row, columns].tolist()}


def run(design, tiles, gaps, idle=0.0, fewer=0):
    """Start a tile ``gaps[n]`` cycles or more after the last; every word and scale is checked. Starts by cycle.

    The buffer has so many spare words ``fewer`` than its design.
    """
    params = WeightBuffer.Parameters.of(design)
    dut, rng = WeightBuffer.made(replace(params, spare=params.spare - fewer)), np.random.default_rng(1)
    starts, words = [], list(tiles.beats())
    per_segment = design.height // design.group[0]
    checked = 0

    def check(ctx, cycle):
        nonlocal checked
        for n, start in enumerate(starts):
            for j in range(design.group_cols):
                i, between = divmod(cycle - start - j, number_of(design).step)
                if 0 <= i < design.group_rows and not between:
                    assert unpack(dut.weight[j].shape(), ctx.get(bits(dut.weight[j])))["value"] == tiles.word(n, i, j)
                    checked += 1
                for s in range(design.segments if design.blocked else 0):
                    if 0 <= cycle - (start + (s + 1) * per_segment - 1) < design.group_cols + 2:
                        port = dut.scale[s][j]
                        assert unpack(port.shape(), ctx.get(bits(port))) == tiles.scale(n, s, j), (cycle, n, s, j)
                        checked += 1

    async def play(ctx):
        sent, count = 0, len(tiles.mantissa)
        cycle = 0
        while len(starts) < count or cycle < starts[-1] + design.rows * number_of(design).step + design.cols + 2:
            valid = sent < len(words) and rng.random() >= idle
            ctx.set(dut.i.valid, valid)
            ctx.set(bits(dut.i.payload), words[sent] if valid else 0)
            wait = gaps[len(starts)] if len(starts) < count else 1 << 30
            start = ctx.get(dut.ready) and (not starts or cycle >= starts[-1] + wait)
            if start:
                assert sent >= (len(starts) + 1) * design.rows, "ready before the tile is whole"
                starts.append(cycle)
            ctx.set(dut.start, start)
            check(ctx, cycle)
            _, _, ready = await ctx.tick().sample(dut.i.ready)
            sent += valid and ready
            assert sent <= len(starts) * design.rows + dut.params.size * design.group[0], "a row too many was taken"
            cycle += 1
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert checked >= len(tiles.mantissa) * design.group_rows * design.group_cols
    return starts


@pytest.mark.parametrize("shape, idle, weight_tiles", sweep(3, [
    (shape, idle, tiles) for shape in SHAPES for idle in (0, 0.5) for tiles in (1, 2)]), ids=str)
def test_words_and_scales_come_on_time(shape, idle, weight_tiles):
    design = make(*shape, weight_tiles=weight_tiles)
    tiles = Tiles(design, 7)
    run(design, tiles, [WeightBuffer.Parameters.of(design).interval] * 7, idle)


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
@pytest.mark.parametrize("weight_tiles", [1, 2])
def test_irregular_starts(shape, weight_tiles):
    design = make(*shape, weight_tiles=weight_tiles)
    gaps = WeightBuffer.Parameters.of(design).interval + np.random.default_rng(0).choice([0, 1, 2, 5, 30], 12)
    run(design, Tiles(design, 12), gaps.tolist(), 0.2)


def test_number_without_scales():
    design = make(4, 4, 4, (2, 2), "int")
    run(design, Tiles(design, 5), [WeightBuffer.Parameters.of(design).interval] * 5)


@pytest.mark.parametrize("pipeline, idle, weight_tiles", sweep(2, [
    (pipeline, *rest) for pipeline in (3, 5, 8) for rest in ((0, 2), (0.5, 2), (0, 1))]))
def test_words_wait_for_pipelined_elements(pipeline, idle, weight_tiles):
    """Rows of the next tile must not catch up with words that are still to be read."""
    design = make(4, 4, 4, (1, 2), "fp32", pipeline, weight_tiles)
    assert number_of(design).step > 1
    run(design, Tiles(design, 6), [WeightBuffer.Parameters.of(design).interval] * 6, idle)


def test_tile_a_row_time_keeps_up():
    """A tile every R cycles, as long as the interval allows it: no bubble."""
    design = make(8, 4, 8, (2, 2))
    starts = run(design, Tiles(design, 8), [design.rows] * 8)
    assert np.diff(starts).tolist() == [design.rows] * 7


#: (rows, cols, group) of buffers with room for less than two tiles.
SMALL = [(8, 4, (1, 1)), (8, 8, (2, 2)), (8, 16, (1, 2)), (12, 2, (3, 1)), (16, 4, (4, 1))]


@pytest.mark.parametrize("rows, cols, group", SMALL)
def test_one_tile_and_the_fewest_words_keep_up(rows, cols, group):
    """A tile every R cycles as with two, each word as soon as it is free; with a word fewer there are bubbles."""
    design = make(rows, cols, rows, group, weight_tiles=1)
    params = WeightBuffer.Parameters.of(design)
    assert params.spare < params.words
    gap = max(rows, params.interval)
    tiles = Tiles(design, 7)
    assert np.diff(run(design, tiles, [gap] * 7)).tolist() == [gap] * 6
    if params.spare > 1:
        assert max(np.diff(run(design, tiles, [gap] * 7, fewer=1))) > gap


def test_spare_words_of_a_large_core():
    """A word of 8 rows beyond a tile of 32 rows, also where a register stands before the array."""
    params = WeightBuffer.Parameters.of(Design(weight_tiles=1))
    assert (params.words, params.spare, params.size) == (4, 1, 5)
    assert [spare_words(params, entry) for entry in range(4)] == [1, 1, 2, 2]
    assert WeightBuffer.Parameters.of(Design(weight_tiles=1, pipeline=3)).spare == 1


@pytest.mark.parametrize("sent", [1, 3, 4, 7, 8])
def test_reset_in_mid_stream(sent):
    """After a reset the first row is row 0 of a tile, and no old tile is there."""
    design = make(4, 4, 2, (1, 2))
    old, new = Tiles(design, 2, 5), Tiles(design, 1, 6)
    dut = WeightBuffer.of(design)

    async def play(ctx):
        for word in list(old.beats())[:sent]:
            ctx.set(dut.i.valid, 1)
            ctx.set(bits(dut.i.payload), word)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(bench.reset, 1)
        await ctx.tick()
        ctx.set(bench.reset, 0)
        ctx.set(dut.i.valid, 1)
        for word in new.beats():
            assert not ctx.get(dut.ready)
            ctx.set(bits(dut.i.payload), word)
            assert (await ctx.tick().sample(dut.i.ready))[2]
        ctx.set(dut.i.valid, 0)
        while not ctx.get(dut.ready):
            await ctx.tick()
        ctx.set(dut.start, 1)
        for cycle in range(6):
            for j in range(2):
                if 0 <= cycle - j < 4:
                    word = unpack(dut.weight[j].shape(), ctx.get(bits(dut.weight[j])))["value"]
                    assert word == new.word(0, cycle - j, j)
            for s in range(2):
                if 0 <= cycle - 2 * (s + 1) + 1 < 2:
                    assert unpack(dut.scale[s][1].shape(), ctx.get(bits(dut.scale[s][1]))) == new.scale(0, s, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
