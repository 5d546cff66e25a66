# amaranth: UnusedElaboratable=no
"""Accumulation along K equals golden, cycle by cycle as promised; docs/numerics.md, sections 4 and 5.

Covers: rtl/accumulate/signatures.py, rtl/number/accumulation.py, rtl/fixed/scales.py.
"""

import itertools

import numpy as np
import pytest

from golden.bfp import CANONICAL_NAN
from golden.narrow import NARROW, accumulate_plain
from golden.number.rounding import shift_half_up
from golden.number.to_fp32 import add_fp32, to_fp32
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.accumulate.accumulator import Accumulator
from rtl.accumulate.signatures import beat_layout
from rtl.fixed.scales import scale_offset
from tests.cases import sweep

from ..drive import Bench, bits, pack, unpack, wait

DEPTH = 5
#: Name -> (terms of a block, rows, group, options)
DESIGNS = {
    "fp32": (4, 4, (2, 2), {}),
    "fp32-segments": (2, 6, (1, 2), {}),
    "fp32-long": (8, 4, (4, 1), {}),
    "fp32-narrow": (4, 4, (4, 1), {"exponent": 5}),
    "fp32-wide": (4, 4, (4, 1), {"exponent": 12, "mantissa": 16}),
    "aligned": (4, 4, (2, 2), {"accumulate": "aligned"}),
    "aligned-segments": (2, 4, (1, 1), {"accumulate": "aligned", "growth": 4, "guard": 0}),
    "aligned-long": (8, 4, (4, 1), {"accumulate": "aligned", "growth": 3}),
    "fp24": (4, 4, (2, 2), {"accumulate": "fp24"}),
    "fp24-wide": (4, 4, (4, 1), {"accumulate": "fp24", "mantissa": 12}),
    "bf16": (4, 4, (2, 2), {"accumulate": "bf16"}),
    "bf16-segments": (2, 6, (1, 2), {"accumulate": "bf16", "mantissa": 3}),
    "one-bank": (4, 4, (2, 2), {"banks": 1}),
    "one-bank-long": (8, 4, (4, 1), {"banks": 1}),
    "aligned-one-bank": (4, 4, (2, 2), {"banks": 1, "accumulate": "aligned"}),
    "fpga": (4, 4, (2, 2), {"pipeline": 2, "fabric": "fpga"}),
    "fpga-segments": (2, 6, (1, 2), {"pipeline": 1, "fabric": "fpga", "accumulate": "bf16", "mantissa": 3}),
    "fpga-long": (8, 4, (4, 1), {"pipeline": 1, "fabric": "fpga"}),
    "fpga-aligned": (4, 4, (2, 2), {"pipeline": 1, "fabric": "fpga", "accumulate": "aligned"}),
    "fpga-aligned-long": (8, 4, (4, 1), {"pipeline": 1, "fabric": "fpga", "accumulate": "aligned", "growth": 3}),
    "tiles": (4, 4, (2, 4), {"tile": 4}),
    "aligned-tiles": (4, 4, (2, 4), {"accumulate": "aligned", "tile": 4}),
    "aligned-small-tiles": (2, 4, (1, 4), {"accumulate": "aligned", "growth": 4, "tile": 2}),
    "aligned-long-tiles": (8, 4, (4, 2), {"accumulate": "aligned", "growth": 3, "tile": 8}),
    "int": (4, 4, (2, 2), {"arithmetic": "int"}),
    "float": (4, 4, (2, 2), {"arithmetic": "fp32"}),
}


def make(name):
    terms, rows, group, options = DESIGNS[name]
    options = dict(options)
    block = options.pop("tile", 1), terms
    fmt = HBFPFormat(block=block, exponent=options.pop("exponent", 10), mantissa=options.pop("mantissa", 6))
    return Design(format=fmt, rows=rows, cols=group[1], group=group, depth=DEPTH, **options)


