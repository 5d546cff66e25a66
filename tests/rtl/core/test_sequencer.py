# amaranth: UnusedElaboratable=no
"""The sequencer: every row with its flags, passes that wait for what they need, commands refused."""

import numpy as np
import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.accumulate.signatures import DIGITS, beat_layout
from rtl.core.sequencer import STEPS, Sequencer, command_layout, steps_layout
from tests.cases import cover

from ..drive import Bench, Pauses, bits, pack, unpack, wait

DEPTH = 6
#: Of a design whose last rows and passes are known a row ahead.
AHEAD = {"pipeline": 1, "fabric": "fpga"}


def make(terms=4, rows=4, **options):
    return Design(format=HBFPFormat(block=(1, terms)), rows=rows, cols=1, depth=DEPTH,
                  ragged="arithmetic" not in options, **options)


def command(design, rows, tiles, steps=()):
    fields = {step: step in steps for step in STEPS} if design.arithmetic != "int" else {}
    return pack(command_layout(design), rows=rows, tiles=tiles, **fields)


def expected(design, commands, bank=0):
    """The rows of all passes, in order: (command, pass, row) and flags."""
    result = []
    for c, (rows, tiles) in enumerate(commands):
        for tile in range(tiles):
            place = tile % design.block_tiles
            closes = place == design.block_tiles - 1 or tile == tiles - 1
            for row in range(rows):
                result.append(((c, tile, row), {
                    "valid": 1, "first": int(tile < design.block_tiles), "opens": int(place == 0),
                    "closes": int(closes), "last": int(tile == tiles - 1 and row == rows - 1),
                    "top": int(row == 0), "bank": bank}))
        bank ^= 1
    return result


class Run:
    """A sequencer beside models of weights and banks.

    Attributes
    ----------
    beats : list of (cycle, flags)
    starts, begins : list of cycles
    digits, wide : list
        Where mantissas may be wide: flags of the cycles with high digits or none yet, and the modes of each row.
    """

    def __init__(self, design, interval, commands, *, idle=0.0, weights=0.0, drain=3, limit=4000):
        self.design, self.interval, self.commands = design, interval, commands
        self.dut = dut = Sequencer.of(design, interval)
        self.beats, self.starts, self.begins, self.errors, self.digits, self.wide = [], [], [], [], [], []
        rng, self.total = np.random.default_rng(4), len(expected(design, commands))
        bench = Bench(dut)

        async def play(ctx):
            free, release, has_weights = 3, {}, 1
            for cycle in range(limit):
                free |= release.pop(cycle, 0)
                has_weights = has_weights or rng.random() >= weights
                ctx.set(dut.free, free)
                ctx.set(dut.weights, int(has_weights))
                ctx.set(dut.x_valid, int(rng.random() >= idle))
                beat = unpack(beat_layout(bool(design.wide)), ctx.get(bits(dut.beat)))
                beat = {name: value for name, (value,) in beat.items()}
                start, begin, error = ctx.get(dut.start), ctx.get(dut.begins), ctx.get(dut.error)
                self.errors.append(error)
                if design.wide and (beat["high"] or beat["waits"]):
                    self.digits.append((cycle, beat))
                if beat["valid"]:
                    self.beats.append((cycle, beat))
                    if design.wide:
                        self.wide.append((ctx.get(dut.wide.wide_x), ctx.get(dut.wide.wide_w)))
                    if beat["last"]:
                        release[cycle + drain] = 1 << beat["bank"]
                if start:
                    assert has_weights and beat["top"]
                    has_weights = rng.random() >= weights
                    self.starts.append(cycle)
                if begin:
                    assert start and free >> beat["bank"] & 1, "began in a bank that is not free"
                    free &= ~(1 << beat["bank"])
                    steps = {name: value for name, (value,) in unpack(
                        steps_layout(), ctx.get(bits(dut.steps))).items()}
                    self.begins.append((ctx.get(dut.rows), steps))
                await ctx.tick()
                if len(self.beats) == self.total and cycle > self.beats[-1][0] + 5:
                    break
        bench.process(play)
        self.bench = bench

    def go(self, words, pauses=None):
        self.bench.send(self.dut.i_cmd, words, pauses)
        self.bench.run()
        return self


COMMANDS = [(3, 2), (1, 1), (1, 5), (6, 3), (2, 4), (6, 1), (5, 2)]


@pytest.mark.parametrize("sizes, pauses", cover([
    (4, 4, {}), (2, 4, {}), (8, 4, {}), (12, 4, {}), (10, 4, {}), (4, 4, AHEAD), (12, 4, AHEAD)],
    [(0, 0), (0.5, 0), (0, 0.7), (0.3, 0.5)], turns=1), ids=str)
