# amaranth: UnusedElaboratable=no
"""Exponential, logarithm and their like equal golden.functions, exactly and one a cycle.

Covers: rtl/fp32/polynomial.py, rtl/fp32/times.py, rtl/fp32/functions/logarithm.py, rtl/fp32/functions/path.py,
rtl/fp32/functions/product.py, rtl/fp32/functions/reduction.py, rtl/fp32/functions/result.py,
rtl/fp32/functions/tables.py.
"""

import re

import numpy as np
import pytest
from amaranth.sim import Simulator

from golden.fast.functions import evaluate as evaluate_fast
from golden.functions import evaluate
from golden.spec.tables import EXP2, FUNCTIONS, MAIN
from rtl.fp32.functions.result import LARGE
from rtl.fp32.functions.unit import FUNCTION_UNITS, Function
from rtl.fp32.polynomial import Polynomial
from tests.cases import slow
from tests.rtl.fp32.verilated import Verilated

SETS = [(name,) for name in FUNCTIONS] + [("exp", "recip", "rsqrt"), FUNCTIONS]
#: Both sides of every decision: zero, subnormals, Inf, NaN, where results vanish, overflow or saturate, table ends.
CORNERS = [0, 1, 0x7FFFFF, 0x800000, 0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3FAFFFFF, 0x3FB00000, 0x3FFFFFFF,
           0x40000000, 0x41000000, 0x417FFFFF, 0x41800000, 0x41FFFFFF, 0x42000000, 0x42AEAC4F, 0x42AEAC50, 0x42B17217,
           0x42B17218, 0x42FFFFFF, 0x43000000, 0x7E800000, 0x7E800001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000]


def inputs(count, seed=1):
    """Corners, any patterns, ordinary numbers, and every exponent with random fractions: ``uint32``."""
    rng = np.random.default_rng(seed)
    ordinary = (rng.normal(size=(3, count)) * [[1], [9], [60]]).astype(np.float32).view(np.uint32).ravel()
    fields = (np.arange(512) << 23) + rng.integers(0, 1 << 23, 512)
    corners = np.array(CORNERS)
    parts = [corners, corners | 1 << 31, rng.integers(0, 1 << 32, count), fields, ordinary]
    return np.concatenate([part.astype(np.int64) for part in parts]).astype(np.uint32)


def simulate(functions, x, pipeline=0, multiplier="plain"):
    """Results of every function of a set, one row each, in Amaranth's simulator."""
    dut, latency = Function(functions, multiplier, pipeline=pipeline), pipeline
    got = np.zeros((len(dut.functions), x.size), dtype=np.uint32)

    async def bench(ctx):
        for row in range(len(got)):
            if len(got) > 1:
                ctx.set(dut.select, row)
            for i in range(x.size + latency):
                if i < x.size:
                    ctx.set(dut.a, int(x[i]))
                if latency:
                    await ctx.tick()
                else:
                    await ctx.delay(1e-9)
                if latency and i >= latency - 1 and i - latency + 1 < x.size:
                    got[row, i - latency + 1] = ctx.get(dut.o)
                elif not latency:
                    got[row, i] = ctx.get(dut.o)

    sim = Simulator(dut)
    if pipeline:
        sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return got


@pytest.mark.parametrize("functions", [("exp",), ("recip",), ("log", "tanh"), FUNCTIONS], ids="+".join)
def test_results_equal_golden(functions):
    x = inputs(8)[:len(CORNERS) * 2 + 8]
    want = [evaluate(name, x) for name in functions]
    np.testing.assert_array_equal(simulate(functions, x), want)


@pytest.mark.slow
def test_recoded_products_change_no_bit():
    x = inputs(2)[-2:]
    np.testing.assert_array_equal(simulate(FUNCTIONS, x, 4, "recoded"), [evaluate(name, x) for name in FUNCTIONS])


@pytest.mark.parametrize("pipeline", [1, slow(5), 12])
def test_pipelined_results_come_one_a_cycle(pipeline):
    x = inputs(8)[::12]
    np.testing.assert_array_equal(simulate(FUNCTIONS, x, pipeline), [evaluate(name, x) for name in FUNCTIONS])


