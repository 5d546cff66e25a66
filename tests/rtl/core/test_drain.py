# amaranth: UnusedElaboratable=no
"""The way out: whole banks in turn, each row once, the side unit's operands with their command; one bank row by row.

Covers: rtl/core/side_turns.py.
"""

import numpy as np
import pytest

import golden.fp32 as fp32
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.core.drain import Drain
from rtl.core.sequencer import STEPS, steps_layout
from rtl.lib.layout import ArrayLayout
from rtl.number.streams import result_layout
from tests.cases import sweep

from ..drive import Bench, Pauses, bits, pack, unpack, wait
from .test_side import golden_side

DEPTH = 5


def make(arithmetic="hbfp", cols=2, side_lanes=0, banks=2):
    return Design(format=HBFPFormat(block=(1, 2)), rows=2, cols=cols, group=(1, 1), depth=DEPTH, arithmetic=arithmetic,
                  side_lanes=side_lanes, banks=banks)


class Job:
    """A command's rows, steps and operands."""

    def __init__(self, design, rows, steps, seed):
        rng, cols = np.random.default_rng(seed), design.cols
        self.rows, self.steps = rows, steps
        if design.arithmetic == "int":
            half = 1 << design.result_width - 1
            self.values = rng.integers(-half, half, (rows, cols))
            self.want = self.values.tolist()
            return
        self.values = rng.standard_normal((rows, cols)).astype(np.float32).view(np.uint32)
        if design.number.sums:    # of all sizes, so that some round
            self.values = (self.values.view(np.int32) >> rng.integers(0, 31, (rows, cols), np.int32)).view(np.uint32)
        y = fp32.from_int32(self.values) if design.number.sums else self.values
        self.scale, self.bias = rng.standard_normal((2, cols)).astype(np.float32).view(np.uint32)
        self.want = golden_side(y, self.scale, self.bias, steps).tolist()

    def operands(self, design):
        return [pack(ArrayLayout(32, design.cols), value=v) for step, v in (("scale", getattr(self, "scale", None)),
                                                                            ("bias", getattr(self, "bias", None)))
                if step in self.steps]


class Banks:
    """Two banks of words that ``draining`` reads with a cycle's delay, as the lanes do."""

    def __init__(self, dut, design):
        self.dut, self.design = dut, design
        self.words = [[None] * DEPTH, [None] * DEPTH]

    async def play(self, ctx):
        dut, garbage = self.dut, [0x5EA50F] * self.design.group_cols
        held, shown = [garbage, garbage], 0
        while True:
            for port, word in zip(dut.value, held[shown], strict=True):
                ctx.set(bits(port), word)
            _, _, *asked = await ctx.tick().sample(*dut.draining, *(port.en for port in dut.read),
                                                   *(port.address for port in dut.read))
            draining, enable, address = asked[::dut.params.groups]
            assert draining != 3 and asked == [each for each in asked[::dut.params.groups]
                                               for _ in range(dut.params.groups)]
            shown = draining >> 1 if enable else shown
            for bank, words in enumerate(self.words):
                if not draining >> bank & 1:
                    held[bank] = garbage    # the array's own accumulation uses the port
                elif enable:
                    held[bank] = words[address] if address < DEPTH and words[address] else garbage


async def begin(ctx, dut, banks, jobs, word, fill, frees, behind=0):
    """Begin each job when its bank is free, fill the bank with what ``word`` makes of its rows, and say so.

    ``frees`` gets which banks are free then. One bank is filled row by row, ``behind`` cycles after each may be.
    """
    bank, one = 0, dut.params.banks == 1
    for job in jobs:
        while not ctx.get(dut.free) >> bank & 1:
            await ctx.tick()
        ctx.set(dut.begins, 1)
        ctx.set(dut.bank, bank)
        ctx.set(dut.rows, job.rows)
        ctx.set(bits(dut.steps), pack(steps_layout(), **{step: step in job.steps for step in STEPS}))
        await ctx.tick()
        ctx.set(dut.begins, 0)
        ctx.set(bits(dut.steps), 0)
        ctx.set(dut.rows, 0)
        assert not ctx.get(dut.free) >> bank & 1
        await wait(ctx, fill)
        for n, row in enumerate(job.values):
            if one:
                ctx.set(dut.place, n)
                while not (ctx.get(dut.vacant) or ctx.get(dut.free) >> (1 - bank) & 1):
                    await ctx.tick()
                await wait(ctx, behind)
            banks.words[0 if one else bank][n] = word(row)
        ctx.set(dut.done, 1 << bank)
        await ctx.tick()
        ctx.set(dut.done, 0)
        bank ^= 1
        frees.append(ctx.get(dut.free))


