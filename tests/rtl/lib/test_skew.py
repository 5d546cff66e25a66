# amaranth: UnusedElaboratable=no
"""Delays at the array's edge."""

import numpy as np
import pytest
from amaranth import signed

from rtl.lib.skew import Skew

from ..drive import Bench


def run(dut, rows, reset_at=None):
    """Outputs by cycle for inputs by cycle."""
    got = []

    async def play(ctx):
        for cycle, row in enumerate(rows):
            ctx.set(bench.reset, cycle == reset_at)
            for lane, value in enumerate(row):
                ctx.set(dut.i[lane], int(value))
            got.append((await ctx.tick().sample(*dut.o))[2:])
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    return np.array(got)


@pytest.mark.parametrize("lanes, first", [(2, 0), (1, 1), (5, 0), (4, 1), (3, 7)])
def test_lane_leaves_after_its_delay(lanes, first):
    rows = np.random.default_rng(lanes).integers(-128, 128, (30, lanes))
    got = run(Skew(signed(8), lanes, first), rows)
    for lane in range(lanes):
        late = lane + first
        assert got[late:, lane].tolist() == rows[:len(rows) - late, lane].tolist()


@pytest.mark.parametrize("reset_less", [False, True])
def test_reset_clears_only_where_asked(reset_less):
    rows = np.ones((12, 4), int)
    got = run(Skew(1, 4, 1, reset_less), rows, reset_at=8)[9]
    assert got.tolist() == ([1] * 4 if reset_less else [0] * 4)