@pytest.fixture(scope="module")
def rack():
    """Every set, combinational and at each depth of the full one, in one model."""
    units = [Function(functions) for functions in SETS]
    units += [Function(FUNCTIONS, pipeline=depth) for depth in (3, len(units[-1].CUTS))]
    return Verilated(units)


@pytest.mark.cosim
def test_verilog_equals_golden(rack):
    x, ran = inputs(20_000), 0
    for n, unit in enumerate(rack.units):
        for select, name in enumerate(unit.functions):
            got = rack(n, x, np.full_like(x, select))
            np.testing.assert_array_equal(got, evaluate_fast(name, x), err_msg=f"{name} of {unit.module}")
            ran += x.size
    assert ran > 3_000_000


@pytest.mark.slow
@pytest.mark.cosim
@pytest.mark.parametrize("name", FUNCTIONS)
def test_verilog_equals_golden_spread(rack, name):
    """2^24 inputs evenly over all patterns, each with random low bits, in the unit that has this function only."""
    n, low = FUNCTIONS.index(name), np.random.default_rng(7)
    for part in range(16):
        x = (np.arange(part << 20, part + 1 << 20, dtype=np.uint32) << 8) + low.integers(0, 256, 1 << 20, np.uint32)
        np.testing.assert_array_equal(rack(n, x), evaluate_fast(name, x))


@pytest.mark.slow
@pytest.mark.cosim
def test_verilog_of_all_functions_equals_golden_spread(rack):
    n, low = SETS.index(FUNCTIONS), np.random.default_rng(8)
    for select, name in enumerate(FUNCTIONS):
        for part in range(16):
            x = (np.arange(part << 20, part + 1 << 20, dtype=np.uint32) << 8) + low.integers(0, 256, 1 << 20, np.uint32)
            np.testing.assert_array_equal(rack(n, x, np.full_like(x, select)), evaluate_fast(name, x))


def test_units_have_every_function():
    assert set(FUNCTION_UNITS) == {*(f"fp32.{name}" for name in FUNCTIONS), "fp32.function"}
    assert FUNCTION_UNITS["fp32.exp"](pipeline=2).functions == ("exp",)
    assert FUNCTION_UNITS["fp32.function"]().functions == FUNCTIONS
    assert set(LARGE) < set(FUNCTIONS)


def test_modules_have_different_names():
    units = [Function(functions, pipeline=depth) for functions in SETS for depth in (0, 2)]
    assert len({unit.module for unit in units}) == len(units)
    assert units[0].module == "hbfp_function_flush_exp"


@pytest.mark.parametrize("form", [EXP2, MAIN], ids=["exp2", "main"])
def test_bounds_hold_the_extremes(form):
    """Widths of the Horner values come from these bounds: the extremes of tau must fit."""
    rng = np.random.default_rng(3)
    segments = [tuple(int(c) for c in rng.integers(-2 ** 20, 2 ** 20, form.degree + 1)) for _ in range(50)]
    for low, high, i in zip(*zip(*Polynomial(None, form, segments, "p").bounds, strict=True),
                            range(form.degree, -1, -1), strict=True):
        for segment in segments:
            for tau in (-0.5, 0.5):
                value = sum(c * 2.0 ** (form.fraction[i] - form.fraction[j]) * tau ** (j - i)
                            for j, c in enumerate(segment) if j >= i)
                assert low <= value <= high


@pytest.mark.parametrize("functions, message", [
    ((), "Functions must name at least one"),
    (("sin",), "Function must be one of exp, log, recip, rsqrt, tanh, sigmoid, gelu, silu, normcdf, not 'sin'"),
    (("exp", "exp"), "Functions must differ, not exp, exp"),
])
def test_wrong_functions(functions, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Function(functions)


def test_wrong_pipeline():
    with pytest.raises(ValueError, match="^Pipeline depth must be 0 to 6 cycles, not 7$"):
        Function(("exp",), pipeline=7)


def test_wrong_subnormals():
    with pytest.raises(ValueError, match="^Subnormals must be one of flush, not 'gradual'$"):
        Function(("exp",), subnormals="gradual")