def run(design, jobs, *, fill=4, stall=0.0, late=0.0, reset_after=None, after=()):
    """Results of jobs that fill the banks in turn, each ``fill`` cycles after it begins; banks are checked."""
    dut = Drain.of(design)
    bench, banks = Bench(dut), Banks(dut, design)
    width = design.result_width
    frees = []

    def word(values):
        return [int(v) & (1 << width) - 1 for v in values]    # one column a group

    async def play(ctx):
        await begin(ctx, dut, banks, jobs, word, fill, frees)
        if reset_after is not None:
            await wait(ctx, reset_after)
            ctx.set(bench.reset, 1)
            await ctx.tick()
            ctx.set(bench.reset, 0)
            assert ctx.get(dut.free) == 3 and not ctx.get(dut.o.valid)
            await begin(ctx, dut, banks, after, word, fill, frees)

    bench.process(banks.play, background=True)
    last = after if reset_after is not None else jobs
    operands = [word for job in (*jobs, *after) for word in job.operands(design)]
    if operands:
        bench.send(dut.i_v, operands, Pauses(late, 8))
    bench.process(play)
    got = bench.receive(dut.o, sum(job.rows for job in last), Pauses(stall, 9))
    bench.run()
    beats = [unpack(result_layout(design), word) for word in got]
    want = [(row, int(n == job.rows - 1)) for job in last for n, row in enumerate(job.want)]
    assert [(beat["value"], beat["last"][0]) for beat in beats] == want
    return frees


STEPS_OF_JOBS = [(), ("scale",), ("bias", "relu"), ("scale", "bias", "relu"), ("scale", "bias"), ("relu",), ()]


def jobs(design):
    steps = STEPS_OF_JOBS if design.arithmetic != "int" else [()] * 6
    return [Job(design, int(rows), s, n) for n, (rows, s) in enumerate(
        zip([DEPTH, 1, 2, 3, 1, 4, 5], steps, strict=False))]


@pytest.mark.parametrize("arithmetic, fill, stall, late", sweep(3, [
    (arithmetic, fill, *pauses) for arithmetic in ("hbfp", "int", "int8") for fill in (1, 12)
    for pauses in ((0, 0), (0.6, 0), (0, 0.8), (0.4, 0.6))]))
def test_rows_leave_in_order(arithmetic, fill, stall, late):
    design = make(arithmetic)
    run(design, jobs(design), fill=fill, stall=stall, late=late)


@pytest.mark.parametrize("cols, side_lanes, fill, stall, late", sweep(5, [
    (*columns, fill, *pauses) for columns in ((2, 1), (4, 2), (6, 2), (5, 1), (4, 4)) for fill in (1, 12)
    for pauses in ((0, 0), (0.6, 0), (0, 0.8), (0.4, 0.6))]))
def test_lanes_serve_the_columns_in_turns(cols, side_lanes, fill, stall, late):
    design = make(cols=cols, side_lanes=side_lanes)
    run(design, jobs(design), fill=fill, stall=stall, late=late)


@pytest.mark.parametrize("arithmetic, cols, side_lanes", [
    ("hbfp", 2, 0), ("hbfp", 2, 1), ("int", 2, 0), ("int8", 4, 2)])
@pytest.mark.parametrize("fill", [0, 7])
@pytest.mark.parametrize("stall, late", [(0, 0), (0.6, 0.3)])
def test_one_bank_is_filled_behind_the_rows_that_are_read(arithmetic, cols, side_lanes, fill, stall, late):
    design = make(arithmetic, cols, side_lanes, banks=1)
    frees = run(design, jobs(design), fill=fill, stall=stall, late=late)
    assert not stall or 0 in frees    # complete before the rows of the command before have all left


def test_both_banks_fill_while_the_way_out_is_shut():
    design = make()
    frees = run(design, jobs(design), fill=1, stall=0.95)
    assert 0 in frees    # both taken: the array would wait


def check_cycles(dut, rows):
    """A command of so many rows, never paused: its rows leave in the cycles that ``latencies`` says."""
    cycles = []

    async def play(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.begins, 1)
        ctx.set(dut.rows, rows)
        await ctx.tick()
        ctx.set(dut.begins, 0)
        await wait(ctx, 3)
        ctx.set(dut.done, 1)    # the cycle of the bank's last write
        for cycle in range(60):
            if ctx.get(dut.o.valid):
                cycles.append(cycle)
            await ctx.tick()
            ctx.set(dut.done, 0)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    latencies = dut.latencies
    assert cycles == [latencies["result"] + row * latencies["row"] for row in range(rows)]


@pytest.mark.parametrize("arithmetic, side_lanes", [("hbfp", 0), ("hbfp", 2), ("hbfp", 1), ("int", 0)])
@pytest.mark.parametrize("rows", [1, DEPTH])
def test_latency_and_cycles_of_a_row(arithmetic, side_lanes, rows):
    design = make(arithmetic, cols=4, side_lanes=side_lanes)
    check_cycles(Drain.of(design), rows)


@pytest.mark.parametrize("cycles", [0, 1, 3, 6, 9])
@pytest.mark.parametrize("side_lanes", [0, 1])
def test_reset_in_mid_stream(cycles, side_lanes):
    design = make(side_lanes=side_lanes)
    before = [Job(design, 4, (), 1), Job(design, 1, (), 2)]
    after = [Job(design, 2, ("bias",), 3), Job(design, 4, (), 4)]
    run(design, before, fill=2, stall=0.7, reset_after=cycles, after=after)


def test_integers_have_no_side_unit():
    assert not hasattr(Drain.of(make("int")), "i_v")