def test_rows_carry_their_flags(sizes, pauses):
    (terms, rows, options), (idle, weights) = sizes, pauses
    design = make(terms, rows, **options)
    pauses = [Pauses(0.7)] if options and idle else []
    run = Run(design, 5, COMMANDS, idle=idle, weights=weights).go([command(design, *c) for c in COMMANDS], *pauses)
    assert [beat for _, beat in run.beats] == [beat for _, beat in expected(design, COMMANDS)]
    assert [rows for rows, _ in run.begins] == [rows for rows, _ in COMMANDS]
    assert len(run.starts) == sum(tiles for _, tiles in COMMANDS)
    assert not any(run.errors)


@pytest.mark.parametrize("interval", [3, 4, 7, 20])
@pytest.mark.parametrize("idle", [0, 0.6])
def test_same_row_of_two_passes_keeps_the_interval(interval, idle):
    design = make()
    run = Run(design, interval, COMMANDS, idle=idle).go([command(design, *c) for c in COMMANDS])
    seen = {}
    for (cycle, _), ((c, tile, row), _) in zip(run.beats, expected(design, COMMANDS), strict=True):
        assert cycle - seen.get((c, tile - 1, row), -interval) >= interval
        seen[c, tile, row] = cycle
    assert min(np.diff(run.starts)) == (interval if interval > 1 else 1) or idle


@pytest.mark.parametrize("options", [{}, AHEAD], ids=str)
def test_no_bubble_between_passes_and_commands(options):
    design = make(**options)
    commands = [(6, 3), (6, 1), (6, 2), (5, 2)]
    run = Run(design, 5, commands, drain=2).go([command(design, *c) for c in commands])
    cycles = [cycle for cycle, _ in run.beats]
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles)))


def test_command_waits_for_its_bank():
    design = make()
    commands = [(2, 1)] * 5
    run = Run(design, 1, commands, drain=50).go([command(design, *c) for c in commands])
    for later, earlier in zip(run.starts[2:], run.starts, strict=False):
        assert later >= earlier + 1 + 50


@pytest.mark.parametrize("terms", [4, 8])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0, 0.6), (0.5, 0.3)])
def test_one_bank_is_written_behind_what_is_read(terms, idle, stall):
    """Of every command's first sums that are kept, a row is taken as soon as that row of the command before has been
    read, and not before; its later ones when all have been; what is not kept, at any time."""
    design = make(terms, banks=1)
    dut, rng, lags = Sequencer.of(design, 1), np.random.default_rng(8), set()
    places = expected(design, COMMANDS)
    bench = Bench(dut)

    async def play(ctx):
        read = [0] * len(COMMANDS)    # rows of each command that have left the bank, and whether the last is let go
        free, complete, taken = [True] * len(COMMANDS), [], 0
        ctx.set(dut.weights, 1)
        for _ in range(4000):
            (command, tile, row), flags = places[taken]
            before = max(command - 1, 0)
            older = command < 2 or free[command - 2]
            ctx.set(dut.free, older << command % 2 | (not command or free[before]) << (1 - command % 2))
            ctx.set(dut.vacant, int(command > 0 and ctx.get(dut.row) < read[before]))
            valid = rng.random() >= idle
            ctx.set(dut.x_valid, int(valid))
            follows = flags["closes"] and command
            may = (older or tile or row) and (not follows or free[before] or (flags["first"] and row < read[before]))
            got = {name: value for name, (value,) in unpack(beat_layout(), ctx.get(bits(dut.beat))).items()}
            assert not got["valid"] or (valid and may and got == flags)
            if got["valid"] and follows and flags["first"] and not free[before]:
                lags.add(read[before] - row)
            if got["valid"]:
                free[command] = False
                taken += 1
                if flags["last"]:
                    complete.append(command)
                if taken == len(places):
                    return
            await ctx.tick()
            for done in complete[:1]:    # one row a cycle, and a cycle later the bank is let go
                if read[done] == COMMANDS[done][0]:
                    free[done] = True
                    complete.pop(0)
                elif rng.random() >= stall:
                    read[done] += 1
        raise AssertionError("not all rows were taken")
    bench.send(dut.i_cmd, [command(design, *each) for each in COMMANDS])
    bench.process(play)
    bench.run()
    assert 1 in lags and max(lags) <= DEPTH    # as soon as it was read


