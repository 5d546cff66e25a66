# amaranth: UnusedElaboratable=no
"""The pruner: bit for bit the golden one, on every group of a few numbers and on any numbers."""

import itertools

import numpy as np
import pytest

from golden.sparsity import prune
from hbfp.design import ConflictError, Design
from hbfp.format import HBFPFormat
from rtl.convert.prune import Prune
from rtl.lib.layout import ArrayLayout

from ..drive import Bench, Pauses, pack, unpack

SHAPES = [(1, 2), (1, 4), (2, 4), (4, 8)]
#: Ties of either sign, neighbours, zeros, a subnormal, Inf and NaN.
FEW = [0x3F800000, 0xBF800000, 0x3F800001, 0x00000000, 0x80000000, 0x00000001, 0xFF800000, 0x7FC00001]


def check(rows, n, m, idle=0.0, stall=0.0):
    """Send rows of bit patterns (beats, lanes); compare what comes with the golden pruning."""
    lanes = rows.shape[1]
    dut, layout = Prune(lanes, n, m), ArrayLayout(32, lanes)
    bench = Bench(dut, limit=4 * len(rows) + 200)
    bench.send(dut.i, [pack(layout, value=row) for row in rows], Pauses(idle, 1))
    words = bench.receive(dut.o, len(rows), Pauses(stall, 2))
    bench.run()
    got = np.array([unpack(layout, word)["value"] for word in words], np.uint32)
    want = prune(rows.astype(np.uint32).view(np.float32), n, m, axis=1).view(np.uint32)
    assert np.array_equal(got, want)
    return want


@pytest.mark.parametrize("n, m", SHAPES[:3])
def test_every_group_of_a_few_numbers(n, m):
    groups = np.array(list(itertools.product(FEW, repeat=m)), np.uint32)
    rows = groups[:len(groups) // 4 * 4].reshape(-1, 4 * m)
    want = check(rows, n, m)
    assert len(want) * 4 == len(FEW) ** m


@pytest.mark.parametrize("n, m", SHAPES)
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0.5)])
def test_any_numbers(n, m, idle, stall):
    rng = np.random.default_rng(m)
    rows = rng.integers(0, 2 ** 32, (150, m), np.uint32)
    rows[50:] = rng.choice(np.array(FEW, np.uint32), (100, m))
    check(rows, n, m, idle, stall)


def test_of_a_design():
    design = Design(rows=8, format=HBFPFormat(block=(1, 16)), sparse=(2, 4))
    assert Prune.of(design).params == Prune.Parameters(8, 2, 4) and Prune.of(design).latencies == {"result": 1}


@pytest.mark.parametrize("rows, sparse, message", [
    (8, (1, 1), r"^Sparse 1,1 must be N,M: only cores for sparse weights have this unit$"),
    (2, (2, 4), r"^Rows 2 must make the converter's 2 lanes a multiple of 4, for whole groups$")])
def test_designs_without_one(rows, sparse, message):
    with pytest.raises(ConflictError, match=message):
        Prune.of(Design(rows=rows, format=HBFPFormat(block=(1, 8)), sparse=sparse))
