# amaranth: UnusedElaboratable=no
"""Units in Amaranth's own simulator: small formats everywhere, and registers that hold.

Covers: rtl/fp32/operation.py, rtl/lib/cuts.py.
"""

import itertools
import random
from collections import deque

import numpy as np
import pytest
from amaranth.sim import Simulator

from golden.spec.floats import FloatFormat
from rtl.fp32.units import FP32_UNITS
from rtl.lib.cuts import choose_cuts
from tests.cases import sweep
from tests.rtl.fp32.table import TABLE, expected, small_operands
from tests.rtl.fp32.verilated import operands as ports

TINY = FloatFormat(2, 2)
PAIRS = [name for name, (_, _, count) in TABLE.items() if count == 2]


@pytest.mark.parametrize("name, subnormals", sweep(3, itertools.product(PAIRS, ["gradual", "flush"])))
def test_tiny_format_equals_golden_everywhere(name, subnormals):
    unit, cases, got = FP32_UNITS[name](fmt=TINY, subnormals=subnormals), small_operands(name, TINY), []

    async def bench(ctx):
        for values in zip(*(v.tolist() for v in cases), strict=True):
            for port, value in zip(ports(unit), values, strict=True):
                ctx.set(port, value)
            got.append(ctx.get(unit.o))

    sim = Simulator(unit)
    sim.add_testbench(bench)
    sim.run()
    np.testing.assert_array_equal(got, expected(name, cases, TINY, subnormals))


@pytest.mark.parametrize("name", sweep(6, ["fp32.add", "fp32.mul", "fp32.fma", "fp32.div", "fp32.mul_add",
                                           "fp32.from_int32"]))
def test_every_register_holds_while_disabled(name):
    """Operands enter and results leave only in enabled cycles, each result in its turn."""
    deepest = len(FP32_UNITS[name]().CUTS)
    unit = FP32_UNITS[name](pipeline=deepest)
    rng, waiting, seen = random.Random(name), deque(), 0
    mode = unit.params.subnormals

    async def bench(ctx):
        nonlocal seen
        for _ in range(300):
            values = [rng.getrandbits(32) for _ in ports(unit)]
            enabled = rng.random() < 0.6
            for port, value in zip(ports(unit), values, strict=True):
                ctx.set(port, value)
            ctx.set(unit.en, enabled)
            before = ctx.get(unit.o)
            await ctx.tick()
            if not enabled:
                assert ctx.get(unit.o) == before
                continue
            waiting.append(int(expected(name, [np.array([v]) for v in values], subnormals=mode)[0]))
            if len(waiting) >= deepest:
                assert ctx.get(unit.o) == waiting.popleft()
                seen += 1

    sim = Simulator(unit)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert seen > 100


def test_cuts_are_spread():
    cuts = {"a": 0.1, "b": 0.35, "c": 0.6, "d": 0.9, "output": 1.0}
    assert choose_cuts(cuts, 0) == frozenset()
    assert choose_cuts(cuts, 1) == {"c"}
    assert choose_cuts(cuts, 2) == {"b", "c"}
    assert choose_cuts(cuts, 5) == set(cuts)
    rows = {f"row{k}": (k + 1) / 30 for k in range(29)} | {"output": 1.0}
    assert choose_cuts(rows, 2) == {"row9", "row19"}
    assert all(len(choose_cuts(rows, depth)) == depth for depth in range(31))
