# amaranth: UnusedElaboratable=no
"""The grid: when sums leave, which weights a row meets, what idle rows do."""

import numpy as np
import pytest

from golden.matmul import mantissa_dot
from hbfp.design import MULTIPLIERS, Design
from hbfp.format import HBFPFormat
from rtl.array.array import Array
from tests.cases import sweep

from ..drive import Bench, bits, pack, unpack

#: (rows, cols, terms of a block, group)
SHAPES = [(4, 4, 4, (2, 2)), (4, 4, 2, (1, 2)), (6, 3, 2, (2, 1)), (1, 1, 1, (1, 1)), (3, 5, 3, (1, 1)),
          (8, 2, 8, (8, 2)), (5, 2, 2, (1, 1)), (2, 6, 8, (1, 3))]


def make(rows, cols, terms, group, multiplier="plain"):
    return Design(format=HBFPFormat(mantissa=6, block=(1, terms)), rows=rows, cols=cols, group=group, ragged=True,
                  multiplier=multiplier)


def run(design, acts, tiles, first):
    """Sums by cycle, segment and column.

    ``acts`` (cycles, R) enter one a cycle; tile n is swapped in with cycle ``first[n]``.
    """
    dut = Array.of(design)
    kr, kc = design.group
    word = np.zeros((len(acts) + 40, design.group_rows, design.group_cols), object)
    swaps = set(first)
    starts = {cycle: n for n, cycle in enumerate(first)}
    got = []

    async def play(ctx):
        for cycle in range(len(word)):
            row = acts[cycle] if cycle < len(acts) else [0] * design.rows
            ctx.set(bits(dut.x), pack(dut.x.shape(), value=row))
            ctx.set(dut.swap, cycle in swaps)
            for j in range(design.group_cols):
                # Word i of tile n lies there at its cycle and at no other.
                here = [(n, cycle - start - j) for start, n in starts.items()]
                here = [(n, i) for n, i in here if 0 <= i < design.group_rows]
                if here:
                    n, i = here[-1]
                    value = tiles[n][i * kr:(i + 1) * kr, j * kc:(j + 1) * kc]
                else:
                    value = np.full((kr, kc), -31)
                ctx.set(bits(dut.weight[j]), pack(dut.weight[j].shape(), value=value))
            sums = [[v for j in range(design.group_cols)
                     for v in unpack(dut.sums[s][j].shape(), ctx.get(bits(dut.sums[s][j])))["value"]]
                    for s in range(design.segments)]
            got.append(sums)
            await ctx.tick()
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    return np.array(got, int)


def due(design, segment, column):
    """Cycles from a row of X to its sum: the contract of :class:`rtl.array.array.Array`."""
    return 1 + (segment + 1) * (design.height // design.group[0]) + column // design.group[1]


@pytest.mark.parametrize("multiplier, shape", sweep(3, [(multiplier, shape) for multiplier in MULTIPLIERS for shape in (
    SHAPES if multiplier == "plain" else SHAPES[1:5])]), ids=str)
def test_sums_leave_when_and_as_promised(multiplier, shape):
    design, rng = make(*shape, multiplier), np.random.default_rng(1)
    limit = design.format.limit
    rows = max(design.group_rows, 3)    # rows of X a tile, without a bubble
    tiles = rng.integers(-limit, limit + 1, (4, design.rows, design.cols))
    acts = rng.integers(-limit, limit + 1, (4 * rows, design.rows))
    acts[1], tiles[1] = limit, limit
    got = run(design, acts, tiles, [n * rows for n in range(4)])
    for cycle, row in enumerate(acts):
        tile = tiles[cycle // rows]
        for s in range(design.segments):
            part = slice(s * design.height, (s + 1) * design.height)
            want = mantissa_dot(row[part], tile[part].T)
            for column in range(design.cols):
                assert got[cycle + due(design, s, column), s, column] == want[column], (cycle, s, column)


def test_idle_rows_change_nothing():
    design, rng = make(5, 2, 2, (1, 1)), np.random.default_rng(2)
    acts, tiles = rng.integers(-31, 32, (10, 5)), rng.integers(-31, 32, (1, 5, 2))
    want = run(design, acts, tiles, [0])
    acts[:, 4], tiles[:, 4] = 31, -31
    assert np.array_equal(run(design, acts, tiles, [0]), want)
