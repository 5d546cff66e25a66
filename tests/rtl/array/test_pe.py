# amaranth: UnusedElaboratable=no
"""Groups of elements: exact dot products, one cycle, weights that change between two rows.

Covers: rtl/number/bf16.py, rtl/number/float.py, rtl/number/fp32.py, rtl/number/integer.py,
rtl/number/number.py, rtl/number/recoded.py.
"""

from dataclasses import replace

import numpy as np
import pytest

import golden.fp32 as fp32
from golden.matmul import mantissa_dot
from hbfp.arithmetic import KINDS as ARITHMETICS
from hbfp.design import PIPELINES, Design
from hbfp.format import HBFPFormat
from hbfp.golden.spec.floats import FP16, FP32
from rtl.array.pe import Group
from rtl.lib.stages import LEVELS
from rtl.number.kinds import FLOATS, number_of
from tests.cases import sweep

from ..drive import Bench, bits, pack, unpack


def make(mantissa=8, rows=4, cols=2, group=(2, 2), arithmetic="hbfp", **options):
    fmt = HBFPFormat(mantissa=mantissa, block=(1, rows))
    return Design(format=fmt, rows=rows, cols=cols, group=group, arithmetic=arithmetic, **options)


def run_group(design, above, acts, weights, north=None):
    """Sums of each row of ``acts`` (n, kr) with ``weights`` (kr, kc), loaded once."""
    dut, got = Group.of(design, above), []
    number = number_of(design)
    early, through = number.lead, number.lead + number.step    # of the activations before north, before south
    async def play(ctx):
        ctx.set(bits(dut.weight), pack(dut.weight.shape(), value=weights))
        ctx.set(dut.west.swap, 1)
        await ctx.tick()
        ctx.set(dut.west.swap, 0)
        ctx.set(bits(dut.weight), 2 ** len(bits(dut.weight)) - 1)    # not looked at
        for n in range(len(acts) + through - 1):
            ctx.set(bits(dut.west.act), pack(dut.west.act.shape(), value=acts[min(n, len(acts) - 1)]))
            if above:
                value = north[min(max(n - early, 0), len(acts) - 1)]
                ctx.set(bits(dut.north.sum), pack(dut.north.sum.shape(), value=value))
            await ctx.tick()
            ctx.set(bits(dut.west.act), 0)    # a register has it
            if n + 1 >= through:
                got.append(unpack(dut.south.sum.shape(), ctx.get(bits(dut.south.sum)))["value"])
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    return np.array(got, object)


def run_column(design, acts, weights):
    """The groups of one segment below each other, each with the sums of the one above."""
    kr, _ = design.group
    sums = None
    for top in range(0, design.height, kr):
        part = slice(top, top + kr)
        sums = run_group(design, top, acts[:, part], weights[part], sums)
    return sums


@pytest.mark.parametrize("sign", [-1, 0, 1], ids=["lowest", "random", "highest"])
@pytest.mark.parametrize("mantissa, rows, group", [(2, 8, (2, 2)), (8, 4, (1, 1)), (8, 6, (2, 2)), (8, 8, (8, 2)),
                                                   (16, 8, (4, 2)), (3, 5, (5, 1))])
def test_column_equals_golden(mantissa, rows, group, sign):
    """Only the extremes show a sum that is one bit too short."""
    design = make(mantissa, rows, 2, group)
    limit, kc = design.format.limit, group[1]
    acts, weights = np.full((2, rows), limit), np.full((rows, kc), sign * limit)
    if not sign:
        rng = np.random.default_rng(mantissa)
        acts, weights = rng.integers(-limit, limit + 1, (20, rows)), rng.integers(-limit, limit + 1, (rows, kc))
    want = mantissa_dot(acts[:, None, :], weights.T[None])
    assert run_column(design, acts, weights).tolist() == want.tolist()
    assert run_column(replace(design, pipeline=PIPELINES["hbfp"]), acts, weights).tolist() == want.tolist()


@pytest.mark.parametrize("mantissa", [2, 8, 16])
@pytest.mark.parametrize("terms", [1, 3, 4, 5, 32, 33, 255, 256])
def test_sum_is_no_wider_than_it_needs(mantissa, terms):
    design = make(mantissa)
    width, most = design.format.sum_width(terms), terms * design.format.limit ** 2
    assert 2 ** (width - 2) <= most < 2 ** (width - 1)


def test_activations_go_east_one_cycle_later():
    design, rng = make(), np.random.default_rng(0)
    dut, rows = Group.of(design, 0), rng.integers(-127, 128, (20, 2))

    async def play(ctx):
        for n, row in enumerate(rows):
            ctx.set(bits(dut.west.act), pack(dut.west.act.shape(), value=row))
            ctx.set(dut.west.swap, n % 3 == 0)
            await ctx.tick()
            ctx.set(dut.west.swap, n % 3 != 0)
            ctx.set(bits(dut.west.act), 0x5A5A)
            assert unpack(dut.east.act.shape(), ctx.get(bits(dut.east.act)))["value"] == row.tolist()
            assert ctx.get(dut.east.swap) == (n % 3 == 0)
    bench = Bench(dut)
    bench.process(play)
    bench.run()


