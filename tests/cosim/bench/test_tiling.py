"""Tiling is undone by the reference model: products that went through beats equal the golden ones.

Covers: cosim/bench/reference.py.
"""

import numpy as np
import pytest

from cosim.bench.awkward import awkward
from cosim.bench.reference import ConverterReference, CoreReference
from cosim.bench.tiling import Tiling, w_beats, x_beats
from golden.device import Golden
from hbfp.design import Design
from hbfp.format import HBFPFormat

DESIGNS = [((1, 4), 4, 4), ((1, 2), 8, 3), ((1, 16), 4, 5), ((8, 8), 4, 4), ((4, 4), 8, 8), ((1, 8), 3, 5),
           ((1, 5), 8, 2)]


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("block, rows, cols", DESIGNS)
def test_beats_carry_the_product(block, rows, cols, accumulate):
    design = Design(format=HBFPFormat(mantissa=6, block=block), rows=rows, cols=cols, accumulate=accumulate,
                    ragged=bool(block[1] % rows and rows % block[1]))
    rng, golden = np.random.default_rng(rows), Golden(design)
    for terms in (1, rows, rows + 1, 3 * max(block[1], rows) - 1):
        x, w = awkward(rng, (5, terms), design.format), awkward(rng, (terms, cols), design.format, -2)
        a, b = golden.encode(x), golden.encode(w, -2)
        tiling, lines = Tiling(design, terms), []
        for blocks, axis in ((a, 0), (b, 1)):
            parts = [blocks.exponent, blocks.invalid]
            if blocks.fmt.square:
                index = np.arange(blocks.mantissa.shape[axis])
                parts = [part.repeat(block[1], axis).take(index, axis) for part in parts]
            lines.append((blocks.mantissa, *parts))
        weights = {name: value[0] for name, value in w_beats(tiling, *lines[1], rng=rng).items()}
        command = {"rows": 5, "tiles": tiling.passes, "scale": 0, "bias": 0, "relu": 0}
        got = CoreReference(design).result(command, x_beats(tiling, *lines[0]), weights)
        assert np.array_equal(got, golden.matmul(a, b).view(np.uint32))


def test_blocks_start_in_new_passes():
    tiling = Tiling(Design(format=HBFPFormat(block=(1, 8)), rows=3, cols=1, ragged=True), 10)
    assert tiling.index.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, -1], [8, 9, -1]]
    assert tiling.block_index.tolist() == [[0], [0], [0], [1]]


def test_short_blocks_are_segments():
    tiling = Tiling(Design(format=HBFPFormat(block=(1, 2)), rows=4, cols=1), 5)
    assert tiling.index.tolist() == [[0, 1, 2, 3], [4, -1, -1, -1]]
    assert tiling.block_index.tolist() == [[0, 1], [2, -1]]
    assert tiling.segment_rows.tolist() == [1, 3]


@pytest.mark.parametrize("rows, tiles, refused", [(0, 1, True), (1, 0, True), (1, 1, False), (16, 4, False),
                                                  (17, 1, True), (1, 5, True)])
def test_commands_out_of_range_are_refused(rows, tiles, refused):
    design = Design(format=HBFPFormat(block=(1, 4)), rows=4, depth=16, accumulate="aligned", growth=2)
    assert CoreReference(design).refuses({"rows": rows, "tiles": tiles}) == refused


def test_converter_noise_runs_on():
    design = Design(format=HBFPFormat(block=(1, 4), rounding="stochastic"), rows=4)
    value = np.random.default_rng(0).standard_normal((6, 4), np.float32).view(np.uint32)
    whole, parts = ConverterReference(design).result(value), ConverterReference(design)
    halves = [parts.result(value[:2]), parts.result(value[2:])]
    assert np.array_equal(whole["mantissa"], np.concatenate([half["mantissa"] for half in halves]))
    again = [parts.result(value[:2]), parts.result(value[2:])]
    assert not np.array_equal(whole["mantissa"], np.concatenate([half["mantissa"] for half in again]))
