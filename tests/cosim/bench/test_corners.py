"""Corners are asked for exactly where a design can reach them, and directed data reaches all of those.

Covers: cosim/bench/awkward.py, cosim/bench/coverage.py, cosim/bench/directed.py.
"""

from itertools import product

import numpy as np
import pytest

from cosim.bench.awkward import awkward_blocks
from cosim.bench.corners import CORNERS, reachable, unreachable
from cosim.bench.coverage import Coverage
from cosim.bench.directed import block_modes, directed_blocks, directed_products
from cosim.bench.reference import ConverterReference, CoreReference
from cosim.bench.tiling import Tiling, commands, most_terms, w_beats, x_beats
from golden.core.core import encode
from hbfp.design import TILE_BITS, Design
from hbfp.format import HBFPFormat
from tests.cases import sweep

#: What the protocol benches see by themselves, without data for it.
PROTOCOL = {"refused command", "reset in mid-stream", "o stalls while i_x waits", "i_x idles while o is ready"}
FORMATS = [HBFPFormat(mantissa=mantissa, exponent=exponent, block=block, rounding=rounding, subnormals=subnormals)
           for mantissa, exponent, block, (rounding, subnormals) in product(
               (2, 3, 4, 5, 8, 12, 16), (5, 6, 7, 8, 9, 16), ((1, 1), (1, 2), (1, 3), (2, 2)),
               (("rne", "flush"), ("rne", "gradual"), ("truncate", "flush"), ("stochastic", "gradual")))]


def core(fmt, rows=3, **other):
    return Design(format=fmt, rows=rows, cols=2, depth=other.pop("depth", 5),
                  ragged="arithmetic" not in other, **other)


def counted(design, names):
    """A coverage of these names, whether they can be reached or not."""
    coverage = Coverage(design)
    coverage.seen = dict.fromkeys(names, 0)
    return coverage


def converted(design, blocks, names):
    """Names of corners that blocks show."""
    value = blocks.reshape(-1, design.encode_lanes)
    coverage = counted(design, names)
    coverage.conversion(value, ConverterReference(design).result(value))
    return {name for name, count in coverage.seen.items() if count}


def test_directed_blocks_reach_every_corner():
    for fmt in FORMATS:
        design = core(fmt)
        asked = set(reachable(design, "encode")) - PROTOCOL
        blocks = directed_blocks(fmt, design.encode_lanes * design.encode_beats)
        assert asked <= converted(design, blocks, asked), fmt


def test_width_of_directed_blocks_counts_with_their_last_beat():
    """A width left to chance reaches the corners of either width only by chance."""
    rng, design = np.random.default_rng(0), core(HBFPFormat(mantissa=4, block=(1, 8)), rows=4, wide=6)
    assert design.encode_beats > 1
    drawn = block_modes(rng, design, 64 * design.encode_beats)
    assert set(drawn[design.encode_beats - 1::design.encode_beats]) == {0, 1}
    for wide in (False, True):
        modes = block_modes(rng, design, 64 * design.encode_beats, wide)
        assert (modes[design.encode_beats - 1::design.encode_beats] == wide).all() and set(modes) == {0, 1}


def test_no_blocks_reach_the_other_corners():
    """Of thousands of awkward and random blocks, none shows a corner that is said to be out of reach."""
    rng = np.random.default_rng(0)
    # Where nothing is rounded to even, halves are no ties, and what is near the largest mantissa need not saturate.
    by_rounding = {f"converter: {name}" for name in ("tie to even, down", "tie to even, up", "saturated by rounding")}
    for fmt in FORMATS[::7]:
        design = core(fmt)
        elements = design.encode_lanes * design.encode_beats
        out = set(unreachable(design, "encode"))
        random = rng.integers(0, 2**32, (100, elements), np.uint32)
        random[:, 0] &= rng.choice(np.uint32([0xFFFFFFFF, 0xFFFFF000, 0xFFF00000]), 100)
        blocks = np.concatenate([directed_blocks(fmt, elements), awkward_blocks(rng, 50, elements, fmt), random])
        assert not converted(design, blocks, out) - (by_rounding if fmt.rounding != "rne" else set()), fmt


CORES = [core(fmt, rows, accumulate=accumulate, depth=depth) for fmt in FORMATS[::22]
         for rows, accumulate, depth in ((1, "fp32", 1), (2, "aligned", 2), (3, "fp32", 5), (4, "aligned", 1))]