def test_weights_swap_between_two_rows():
    """The row beside ``swap`` still meets the old weights, the next one the new."""
    design, rng = make(), np.random.default_rng(1)
    dut = Group.of(design, 0)
    tiles, rows = rng.integers(-127, 128, (12, 2, 2)), rng.integers(-127, 128, (60, 2))

    async def play(ctx):
        held = None
        for n, row in enumerate(rows):
            swap = n % 5 == 0
            tile = tiles[n // 5]
            ctx.set(bits(dut.weight), pack(dut.weight.shape(), value=tile if swap else -tile))
            ctx.set(dut.west.swap, swap)
            ctx.set(bits(dut.west.act), pack(dut.west.act.shape(), value=row))
            await ctx.tick()
            ctx.set(bits(dut.west.act), 0)
            if held is not None:
                got = unpack(dut.south.sum.shape(), ctx.get(bits(dut.south.sum)))["value"]
                assert got == mantissa_dot(row, held.T).tolist()
            held = tile if swap else held
    bench = Bench(dut)
    bench.process(play)
    bench.run()


PATTERNS = [0, 0x80000000, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000,
            0x7FC00000, 0x1F800000, 0x20000000]


def chained(number, patterns):
    """FP32 patterns as the sums that go on down a column."""
    if not number.chained:
        return patterns
    words = np.asarray(patterns, np.uint32).astype(object)
    exponent, fraction = words >> 23 & 255, words & 0x7FFFFF
    special = exponent == 255
    flags = (exponent == 0) + 2 * special + 4 * (special & (fraction != 0))
    return words & 0xFFFFFFFF | flags * 2 ** 32


def packed(number, sums):
    """The FP32 patterns of such sums."""
    if not number.chained:
        return sums.astype(np.uint32)
    zero, special, nan = (sums >> place & 1 for place in (32, 33, 34))
    words = np.where(special, sums & 0x80000000 | 0x7F800000, sums & 0xFFFFFFFF)
    return np.where(nan, 0x7FC00000, np.where(zero, 0, words)).astype(np.uint32)


#: Floats of 16 bits: from FP32 patterns to theirs, and back.
HALVES = {"bf16": (lambda bits: bits >> 16, lambda bits: bits << 16),
          "fp16": (fp32.to_fp16, lambda bits: fp32.convert(bits, FP16, FP32, "flush"))}


@pytest.mark.parametrize("arithmetic, pipeline, multiplier, above", sweep(11, [(*case, above) for case in [
    *((name, depth, "plain") for name in FLOATS for depth in range(PIPELINES[name] + 1)),
    *((name, depth, "recoded") for name in FLOATS for depth in (0, 1, 2, 4, PIPELINES[name])),
    *((name, depth, "carries") for name in FLOATS for depth in range(1, PIPELINES[name]))] for above in (0, 2)]) + [
        (name, PIPELINES[name], "carries", 2) for name in FLOATS])
def test_float_chain_equals_golden(arithmetic, pipeline, multiplier, above):
    """Products and sums down the column, each rounded as its unit says; but for IEEE nothing below 2^-126 but +0.

    With ``carries`` for an FPGA: adders are carry chains.
    """
    tall = 1 if pipeline else 2
    options = {"fabric": "fpga"} if multiplier == "carries" else {"multiplier": multiplier}
    design = make(rows=4, cols=1, group=(tall, 1), arithmetic=arithmetic, pipeline=pipeline, **options)
    assert number_of(design).chain == (multiplier == "carries")
    rng = np.random.default_rng(3)
    # Rows of full adders take long here; of their bits tests/rtl/fp32/test_inside.py has many.
    rows = 16 if multiplier == "recoded" and not pipeline else 60
    acts = rng.standard_normal((rows, 2)).astype(np.float32).view(np.uint32)
    acts[:rows // 2] = rng.choice(PATTERNS, (rows // 2, 2))
    weights = np.array([[0x3FC12345], [0xBF9ABCDE]], np.uint32)
    acts, weights = acts[:, :tall], weights[:tall]
    north = rng.standard_normal((rows, 1)).astype(np.float32).view(np.uint32)
    north[rows // 6:2 * rows // 3] = rng.choice(PATTERNS, (2 * rows // 3 - rows // 6, 1))
    sums = north[:, 0] if above else np.zeros(rows, np.uint32)
    narrow, wide = HALVES.get(arithmetic, (np.asarray, np.asarray))
    acts, weights = narrow(acts), narrow(weights)
    for k in range(tall):
        a, b = wide(acts[:, k]), wide(weights[k, 0])
        if arithmetic == "fp32":
            sums = fp32.add(fp32.mul(a, b, subnormals="flush"), sums, subnormals="flush", underflow="positive")
        elif arithmetic == "fma":
            sums = fp32.fma(a, b, sums)
        else:
            sums = fp32.fma(a, b, sums, subnormals="flush", underflow="positive")
    number = number_of(design)
    got = run_group(design, above, acts, weights, chained(number, north))[:, 0]
    np.testing.assert_array_equal(got.astype(np.uint32) if above else packed(number, got), sums)


def test_depths_are_those_of_the_units():
    """Every register of a depth stands at a cut of its own, and none behind the result."""
    assert set(FLOATS) == {name for name, kind in ARITHMETICS.items() if not kind.exact}
    assert PIPELINES["hbfp"] == len(LEVELS) - 1
    for name in FLOATS:
        most = PIPELINES[name]
        assert most == len(FLOATS[name].UNIT.CUTS) - 1
        for depth in range(most + 1):
            design = make(rows=1, cols=1, group=(1, 1), arithmetic=name, pipeline=depth)
            number = number_of(design)
            unit = number.UNIT(pipeline=depth, late=True, enable=False)
            assert unit.latencies["result"] == depth == number.lead + number.step - 1
