"""Tiles, and what each waits for: by hand, and every row that a window needs is among what is waited for."""

import numpy as np
import pytest

from golden.perf.pods.graph import Gemm, Reach
from golden.perf.pods.tiling import cut


def needs(tiles, number):
    """Of each tile of X of a product: the row tiles that it waits for, as a set."""
    found = []
    for need in tiles.need_of[tiles.first_x[number]:tiles.first_x[number + 1]]:
        ranges = range(tiles.need_at[need], tiles.need_at[need + 1])
        found.append({row for q in ranges for row in range(tiles.need_first[q], tiles.need_last[q] + 1)})
    return found


def test_tiles_are_counted():
    tiles = cut([Gemm("a", 2, 33, 64, 65, height=33)], [32], 32, 32)
    assert tiles.shape.tolist() == [[2, 2, 2, 3]] and tiles.operations == 24


@pytest.mark.parametrize("reach, waits, wanted", [
    (Reach(), "rows", [(0, 0), (1, 1), (2, 2)]),                      # four rows of four pixels, tiles of six
    (Reach(1, -1, 1, False), "rows", [(0, 1), (0, 2), (1, 2)]),
    (Reach(1, 0, 0, False), "rows", [(0, 1), (0, 1), (2, 2)]),
    (None, "rows", [(0, 2)] * 3), (Reach(), "layer", [(0, 2)] * 3)])
def test_rows_that_are_needed(reach, waits, wanted):
    gemms = [Gemm("a", 1, 16, 4, 4, 1, 4, 4), Gemm("b", 1, 16, 4, 4, 1, 4, 4, sources={0: reach})]
    tiles = cut(gemms, [6, 6], 4, 4, waits)
    assert list(zip(tiles.need_first, tiles.need_last, strict=True)) == wanted
    assert tiles.need_at.tolist() == [0, 0, 0, 0, 1, 2, 3]


@pytest.mark.parametrize("waits, wanted", [("channels", [{0, 1, 2}, {3, 4, 5}]), ("rows", [set(range(6))] * 2)])
def test_a_row_behind_attention_needs_that_row_of_each_head(waits, wanted):
    heads = Gemm("a", 3, 4, 4, 4, 3, 4, 1, True)
    tiles = cut([heads, Gemm("b", 1, 4, 4, 4, height=4, sources={0: Reach(heads=True)})], [2, 2], 4, 4, waits)
    assert needs(tiles, 1) == wanted


def test_tiles_of_each_product_begin_at_a_multiple():
    """Numbers alone change: as many tiles, with the same needs, from bank 0 of eight on."""
    gemms = [Gemm("a", 2, 9, 12, 20, height=9), Gemm("b", 1, 9, 20, 4, height=9, sources={0: Reach()})]
    plain, apart = cut(gemms, [4, 4], 4, 4), cut(gemms, [4, 4], 4, 4, multiple=8)
    assert (plain.first_x.tolist(), plain.first_w.tolist()) == ([0, 18, 33], [0, 30, 35])
    assert (apart.first_x.tolist(), apart.first_w.tolist()) == ([0, 24, 40], [0, 32, 40])
    assert [needs(apart, n)[:len(needs(plain, n))] for n in (0, 1)] == [needs(plain, n) for n in (0, 1)]
    assert apart.operations == plain.operations


def test_a_head_needs_its_own_rows():
    gemms = [Gemm("a", 2, 4, 4, 4, 2, 4, 1, True), Gemm("b", 2, 4, 4, 4, 2, 4, 1, True, {0: Reach()})]
    assert needs(cut(gemms, [2, 2], 4, 4), 1) == [{0}, {1}, {2}, {3}]
    assert needs(cut(gemms, [2, 4], 4, 4), 1) == [{0, 1, 2}, {1, 2, 3}]    # and, to be safe, what lies between


def test_channels_that_are_concatenated():
    """Six channels of one product and two of another, in tiles of four: the second has some of both."""
    sources = {0: Reach(), 1: Reach()}
    gemms = [Gemm("a", 1, 4, 4, 6, height=4), Gemm("b", 1, 4, 4, 2, height=4),
             Gemm("c", 1, 4, 8, 4, height=4, sources=sources, parts=((6, {0: Reach()}), (2, {1: Reach()})))]
    assert needs(cut(gemms, [4] * 3, 4, 4, "channels"), 2) == [{0}, {0, 1}]
    assert needs(cut(gemms, [4] * 3, 4, 4, "rows"), 2) == [{0, 1}] * 2


def test_channels_of_a_convolution_repeat_with_every_place_of_the_kernel():
    gemms = [Gemm("a", 1, 4, 4, 2, height=4), Gemm("b", 1, 4, 4, 2, height=4),
             Gemm("c", 1, 4, 8, 4, height=4, sources={0: Reach(), 1: Reach()}, channels=4,
                  parts=((2, {0: Reach()}), (2, {1: Reach()})))]
    assert needs(cut(gemms, [4] * 3, 2, 4, "channels"), 2) == [{0}, {1}, {0}, {1}]


def test_groups_of_channels():
    """Each of two groups has one of the products that are concatenated."""
    gemms = [Gemm("a", 1, 4, 4, 4, height=4), Gemm("b", 1, 4, 4, 4, height=4),
             Gemm("c", 2, 4, 4, 4, height=4, sources={0: Reach(), 1: Reach()}, channels=4,
                  parts=((4, {0: Reach()}), (4, {1: Reach()})))]
    assert needs(cut(gemms, [4] * 3, 4, 4, "channels"), 2) == [{0}, {1}]


@pytest.mark.parametrize("seed", range(20))
def test_no_row_of_a_window_is_forgotten(seed):
    """Pixel by pixel, for random images, batches, strides, windows and tiles."""
    rng = np.random.default_rng(seed)
    images, stride, size, p, q = (int(each) for each in rng.integers((1, 1, 1, 1, 1), (4, 3, 4, 9, 9)))
    low, (height, width) = int(rng.integers(-size + 1, 1)), (int(each) for each in rng.integers(size, 8, 2))
    out = tuple(-(-each // stride) for each in (height, width))
    gemms = [Gemm("a", 1, images * height * width, 4, 4, images, height, width),
             Gemm("b", 1, images * out[0] * out[1], 4, 4, images, *out,
                  sources={0: Reach(stride, low, low + size - 1, False)})]
    found = needs(cut(gemms, [p, q], 4, 4), 1)
    for row in range(gemms[1].m):
        image, y, x = row // (out[0] * out[1]), row // out[1] % out[0], row % out[1]
        for dy in range(low, low + size):
            for dx in range(low, low + size):
                at = (stride * y + dy, stride * x + dx)
                if 0 <= at[0] < height and 0 <= at[1] < width:
                    assert ((image * height + at[0]) * width + at[1]) // p in found[row // q]