class Command:
    """Random sums, exponents and flags of ``passes`` passes of ``rows`` rows, and what becomes of them."""

    def __init__(self, design, rows, passes, seed):
        self.design, self.rows, self.passes = design, rows, passes
        rng = np.random.default_rng(seed)
        shape = passes, rows, design.segments, design.group[1]
        if design.integer:
            most = design.height * design.format.limit ** 2
            self.sums = rng.integers(-most, most + 1, shape)
            kind = rng.integers(0, 5, shape)
            self.sums[kind == 0], self.sums[kind == 1], self.sums[kind == 2] = most, -most, 0
        else:
            self.sums = (rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, shape)).astype(
                np.float32).view(np.uint32)
        low, high = design.format.exponent_range
        span = rng.choice([3, 40, 4000])
        centre = rng.integers(-70, 70)

        def pick(*size):
            return np.clip(centre + rng.integers(-span, span + 1, size), low, high)

        blocks = -(-passes // design.block_tiles)
        self.ex = pick(blocks, rows, design.segments).repeat(design.block_tiles, 0)[:passes]
        self.ew = pick(blocks, design.segments, design.group[1]).repeat(design.block_tiles, 0)[:passes]
        self.nan_x = (rng.random(self.ex.shape) < 0.02).astype(int)
        self.nan_w = (rng.random(self.ew.shape) < 0.01).astype(int)
        of_tile = np.arange(design.group[1]) // design.scale_cols * design.scale_cols
        self.ew, self.nan_w = self.ew[..., of_tile], self.nan_w[..., of_tile]

    def flags(self, tile, row, bank):
        d = self.design
        place = tile % d.block_tiles
        closes = place == d.block_tiles - 1 or tile == self.passes - 1
        return pack(beat_layout(), valid=1, first=tile < d.block_tiles, opens=place == 0, closes=closes,
                    last=tile == self.passes - 1 and row == self.rows - 1, top=row == 0, bank=bank)

    def result(self):
        """(rows, columns) of bits or integers."""
        out = np.empty((self.rows, self.design.group[1]), object)
        for row in range(self.rows):
            for column in range(out.shape[1]):
                out[row, column] = self._element(row, column)
        return out

    def _element(self, row, column):
        d = self.design
        sums = self.sums[:, row, :, column]
        if not d.blocked:
            if d.arithmetic == "int":
                return int(sums.sum())
            acc = np.float32(0)
            for word in sums[:, 0]:
                acc = add_fp32(acc, word.view(np.float32))
            return int(np.asarray(acc, np.float32).view(np.uint32))
        tops = range(0, self.passes, d.block_tiles)
        blocks = [(int(sums[t:t + d.block_tiles, s].sum()),
                   int(self.ex[t, row, s] + self.ew[t, s, column]) - 2 * d.format.magnitude)
                  for t in tops for s in range(d.segments)]
        # A flag counts where its block is complete.
        ends = [min(t + d.block_tiles, self.passes) - 1 for t in tops]
        if any(self.nan_x[t, row, s] or self.nan_w[t, s, column] for t in ends for s in range(d.segments)):
            return int(CANONICAL_NAN)
        if d.accumulate in NARROW:
            pairs = [(np.array(total), np.array(step)) for total, step in blocks]
            return int(accumulate_plain(pairs, NARROW[d.accumulate]).view(np.uint32))
        if d.accumulate == "fp32":
            acc = np.float32(0)
            for total, step in blocks:
                acc = add_fp32(acc, to_fp32(total, step))
        else:
            acc, last = blocks[0][0] << d.guard, blocks[0][1]
            for total, step in blocks[1:]:
                ahead = step - last
                acc = shift_half_up(acc, max(ahead, 0)) + shift_half_up(total << d.guard, max(-ahead, 0))
                last = max(step, last)
            acc = to_fp32(acc, last - d.guard)
        return int(np.asarray(acc, np.float32).view(np.uint32))


def schedule(dut, design, pair, rng, pause):
    """Cycle -> list of (port, bits), cycle -> segments that load, cycles in all; row 0 comes in cycle 2."""
    h = design.height // design.group[0]
    events, loads, cycle = {}, {}, 2

    def at(when, port, value):
        events.setdefault(when, []).append((bits(port), int(value) & (1 << len(bits(port))) - 1))

    for bank, command in enumerate(pair):
        for tile in range(command.passes):
            start = cycle
            for row in range(command.rows):
                # Never closer than the interval to the same row of the pass before.
                at(cycle, dut.west.beat, command.flags(tile, row, bank))
                at(cycle, dut.west.address, row)
                for s in range(design.segments):
                    at(cycle + 1 + s * h, dut.sums[s], pack(dut.sums[s].shape(), value=command.sums[tile, row, s]))
                    if design.blocked:
                        at(cycle + s * h, dut.west.exponent[s],
                           int(command.ex[tile, row, s]) - scale_offset(design))
                        at(cycle + s * h, dut.west.invalid[s], command.nan_x[tile, row, s])
                        if row == 0:
                            at(cycle + s * h, dut.w[s], pack(
                                dut.w[s].shape(), exponent=command.ew[tile, s], invalid=command.nan_w[tile, s]))
                            loads[cycle + s * h] = loads.get(cycle + s * h, 0) | 1 << s
                cycle += 1
                while rng.random() < pause:
                    cycle += 1
            cycle = max(cycle, start + Accumulator.Parameters.of(design).interval + (cycle - start - command.rows))
    return events, loads, cycle + Accumulator.Parameters.of(design).latency


async def fill(ctx, dut, design, plan, each=None):
    """Play what :func:`schedule` gives; ``each`` is called with every cycle before it ends."""
    events, loads, end = plan
    for cycle in range(end):
        ctx.set(bits(dut.west.beat), 0)
        for port, value in events.get(cycle, ()):
            ctx.set(port, value)
        if design.blocked:
            ctx.set(dut.west.load, loads.get(cycle, 0))
        if each:
            each(cycle)
        await ctx.tick()
        for s in range(design.segments if design.blocked else 0):    # seen only in their cycle
            ctx.set(bits(dut.w[s]), 0x155)


def run(design, commands, pause=0.0, seed=0):
    """Play commands into alternating banks, as many at a time as there are, and read all; results per command."""
    dut, rng = Accumulator.of(design), np.random.default_rng(seed)
    results = []

    async def play(ctx):
        for first in range(0, len(commands), design.banks):
            pair = commands[first:first + design.banks]
            ctx.set(dut.draining, 0)
            ctx.set(dut.read.en, 1)
            await fill(ctx, dut, design, schedule(dut, design, pair, rng, pause))
            for bank, command in enumerate(pair):
                rows = []
                ctx.set(dut.draining, 1 << bank)
                for row in range(command.rows):
                    ctx.set(dut.read.address, row)
                    ctx.set(dut.read.en, 1)
                    await ctx.tick()
                    ctx.set(dut.read.en, 0)
                    ctx.set(dut.read.address, (row + 1) % DEPTH)
                    await wait(ctx, 2)    # held
                    rows.append(unpack(dut.o.shape(), ctx.get(bits(dut.o)))["value"])
                results.append(rows)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    if design.arithmetic == "int":
        sign = 1 << design.result_width - 1
        results = [[[(v ^ sign) - sign for v in row] for row in rows] for rows in results]
    return results


def commands(design, count=4):
    most = 2 ** design.growth * design.block_tiles // design.segments if design.accumulate == "aligned" else 9
    rng = np.random.default_rng(7)
    return [Command(design, int(rng.integers(1, DEPTH + 1)), int(rng.integers(1, min(most, 9) + 1)), seed)
            for seed in range(count)]


@pytest.mark.parametrize("name, pause", sweep(7, itertools.product(DESIGNS, [0, 0.4])))
def test_sums_equal_golden(name, pause):
    design = make(name)
    played = commands(design)
    got = run(design, played, pause)
    for n, command in enumerate(played):
        assert got[n] == command.result().tolist(), n


@pytest.mark.parametrize("name", sweep(3, [
    name for name in DESIGNS if DESIGNS[name][3].get("banks", 2) == 2]))
def test_a_bank_is_read_for_a_sum_that_is_added_to(name):
    """Neither an idle bank, nor one whose words start anew, nor a row whose block goes on in the next pass."""
    design, made, read = make(name), [], []
    dut, command = Accumulator.of(design), Command(design, 3, 4 * design.block_tiles, 1)
    body = dut.body
    dut.body = lambda platform: made.append(body(platform)) or made[0]

    async def play(ctx):
        def note(cycle):
            read.append([ctx.get(bank.r_en) for bank in (made[0].submodules.bank0, made[0].submodules.bank1)])
        ctx.set(dut.draining, 0)
        ctx.set(dut.read.en, 1)
        await fill(ctx, dut, design, schedule(dut, design, [command], np.random.default_rng(0), 0.3), note)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert np.sum(read, 0).tolist() == [3 * 3, 0]


@pytest.mark.parametrize("name", ["aligned", "int", "aligned-segments", "aligned-long"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_as_many_blocks_as_fit(name, sign):
    """The most blocks, each with the largest sum and the same exponent: the accumulator's last bit counts."""
    design = make(name)
    blocks = 2 ** design.growth * design.block_tiles // design.segments
    command = Command(design, 1, min(blocks, 256), 0)
    command.sums[:] = sign * design.height * design.format.limit ** 2
    for scale in (command.ex, command.ew, command.nan_x, command.nan_w):
        scale[:] = 0
    assert run(design, [command]) == [command.result().tolist()]


@pytest.mark.parametrize("name", sweep(3, DESIGNS))
def test_neighbour_gets_everything_a_cycle_later(name):
    design = make(name)
    dut, rng = Accumulator.of(design), np.random.default_rng(1)
    west, east = ({path: bits(value)[:] for path, _, value in side.signature.flatten(side)}
                  for side in (dut.west, dut.east))
    names = {"beat", "address"} | ({"load", "exponent", "invalid"} if design.blocked else set())
    assert {path[0] for path in west} == names and west.keys() == east.keys()

    async def play(ctx):
        for _ in range(10):
            values = {}
            for path, port in west.items():
                values[path] = int(rng.integers(2 ** len(port)))
                ctx.set(port, values[path])
            await ctx.tick()
            for port in west.values():
                ctx.set(port, 0)
            assert {path: ctx.get(port) for path, port in east.items()} == values
    bench = Bench(dut)
    bench.process(play)
    bench.run()


def test_exponent_offset():
    assert scale_offset(make("fp32")) == 10 and scale_offset(make("aligned")) == 14


@pytest.mark.parametrize("name", ["one-bank", "one-bank-long", "aligned-one-bank"])
@pytest.mark.parametrize("late", [-1, 0, 1])
def test_one_bank_is_read_out_while_it_is_filled(name, late):
    """A command's first sums do not touch the read port; a row that is read in the very cycle in which it is written
    is the old one still, and the new one a cycle later."""
    design = make(name)
    dut, passes, got = Accumulator.of(design), design.block_tiles, []
    old, new = Command(design, DEPTH, 3 * passes, 1), Command(design, DEPTH, passes, 2)
    first = 2 + (passes - 1) * max(DEPTH, dut.params.interval) + dut.params.latency    # cycle of the first write

    async def play(ctx):
        def read(cycle):
            if first + late < cycle <= first + late + DEPTH:
                got.append(unpack(dut.o.shape(), ctx.get(bits(dut.o)))["value"])
            ctx.set(dut.read.address, min(max(cycle - first - late, 0), DEPTH - 1))
        ctx.set(dut.draining, 0)
        await fill(ctx, dut, design, schedule(dut, design, [old], np.random.default_rng(0), 0))
        ctx.set(dut.draining, 1)
        ctx.set(dut.read.en, 1)
        events, loads, end = schedule(dut, design, [new], np.random.default_rng(0), 0)
        await fill(ctx, dut, design, (events, loads, end + 3), read)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert got == (new if late > 0 else old).result().tolist()