CORES += [core(HBFPFormat(block=(1, 2)), 4, accumulate="aligned", growth=1),
          *(core(HBFPFormat(mantissa=7), arithmetic="int", growth=growth) for growth in (0, 1, 8)),
          *(core(HBFPFormat(), arithmetic=name) for name in ("fp32", "fma", "bf16"))]


def patterns(design, value):
    """What floats look like on a stream."""
    bits = value.view(np.uint32)
    return bits >> 16 if design.arithmetic == "bf16" else bits


def lines(blocks, axis):
    """One exponent and flag for each line, also of square tiles."""
    parts = [blocks.exponent, blocks.invalid]
    if blocks.fmt.square:
        count = np.arange(blocks.mantissa.shape[1 + axis])
        parts = [part.repeat(blocks.fmt.terms, 1 + axis).take(count, 1 + axis) for part in parts]
    return blocks.mantissa, *parts


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("part", sweep(7, range(7)))
def test_directed_products_reach_every_corner(part):
    for design in CORES[part::7]:
        asked = {name for name in reachable(design) if not name.startswith("converter: ")} - PROTOCOL
        coverage, reference = counted(design, asked), CoreReference(design)
        for work in directed_products(design):
            tiling = Tiling(design, work.x.shape[1])
            assert tiling.passes <= design.max_tiles, design
            if design.blocked:
                x, w = lines(encode(design, work.x), -1), lines(encode(design, work.w, -2), -2)
            elif design.arithmetic == "int":
                x, w = (work.x,), (work.w,)
            else:
                x, w = (patterns(design, work.x),), (patterns(design, work.w),)
            weights = {name: value[0] for name, value in w_beats(tiling, *w).items()}
            vectors = [vector.view(np.uint32) for vector in (work.scale, work.bias) if vector is not None]
            for rows in commands(design, len(work.x)):
                command = {"rows": rows.stop - rows.start, "tiles": tiling.passes, "scale": work.scale is not None,
                           "bias": work.bias is not None, "relu": work.relu}
                beats = x_beats(tiling, *(part[rows] for part in x))
                coverage.product(command, beats, weights, reference.result(command, beats, weights, vectors))
        assert not coverage.missing(), (design, coverage.missing())


def test_most_terms_fill_the_most_passes():
    for design in CORES:
        if design.max_tiles == 2 ** TILE_BITS - 1:
            continue    # the field, not the accumulator: tests/cosim/work/test_passes.py
        most = most_terms(design)
        assert Tiling(design, most).passes == design.max_tiles < Tiling(design, most + 1).passes, design


def test_reasons():
    design = core(HBFPFormat(mantissa=2, exponent=10, block=(1, 1)), rows=1)
    alone = "the only element of a block is its maximum"
    assert unreachable(design) == {
        "cancelled sum": "the sum of a segment of one row has one term",
        "converter: far below the maximum": alone,
        "converter: tie to even, up": "the only odd mantissa is the largest, which saturates",
        "converter: tie to even, down": f"{alone}, and of 2 bits that is odd",
        "converter: exponent clamped": "exponents of 10 bits hold every FP32 exponent"}
    for unit, names in CORNERS.items():
        assert not set(unreachable(design, unit)) & set(reachable(design, unit))
        assert set(reachable(design, unit)) <= set(names)


def test_options_add_their_corners():
    """Corners of an option are asked for with it alone, and a design without it has nothing to say about them."""
    plain = core(HBFPFormat(mantissa=4, block=(1, 4)), rows=4)
    blocks = {"converter: wide block", "converter: width changes"}
    of_wide = {"core": blocks | {"wide X", "wide W", "wide X and W"}, "encode": blocks}
    orders = {"sparse after dense", "dense after sparse"}
    for option, more in (({"wide": 6}, of_wide), ({"sparse": (1, 2)}, {"core": orders}), (
            {"sparse": (2, 4)}, {"core": orders | {"index out of order", "index repeated"}})):
        for unit in ("core", "encode", "encode_lane"):
            design = core(plain.format, rows=4, **option)
            assert set(reachable(design, unit)) - set(reachable(plain, unit)) == more.get(unit, set())
            assert unreachable(design, unit) == unreachable(plain, unit)