@pytest.mark.parametrize("terms, options", [(4, {}), (8, {}), (8, AHEAD)], ids=str)
@pytest.mark.parametrize("interval, idle", [(3, 0), (7, 0), (7, 0.6)])
def test_rows_of_wide_x_take_two_beats(terms, options, interval, idle):
    """High digits, then low ones: the row is there with these, and keeps the interval; the other modes are as ever."""
    design = Design(format=HBFPFormat(mantissa=4, block=(1, terms)), rows=4, cols=2, depth=DEPTH, wide=6, **options)
    modes = [(n >> 1 & 1, n & 1) for n in range(len(COMMANDS))]
    words = [pack(command_layout(design), rows=rows, tiles=tiles, scale=0, bias=0, relu=0, wide_x=x, wide_w=w)
             for (rows, tiles), (x, w) in zip(COMMANDS, modes, strict=True)]
    run = Run(design, interval, COMMANDS, idle=idle, weights=idle).go(words)
    where = [place for place, _ in expected(design, COMMANDS)]
    plain = [{name: value for name, value in beat.items() if name not in DIGITS} for _, beat in run.beats]
    assert plain == [beat for _, beat in expected(design, COMMANDS)]
    assert [beat["pair"] for _, beat in run.beats] == [modes[c][1] for c, _, _ in where]
    assert run.wide == [modes[c] for c, _, _ in where]
    # One row of high digits before each row of a command with wide X, and low ones are waited for after it.
    high = [cycle for cycle, flags in run.digits if flags["high"]]
    rows = [cycle for (cycle, _), (c, _, _) in zip(run.beats, where, strict=True) if modes[c][0]]
    assert len(high) == len(rows) and all(a < b for a, b in zip(high, rows, strict=True))
    assert all(b < a for a, b in zip(high[1:], rows, strict=False))
    waits = [cycle for cycle, flags in run.digits if flags["waits"]]
    assert waits == [cycle for a, b in zip(high, rows, strict=True) for cycle in range(a + 1, b)]
    seen = {}
    for (cycle, _), (c, tile, row) in zip(run.beats, where, strict=True):
        assert cycle - seen.get((c, tile - 1, row), -interval) >= interval
        seen[c, tile, row] = cycle


def test_steps_belong_to_their_command():
    design = make()
    steps = [("scale",), (), ("bias", "relu"), ("scale", "bias", "relu")]
    run = Run(design, 3, [(2, 2)] * 4).go([command(design, 2, 2, s) for s in steps], Pauses(0.7))
    assert [{name for name, on in got.items() if on} for _, got in run.begins] == [set(s) for s in steps]


# --- Commands that are refused -------------------------------------------------------------------

ALIGNED = {"accumulate": "aligned", "growth": 2}
#: (options, rows, tiles, accepted)
OFFERS = [
    ({}, 0, 1, False), ({}, DEPTH, 1, True), ({}, DEPTH + 1, 1, False), ({}, 1, 0, False),
    ({}, 1, 1, True),
    ({**ALIGNED}, 1, 4, True), ({**ALIGNED}, 1, 5, False),
    ({**ALIGNED, "terms": 2}, 1, 2, True), ({**ALIGNED, "terms": 2}, 1, 3, False),
    ({**ALIGNED, "terms": 8}, 1, 8, True), ({**ALIGNED, "terms": 8}, 1, 9, False),
    ({"arithmetic": "int", "growth": 2}, 1, 4, True), ({"arithmetic": "int", "growth": 2}, 1, 5, False),
]


@pytest.mark.parametrize("options, rows, tiles, accepted", [*OFFERS, (AHEAD, 1, 0, False), (AHEAD, 1, 1, True)])
def test_refused_commands(options, rows, tiles, accepted):
    """What cannot run raises ``error`` for good and is dropped; the commands around it run."""
    design = make(**options)
    good = (2, 1)
    commands = [good, (rows, tiles), good] if accepted else [good, good]
    run = Run(design, 3, commands).go([command(design, *c) for c in (good, (rows, tiles), good)])
    assert [beat for _, beat in run.beats] == [beat for _, beat in expected(design, commands)]
    first = run.errors.index(1) if 1 in run.errors else None
    assert (first is None) == accepted
    assert accepted or all(run.errors[first:])


@pytest.mark.parametrize("cycles", [1, 2, 3, 5, 8, 13])
def test_reset_in_mid_stream(cycles):
    """After a reset the next command begins in bank 0 with row 0, whatever ran before; ``error`` is forgotten."""
    design = make(8)
    dut, got = Sequencer.of(design, 4), []
    words = [command(design, *c) for c in ((3, 3), (DEPTH + 1, 1), (2, 2))]

    async def offer(ctx, commands):
        for word in commands:
            ctx.set(bits(dut.i_cmd.payload), word)
            ctx.set(dut.i_cmd.valid, 1)
            while not (await ctx.tick().sample(dut.i_cmd.ready))[2]:
                pass
        ctx.set(dut.i_cmd.valid, 0)

    async def play(ctx):
        for port in (dut.x_valid, dut.weights):
            ctx.set(port, 1)
        ctx.set(dut.free, 3)
        await offer(ctx, words[:2])
        await wait(ctx, cycles)
        assert ctx.get(dut.error)
        ctx.set(bench.reset, 1)
        await ctx.tick()
        ctx.set(bench.reset, 0)
        assert not ctx.get(dut.error) and not ctx.get(dut.x_ready)
        await offer(ctx, words[2:])
        for _ in range(20):
            beat = {name: value for name, (value,) in unpack(beat_layout(), ctx.get(bits(dut.beat))).items()}
            if beat["valid"]:
                got.append(beat)
            await ctx.tick()
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert got == [beat for _, beat in expected(design, [(2, 2)])]
