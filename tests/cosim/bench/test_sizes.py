"""Smaller designs stand for large ones and keep what matters."""

from cosim.bench.sizes import plain_where_large, smaller
from cosim.work.random_designs import draw
from hbfp.design import Design
from hbfp.format import HBFPFormat


def test_small_designs_keep_what_matters():
    design = Design(format=HBFPFormat(mantissa=6, block=(1, 16)), rows=32, accumulate="aligned")
    small = smaller(design)
    assert (small.rows, small.cols, small.segments, small.accumulate) == (8, 8, design.segments, "aligned")
    long = smaller(Design(format=HBFPFormat(block=(24, 24)), rows=12))
    assert (long.format.block, long.rows, long.block_tiles) == ((16, 16), 8, 2)
    assert smaller(small) == small


def test_smaller_is_valid_and_keeps_passes_and_segments():
    """Any design has a smaller one, however its block lies on the rows."""
    for seed in range(400):
        design = draw(seed, side=64, block=100, recoded=10**6)
        small = smaller(design)
        assert (small.block_tiles, small.segments <= design.segments) == (design.block_tiles, True), design


def test_large_recoded_arrays_run_plain():
    design = Design(multiplier="recoded")
    assert plain_where_large(design).multiplier == "plain" and smaller(design).multiplier == "recoded"
    assert smaller(design).rows == 4
    tiny = Design(format=HBFPFormat(block=(1, 4)), rows=4, multiplier="recoded")
    assert plain_where_large(tiny) == smaller(tiny) == tiny
