"""Tiling is undone by the reference model: products that went through beats equal the golden ones.

Covers: cosim/bench/reference.py, cosim/bench/dense.py, cosim/bench/digits.py.
"""

import numpy as np
import pytest

from cosim.bench.awkward import awkward
from cosim.bench.digits import is_wide
from cosim.bench.reference import ConverterReference, CoreReference
from cosim.bench.tiling import Tiling, w_beats, x_beats
from golden.core.device import Golden
from golden.number.blocks import per_line
from golden.sparsity import compress, prune
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


@pytest.mark.parametrize("block, rows, shape", [
    ((1, 4), 4, (2, 4)), ((1, 4), 8, (2, 4)), ((1, 8), 4, (2, 4)), ((8, 8), 2, (2, 4)), ((1, 4), 6, (2, 4)),
    ((1, 12), 4, (2, 4)), ((1, 4), 4, (1, 4)), ((1, 8), 8, (4, 8))])
def test_compressed_beats_carry_the_pruned_product(block, rows, shape):
    design = Design(format=HBFPFormat(mantissa=6, block=block), rows=rows, cols=3, sparse=shape, ragged=True)
    rng, golden = np.random.default_rng(rows), Golden(design)
    for terms in (1, rows, 2 * rows + 1, 3 * max(block[1], rows) - 1):
        x = awkward(rng, (5, terms), design.format)
        w = prune(awkward(rng, (terms, 3), design.format, -2), *shape)
        a, b = golden.encode(x), golden.encode(w, -2)
        for sparse in (False, True):
            tiling = Tiling(design, terms, sparse)
            mantissa, index = compress(b.mantissa, *shape) if sparse else (b.mantissa, None)
            scales = [[per_line(blocks, part, axis) for part in (blocks.exponent, blocks.invalid)]
                      for axis, blocks in enumerate((a, b))]
            weights = w_beats(tiling, mantissa, *scales[1], index=index, rng=rng)
            command = {"rows": 5, "tiles": tiling.passes, "scale": 0, "bias": 0, "relu": 0, "sparse": sparse}
            got = CoreReference(design).result(command, x_beats(tiling, a.mantissa, *scales[0], rng=rng),
                                               {name: value[0] for name, value in weights.items()})
            assert np.array_equal(got, golden.matmul(a, b).view(np.uint32)), (terms, sparse)


def test_sparse_places():
    """Groups of K side by side on a row of X, and the terms that are kept on the rows of weights."""
    tiling = Tiling(Design(format=HBFPFormat(block=(1, 4)), rows=4, cols=1, sparse=(2, 4)), 9, True)
    assert tiling.index.tolist() == [[0, 1, 2, 3], [4, 5, -1, -1]]
    assert tiling.places.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7], [8, -1, -1, -1, -1, -1, -1, -1]]
    assert tiling.block_index.tolist() == [[0, 1], [2, -1]] and tiling.segment_rows.tolist() == [1, 3]


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("wide", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("narrow, bits, block, rows", [(4, 6, (1, 4), 4), (4, 7, (1, 2), 4), (8, 12, (4, 4), 2)])
def test_beats_carry_the_digits(narrow, bits, block, rows, wide, accumulate):
    design = Design(format=HBFPFormat(mantissa=narrow, block=block), rows=rows, cols=4, accumulate=accumulate,
                    wide=bits)
    rng, golden = np.random.default_rng(rows), Golden(design)
    x, w = (awkward(rng, shape, design.widest, axis) for shape, axis in (((4, 9), -1), ((9, 2), -2)))
    blocks = golden.encode(x, wide=wide[0]), golden.encode(w, -2, wide=wide[1])
    lines = [(part.mantissa, *(per_line(part, each, n) for each in (part.exponent, part.invalid)))
             for n, part in enumerate(blocks)]
    tiling = Tiling(design, 9)
    weights = w_beats(tiling, *lines[1], wide=wide[1], pairs=True, rng=rng)
    command = {"rows": 4, "tiles": tiling.passes, "scale": 0, "bias": 0, "relu": 0} | dict(
        zip(("wide_x", "wide_w"), map(int, wide), strict=True))
    beats = x_beats(tiling, *lines[0], wide=wide[0])
    assert len(beats["mantissa"]) == 4 * (1 + wide[0]) * tiling.passes
    assert max(np.abs(part["mantissa"]).max() for part in (beats, weights)) <= design.format.limit
    got = CoreReference(design).result(command, beats, {name: value[0] for name, value in weights.items()})
    assert np.array_equal(got, golden.matmul(*blocks).view(np.uint32))


@pytest.mark.parametrize("wide", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("block, rows", [((1, 4), 4), ((4, 4), 8), ((1, 16), 4)])
def test_compressed_beats_carry_the_digits(block, rows, wide):
    """Both digits of a weight stand where the weight does, a digit of 0 of one that is kept, too."""
    design = Design(format=HBFPFormat(mantissa=4, block=block), rows=rows, cols=4, wide=6, sparse=(2, 4))
    rng, golden = np.random.default_rng(rows), Golden(design)
    x, w = (awkward(rng, shape, design.widest, axis) for shape, axis in (((4, 19), -1), ((19, 2), -2)))
    a, b = golden.encode(x, wide=wide[0]), golden.encode(prune(w, 2, 4), -2, wide=wide[1])
    scales = [[per_line(part, each, n) for each in (part.exponent, part.invalid)] for n, part in enumerate((a, b))]
    mantissa, index = compress(b.mantissa, 2, 4)
    tiling = Tiling(design, 19, True)
    weights = w_beats(tiling, mantissa, *scales[1], wide=wide[1], pairs=True, index=index, rng=rng)
    if wide[1]:
        low, high = (weights["mantissa"][..., n::2] == 0 for n in range(2))
        assert (low != high).any()
        assert np.array_equal(weights["index"][..., ::2], weights["index"][..., 1::2])
    command = {"rows": 4, "tiles": tiling.passes, "scale": 0, "bias": 0, "relu": 0, "sparse": 1} | dict(
        zip(("wide_x", "wide_w"), map(int, wide), strict=True))
    got = CoreReference(design).result(command, x_beats(tiling, a.mantissa, *scales[0], wide=wide[0], rng=rng),
                                       {name: value[0] for name, value in weights.items()})
    assert np.array_equal(got, golden.matmul(a, b).view(np.uint32))


@pytest.mark.parametrize("wide, mantissa, message", [
    (0, 6, "Mantissas must have 4 bits, since the core is not --wide, not 6"),
    (6, 5, "Mantissas must have 4 or 6 bits, not 5")])
def test_mantissas_that_a_core_does_not_take(wide, mantissa, message):
    design = Design(format=HBFPFormat(mantissa=4, block=(1, 4)), rows=4, wide=wide)
    assert is_wide(design, design.widest) == bool(wide) and not is_wide(design, design.format)
    with pytest.raises(ValueError, match=f"^{message}$"):
        is_wide(design, HBFPFormat(mantissa=mantissa))


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
