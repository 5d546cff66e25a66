# amaranth: UnusedElaboratable=no
"""The dot-product unit equals golden.matmul.matmul; its FP32 counterpart a loop of golden.fp32."""

import itertools

import numpy as np
import pytest

from golden import fp32
from golden.matmul import matmul
from hbfp.design import ConflictError, Design
from hbfp.format import HBFPFormat
from rtl.array.dot_product import DotProduct
from tests.cases import sweep

from ..drive import Bench, bits

NAN, INF = 0x7FC00001, 0xFF800000


def make(mantissa=4, terms=8, arithmetic="hbfp", **options):
    fmt = HBFPFormat(mantissa=mantissa, block=(1, terms), **options)
    return Design(format=fmt, rows=terms, cols=1, arithmetic=arithmetic)


def rows(count, design, seed=1):
    """FP32 rows of many magnitudes, some all zero, with subnormals, extremes, NaN and Inf."""
    rng, terms = np.random.default_rng(seed), design.format.terms
    x = (rng.standard_normal((count, terms)) * 2.0 ** rng.integers(-9, 3, (count, terms))).astype(np.float32)
    x *= np.float32(2) ** rng.choice([0, 0, 0, -70, 60, -126, 100], (count, 1)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = 0
    x[rng.random(x.shape) < 0.05] = np.float32(1e-42)
    x[rng.random(x.shape) < 0.05] *= -1
    x[0] = np.array(0x7F7FFFFF, np.uint32).view(np.float32)
    x[1] = -x[0]
    x[2] = 0
    x[3] = np.array(0x80800000, np.uint32).view(np.float32)
    x[4, -1] = np.array(NAN, np.uint32).view(np.float32)
    x[5, 0] = np.array(INF, np.uint32).view(np.float32)
    return x


def play(design, script, both=False):
    """The accumulator after each of ``(operation, row or pair of rows)``."""
    dut, found = DotProduct.of(design, both), []

    def word(row):
        return int.from_bytes(row.astype("<f4").tobytes(), "little")

    async def process(ctx):
        for operation, row in script:
            pair = row if both else (row, None)
            ctx.set(bits(dut.i), word(pair[0]))
            if both:
                ctx.set(bits(dut.i_b), word(pair[1]))
            else:
                ctx.set(dut.load, operation == "load")
            ctx.set(dut.step, operation in ("first", "step"))
            ctx.set(dut.first, operation == "first")
            await ctx.tick()
            found.append(ctx.get(dut.o))
    bench = Bench(dut)
    bench.process(process)
    bench.run()
    return found


def sums(pairs, fmt):
    """Golden accumulator after a chain of pairs of blocks."""
    x, w = (np.concatenate([pair[k] for pair in pairs]) for k in range(2))
    return int(matmul(x[None], w[:, None], fmt).view(np.uint32)[0, 0])


def check_blocks(design, both, seed=1):
    x, w = rows(12, design, seed), rows(12, design, seed + 1)[::-1]
    # A block just above the smallest number, with zeros and subnormals that must not count, times a large one.
    x[8], w[8] = np.float32(2.0 ** -125), np.float32(2.0 ** 100)
    x[8, 1:] = np.array(0x807FFFFF, np.uint32).view(np.float32)
    chains, script = [], []
    for n, (a, b) in enumerate(zip(x, w, strict=True)):
        fresh = n % 3 == 0 or not np.isfinite([x[n - 1], w[n - 1]]).all()    # NaN would stay
        chains.append([(a, b)] if fresh else [*chains[-1], (a, b)])
        operation = "first" if fresh else "step"
        script += [(operation, (a, b))] if both else [("load", b), (operation, a)]
    got = play(design, script, both)
    assert (got if both else got[1::2]) == [sums(chain, design.format) for chain in chains]
    assert any(len(chain) == 3 for chain in chains)


@pytest.mark.parametrize("mantissa", [
    2, 3, 8, 16, *(pytest.param(width, marks=pytest.mark.slow) for width in (4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15))])
def test_every_width_equals_golden(mantissa):
    check_blocks(make(mantissa, 3 if mantissa < 8 else 1), False, mantissa)


@pytest.mark.parametrize("terms, both", sweep(3, itertools.product([1, 2, 5, 16], [False, True])))
def test_every_length_equals_golden(terms, both):
    check_blocks(make(4, terms), both)


@pytest.mark.slow
@pytest.mark.parametrize("mantissa", [4, 6, 8])
def test_published_length_equals_golden(mantissa):
    check_blocks(make(mantissa, 128), both=False)


@pytest.mark.parametrize("options, mantissa", sweep(3, [(options, mantissa) for options in (
    {"rounding": "truncate"}, {"subnormals": "gradual"}, {"exponent": 5}, {"exponent": 8, "rounding": "truncate"})
    for mantissa in (7, 4)]), ids=str)
def test_every_rule_equals_golden(options, mantissa):
    check_blocks(make(mantissa, 4, **options), True)


def test_operand_stays():
    """One load serves many steps; what is not asked for does not happen."""
    design = make(6, 4)
    x, w = rows(12, design, 5)[6:], rows(7, design, 6)[6]
    script = [("load", w)] + [entry for row in x for entry in (("first", row), ("none", x[0]))]
    want = [sums([(row, w)], design.format) for row in x]
    got = play(design, script)
    assert got[1::2] == want and got[2::2] == want


@pytest.mark.parametrize("terms", [1, 3])
def test_fp32_counterpart(terms):
    """Products and sums rounded one by one, in ascending order."""
    design = make(4, terms, "fp32")
    x, w = rows(20, design, 8), rows(20, design, 9)
    script = [entry for a, b in zip(x, w, strict=True) for entry in (("load", b), ("step", a))]
    got, acc, want = play(design, script)[1::2], np.uint32(0), []
    for a, b in zip(x.view(np.uint32), w.view(np.uint32), strict=True):
        for n in range(terms):
            product = fp32.mul(a[n:n + 1], b[n:n + 1], subnormals="flush")
            acc = fp32.add(np.atleast_1d(acc), product, subnormals="flush")
            acc = np.where(acc == 0x80000000, np.uint32(0), acc)
        want.append(int(acc[0]))
    assert got == want


@pytest.mark.parametrize("design, name", [
    (make(arithmetic="int"), "arithmetic"), (make(rounding="stochastic"), "rounding"),
    (Design(format=HBFPFormat(block=(4, 4)), rows=4), "block")])
def test_wrong_design(design, name):
    with pytest.raises(ConflictError) as caught:
        DotProduct.of(design)
    assert caught.value.name == name
