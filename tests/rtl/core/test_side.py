# amaranth: UnusedElaboratable=no
"""The side unit's lane equals golden.fp32, and holds still when told to."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.back.verilog import convert

import golden.fp32 as fp32
from hbfp.design import Design
from rtl.core.sequencer import STEPS, steps_layout
from rtl.core.side import SideLane
from rtl.lib.stages import LEVELS
from tests.cases import sweep

from ..drive import Bench, bits, pack

SPECIAL = [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF,
           0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF812345]


def golden_side(y, scale, bias, steps):
    if "scale" in steps:
        y = fp32.mul(y, scale, subnormals="flush")
    if "bias" in steps:
        y = fp32.add(y, bias, subnormals="flush")
    if "relu" in steps:
        y = np.where(y >> 31 & ~((y >> 23 & 255 == 255) & (y & 0x7FFFFF > 0)), 0, y)
    return y


HELD = SideLane.Parameters()


def run(values, steps, scale, bias, stall=(), lane=HELD):
    """Results of a stream of values; cycle numbers in ``stall`` have the clock enable low."""
    dut, got, latency = SideLane.made(lane), [], lane.latency
    word = pack(steps_layout(), **{step: step in steps for step in STEPS})

    async def feed(ctx):
        for load, value in ((dut.load_scale, scale), (dut.load_bias, bias)):
            ctx.set(load, 1)
            ctx.set(dut.v, int(value))
            await ctx.tick()
            ctx.set(load, 0)
        ctx.set(dut.v, 0x12345678)
        ctx.set(bits(dut.steps), word)
        queue, cycle = [*values, *[0] * latency], 0
        moves = 0
        while moves < len(queue):
            enabled = cycle not in stall
            if not lane.free:
                ctx.set(dut.en, enabled)
            ctx.set(dut.i, int(queue[moves]) if enabled else 0xDEADBEEF)
            _, _, out = await ctx.tick().sample(dut.o)
            if enabled:
                if moves >= latency:
                    got.append(out)
                moves += 1
            cycle += 1
    bench = Bench(dut)
    bench.process(feed)
    bench.run()
    return np.array(got, np.uint32)


def values(seed=1):
    rng = np.random.default_rng(seed)
    near = np.float32(1) + rng.integers(-4, 5, 30).astype(np.float32) * np.float32(2 ** -20)
    return np.concatenate([np.array(SPECIAL, np.uint32), rng.integers(0, 2 ** 32, 60, np.uint32),
                           near.view(np.uint32), rng.standard_normal(60).astype(np.float32).view(np.uint32)])


@pytest.mark.parametrize("steps, scale, bias", sweep(5, [
    (steps, *operands) for steps in ((), ("scale",), ("bias",), ("relu",), ("scale", "bias"), ("scale", "bias", "relu"))
    for operands in ((0xBFC00000, 0xBF7FFFFF), (0x00900000, 0x80800000), (0x7F000000, 0x7F800000))]))
def test_lane_equals_golden(steps, scale, bias):
    y = values()
    want = golden_side(y, np.uint32(scale), np.uint32(bias), steps)
    np.testing.assert_array_equal(run(y, steps, scale, bias), want)


@pytest.mark.parametrize("level", sweep(4, range(1, len(LEVELS))))
def test_registers_change_no_bit(level):
    """Of a lane that never stalls; what comes out later than it says would be another value's result."""
    design = Design(pipeline=level)
    y, lane = values(level), SideLane.Parameters.of(design)
    assert lane.free and lane.latency == 3 + LEVELS[level].multiply + LEVELS[level].add
    want = golden_side(y, np.uint32(0x3FAAAAAB), np.uint32(0xBF7FFFFF), ("scale", "bias"))
    np.testing.assert_array_equal(run(y, ("scale", "bias"), 0x3FAAAAAB, 0xBF7FFFFF, lane=lane), want)


@pytest.mark.parametrize("options, multiplier", [
    ({"side_lanes": 2}, "recoded"), ({"side_lanes": 2, "pipeline": 1}, "plain"), ({}, "plain")])
def test_lanes_that_columns_share_multiply_as_the_design_does(options, multiplier):
    """In the least area, where they have no registers inside."""
    assert SideLane.Parameters.of(Design(multiplier="recoded", **options)).multiplier == multiplier
    assert SideLane.Parameters.of(Design(**options)).multiplier == "plain"


@pytest.mark.slow    # that the units have the same bits: tests/rtl/fp32/test_units.py
def test_recoded_products_change_no_bit():
    y, (scale, bias) = values(), np.array([0xBFC00000, 0xBF7FFFFF], np.uint32)
    lane = replace(SideLane.Parameters(), multiplier="recoded")
    want = golden_side(y, scale, bias, ("scale", "bias"))
    np.testing.assert_array_equal(run(y, ("scale", "bias"), scale, bias, lane=lane), want)


def test_relu_of_awkward_numbers():
    y = np.array([0x80000000, 0x80000001, 0xFF800000, 0xFFC00000, 0x7FC00001, 0xBF800000, 1], np.uint32)
    assert run(y, ("relu",), 0, 0).tolist() == [0, 0, 0, 0xFFC00000, 0x7FC00001, 0, 1]


def test_stall_holds_every_register():
    y, stall = values(3)[:60], set(np.random.default_rng(0).integers(0, 120, 50).tolist())
    steps = ("scale", "bias", "relu")
    np.testing.assert_array_equal(run(y, steps, 0x40490FDB, 0x3DCCCCCD, stall), run(y, steps, 0x40490FDB, 0x3DCCCCCD))


@pytest.mark.parametrize("pipeline", sweep(2, [6, 1]))
def test_lane_for_an_fpga_multiplies_by_what_becomes_dsp_blocks(pipeline):
    """Products of parts are `*`; in the least delay for gates they are rows of full adders."""
    design = Design(rows=2, cols=2, pipeline=pipeline, fabric="fpga")
    assert " * " in convert(SideLane.of(design), name="lane")
    assert " * " not in convert(SideLane.of(Design(rows=2, cols=2, pipeline=7)), name="lane")
