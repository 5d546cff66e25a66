"""cocotb tests of a whole core; run by :mod:`cosim.bench.runner`, which names the manifest in the environment."""

import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

from hbfp.golden.bfp import per_line
from hbfp.golden.sparsity import compress, prune

from ...manifest import Manifest
from ..awkward import awkward, awkward_blocks
from ..coverage import Coverage
from ..directed import block_modes, directed_blocks, directed_products
from ..scoreboard import ConverterScoreboard, ProductScoreboard
from ..stream import Monitor, Pauses, Sink, Source, clocked, until
from ..tiling import Tiling, commands, most_terms, w_beats, x_beats

MANIFEST = Manifest.load(os.environ["HBFP_MANIFEST"])
DESIGN = MANIFEST.design
SEED = int(os.environ.get("HBFP_SEED", "1"))
ELEMENTS = DESIGN.encode_beats * DESIGN.encode_lanes
#: Idle and stall, each off, often and nearly always, in long and short pauses.
LEVELS = ((0.0, 1), (0.5, 1), (0.8, 6))
#: Rows of a command of no particular length.
ROWS = min(5, DESIGN.depth)
#: Rows, passes and kind of sparse commands that are refused, where there are any.
_SPARSE_REFUSED = [(0, 1, 1), (1, 0, 1), (1, DESIGN.most_tiles(True) + 1, 1)] * DESIGN.takes_sparse


class Bench:
    """Drivers, monitors and scoreboards on one core.

    Parameters
    ----------
    dut : cocotb handle
        The core.
    idle, stall : tuple
        Share and length of the pauses on inputs and on outputs.
    seed : int
        Of data and pauses.
    """

    def __init__(self, dut, idle=(0.0, 1), stall=(0.0, 1), seed=0):
        self.dut, self.rng = dut, np.random.default_rng([SEED, seed])
        self.coverage = Coverage(DESIGN)
        self.products = ProductScoreboard(MANIFEST, DESIGN, self.coverage)
        self.boards = [self.products]
        if "o_q" in MANIFEST.streams:
            self.converter = ConverterScoreboard(MANIFEST, DESIGN, self.coverage)
            self.boards.append(self.converter)
        self.sources, self.sinks, self.monitors = {}, {}, {}
        for stream in MANIFEST.streams.values():
            share, burst = idle if stream.direction == "in" else stall
            pause = Pauses(random.Random(f"{SEED} {seed} {stream.name}"), share, burst)
            kind, into = (Source, self.sources) if stream.direction == "in" else (Sink, self.sinks)
            into[stream.name] = kind(dut, stream, pause)
            board = self.converter if stream.name.endswith("_q") else self.products
            self.monitors[stream.name] = Monitor(dut, stream, board.taken(stream.name))
        self.awaited = 0

    async def start(self):
        """Clock, reset, and everything running."""
        self.dut.rst.value = 1
        Clock(self.dut.clk, 10, unit="ns").start()
        await ClockCycles(self.dut.clk, 3)
        self.dut.rst.value = 0
        self.running = self._go()

    def _go(self):
        return cocotb.start_soon(clocked(self.dut, *self.monitors.values(), *self.sources.values(),
                                         *self.sinks.values(), self))

    def step(self):
        """Count crossed pauses: what one stream does while another waits."""
        handles = {name: monitor.handle for name, monitor in self.monitors.items()}
        o, x = handles["o"], handles["i_x"]
        o_valid, o_ready, x_valid = int(o.valid.value), int(o.ready.value), int(x.valid.value)
        self.coverage.see("o stalls while i_x waits", o_valid and not o_ready and x_valid and not x.ready.value)
        self.coverage.see("i_x idles while o is ready", o_ready and not x_valid)

    async def reset(self, cycles=1):
        """Reset in whatever is going on; nothing of before may come out after."""
        self.running.cancel()
        for part in (*self.sources.values(), *self.sinks.values(), *self.monitors.values(), *self.boards):
            part.clear()
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, cycles)
        for name in self.monitors:
            self.monitors[name].clear()
        self.dut.rst.value = 0
        self.awaited = 0
        self.running = self._go()

    # --- Stimulus -------------------------------------------------------------------------------

    def command(self, rows, terms, scale=False, bias=False, relu=False, calm=False, faint=False, wide=None,
                sparse=None):
        """Queue one command of awkward data.

        ``wide``: whether mantissas of X and of W are; drawn, if not given, on a core that has them.
        ``calm``: without blocks that overflow or are invalid. ``faint``: of numbers so small that products underflow.
        ``sparse``: whether weights are sparse; by default at random, where they may be.
        """
        if sparse is None:
            sparse = DESIGN.takes_sparse and bool(self.rng.integers(2))
        wide = self._modes() if wide is None else wide
        shapes = (rows, terms), (terms, DESIGN.cols // (1 + any(wide)))
        if DESIGN.arithmetic == "int":
            limit = DESIGN.format.limit
            x, w = (self.rng.integers(-limit, limit + 1, shape) for shape in shapes)
            x[self.rng.random(rows) < 0.2] = 0
            w[:, self.rng.random(DESIGN.cols) < 0.2] = limit
        elif faint:
            small = max(-70, DESIGN.format.exponent_range[0] - DESIGN.format.magnitude + 2)
            x, w = (np.ldexp(self.rng.standard_normal(shape, np.float32), small) for shape in shapes)
        else:
            rare = 0.0 if calm else None
            x, w = (awkward(self.rng, shape, DESIGN.widest if mode else DESIGN.format, axis, rare)
                    for shape, axis, mode in zip(shapes, (-1, -2), wide, strict=True))
        # Now and then a special value: the side unit has them too.
        vectors = [awkward_blocks(self.rng, DESIGN.cols, 1, DESIGN.format, rare=0.1).reshape(-1).view(np.float32)
                   if step and "i_v" in MANIFEST.streams else None for step in (scale, bias)]
        self.product(x, prune(w, *DESIGN.sparse) if sparse else w, *vectors, relu, wide, sparse)

    def _modes(self):
        """Whether mantissas of X and of W are wide."""
        return tuple(map(bool, self.rng.integers(0, 2, 2))) if DESIGN.wide else (False, False)

    def product(self, x, w, scale=None, bias=None, relu=False, wide=(False, False), sparse=False, any_index=False):
        """Queue one product of (M, K) and (K, columns), in as many commands as its rows need.

        Vectors of the side unit have a value for every column of the core, though two give one of a wide product.
        ``any_index``: in place of the indices that sparse weights have, any.
        """
        from hbfp.golden.core import encode  # operands come converted; the converter is tested by itself

        if DESIGN.arithmetic == "int":
            parts = (x,), (w,)
        elif DESIGN.blocked:
            parts = tuple(self._lines(encode(DESIGN, part, axis, wide=mode), axis)
                          for part, axis, mode in ((x, -1, wide[0]), (w, -2, wide[1])))
        else:
            parts = self._patterns(x, w)
        index = None
        if sparse:
            mantissa, index = compress(parts[1][0], *DESIGN.sparse)
            parts = parts[0], (mantissa, *parts[1][1:])
            index = self.rng.integers(0, DESIGN.sparse[1], index.shape) if any_index else index
        for rows in commands(DESIGN, len(x)):
            self._send(rows.stop - rows.start, Tiling(DESIGN, x.shape[1], sparse), [part[rows] for part in parts[0]],
                       parts[1], index, {"scale": scale, "bias": bias}, relu, wide)

    @staticmethod
    def _patterns(x, w):
        from hbfp.golden.baselines import BASELINES

        return tuple((BASELINES[DESIGN.arithmetic].patterns(part),) for part in (x, w))

    @staticmethod
    def _lines(blocks, axis):
        return blocks.mantissa, *(per_line(blocks, part, 1 + axis) for part in (blocks.exponent, blocks.invalid))

    def _send(self, rows, tiling, x, w, index, vectors, relu, wide):
        sources, streams = self.sources, MANIFEST.streams
        fields = {"rows": np.array([rows]), "tiles": np.array([tiling.passes])}
        if DESIGN.takes_sparse:
            fields["sparse"] = np.array([tiling.sparse])
        if "i_v" in streams:
            fields |= {name: np.array([vector is not None]) for name, vector in vectors.items()}
            fields["relu"] = np.array([relu])
            for vector in vectors.values():
                if vector is not None:
                    sources["i_v"].send(streams["i_v"].pack(value=vector.view(np.uint32).reshape(1, -1)))
        if DESIGN.wide:
            fields |= {"wide_x": np.array(wide[:1]), "wide_w": np.array(wide[1:])}
        sources["i_cmd"].send(streams["i_cmd"].pack(**fields))
        rows_of_x = x_beats(tiling, *x, wide=wide[0], rng=self.rng)
        if wide[0]:    # nothing but the mantissas of a row's first beat is looked at
            self._noise(rows_of_x, np.s_[::2])
        sources["i_x"].send(streams["i_x"].pack(**rows_of_x))
        weights = w_beats(tiling, *w, wide=wide[1], pairs=any(wide), index=index, rng=self.rng)
        if any(wide):    # nor the exponents of odd columns, nor their weights if W is narrow
            self._noise(weights, np.s_[:, :, 1::2], mantissas=not wide[1])
        sources["i_w"].send(streams["i_w"].pack(**{name: value[0] for name, value in weights.items()}))
        self.awaited += rows

    def _noise(self, fields, where, mantissas=False):
        """Put anything where a core must not look: exponents and flags, and mantissas if asked for."""
        low, high = DESIGN.format.exponent_range
        spans = {"exponent": (low, high + 1), "invalid": (0, 2)}
        if mantissas:
            spans["mantissa"] = -DESIGN.format.limit, DESIGN.format.limit + 1
        for name, span in spans.items():
            fields[name][where] = self.rng.integers(*span, fields[name][where].shape)

    def convert(self, blocks, rare=0.1):
        """Queue awkward blocks for the converter, so many; the number of beats."""
        return self.send_blocks(awkward_blocks(self.rng, blocks, ELEMENTS, DESIGN.format, rare))

    def send_blocks(self, blocks, wide=None):
        """Queue blocks of bit patterns (blocks, elements) for the converter; the number of beats.

        ``wide``: whether mantissas are, where a core has both; drawn, if not given.
        """
        value = blocks.reshape(-1, DESIGN.encode_lanes)
        modes = {"wide": block_modes(self.rng, DESIGN, len(value), wide)} if DESIGN.wide else {}
        self.sources["i_q"].send(MANIFEST.streams["i_q"].pack(value=value, **modes))
        return len(value)

    # --- Waiting and judging --------------------------------------------------------------------

    async def until(self, done, patience=20_000):
        """Wait until ``done()``; fail after ``patience`` cycles without a transfer on any stream."""
        await until(self.dut, self.monitors, done, patience)

    async def finish(self, beats_q=0):
        """Wait for all results, then compare them, then see that nothing follows."""
        start_o, start_q = self.monitors["o"].transfers, 0
        queues = self.products.queues
        expected = start_o + self.awaited - len(queues["o"])
        goal_q = None
        if beats_q:
            start_q = self.monitors["o_q"].transfers
            goal_q = start_q + beats_q - len(self.converter.queues["o_q"])
        await self.until(lambda: self.monitors["o"].transfers >= expected
                         and (goal_q is None or self.monitors["o_q"].transfers >= goal_q))
        await ClockCycles(self.dut.clk, 50)
        for board in self.boards:
            board.check()
            assert not board.leftovers(), f"left over: {board.leftovers()}"
        self.awaited = 0
        self.coverage.save(os.environ["HBFP_COVERAGE"])


def _fitting(terms, sparse=False):
    """As many terms of K, or what one command holds if that is less."""
    return min(terms, most_terms(DESIGN, sparse))


def _terms(sparse=False):
    """Lengths of K that matter: less than a tile, a tile, more, and a block that is cut short."""
    rows, block = DESIGN.reach(DESIGN.rows) if sparse else DESIGN.rows, DESIGN.format.terms
    return sorted({_fitting(terms, sparse) for terms in (1, rows - 1 or 1, rows, rows + 1, 2 * rows, block, block + 1,
                                                 3 * max(rows, block) - 1)})


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(idle=LEVELS, stall=LEVELS)
async def products_equal_golden(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.start()
    for number, terms in enumerate(_terms()):
        steps = [bool(number >> bit & 1) for bit in range(3)]
        bench.command(int(bench.rng.integers(1, min(DESIGN.depth, 12) + 1)), terms, *steps)
        bench.command(1, terms, calm=True)
    bench.command(DESIGN.depth, _fitting(DESIGN.rows))
    if DESIGN.blocked:
        bench.command(min(DESIGN.depth, 3), min(DESIGN.rows, DESIGN.format.terms), faint=True)
    await bench.finish()
    assert bench.products.commands == 2 * len(_terms()) + 1 + DESIGN.blocked
    assert not dut.error.value


@cocotb.test(timeout_time=50, timeout_unit="ms", skip="i_q" not in MANIFEST.streams)
@cocotb.parametrize(idle=LEVELS, stall=LEVELS)
async def conversions_equal_golden(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.start()
    beats = bench.convert(60) + bench.convert(10, rare=0)
    await bench.finish(beats)
    assert bench.converter.compared == 70 * ELEMENTS


@cocotb.test(timeout_time=50, timeout_unit="ms", skip="i_q" not in MANIFEST.streams)
async def both_paths_at_once(dut):
    bench = Bench(dut, (0.3, 2), (0.3, 2))
    await bench.start()
    for terms in _terms():
        bench.command(ROWS, terms, bias=True)
    beats = bench.convert(40)
    await bench.finish(beats)
    assert bench.products.compared and bench.converter.compared


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def every_corner_is_computed(dut):
    bench = Bench(dut, (0.3, 2), (0.3, 2))
    await bench.start()
    for work in directed_products(DESIGN):
        bench.product(work.x, work.w, work.scale, work.bias, work.relu)
    beats = 0
    if DESIGN.wide:
        for wide in ((True, False), (False, True), (True, True)):    # the largest sums of every mode among them
            for work in directed_products(DESIGN, wide):
                bench.product(work.x, work.w, work.scale, work.bias, work.relu, wide)
        beats = bench.send_blocks(directed_blocks(DESIGN.widest, ELEMENTS), wide=True)
    if DESIGN.blocked:
        beats += bench.send_blocks(directed_blocks(DESIGN.format, ELEMENTS), wide=False)
    await bench.finish(beats)
    assert bench.products.commands


@cocotb.test(timeout_time=50, timeout_unit="ms", skip=not DESIGN.takes_sparse)
@cocotb.parametrize(idle=LEVELS[:2], stall=LEVELS[:2])
async def every_index_has_its_meaning(dut, idle, stall):
    """Indices in any order, repeated or not, between dense commands: what docs/numerics.md says, and no standstill."""
    bench = Bench(dut, idle, stall)
    await bench.start()
    for terms in _terms(sparse=True):
        for rows in (1, ROWS):
            shapes = (rows, terms), (terms, DESIGN.cols)
            x, w = (awkward(bench.rng, shape, DESIGN.format, axis, 0.0) for shape, axis in zip(
                shapes, (-1, -2), strict=True))
            bench.product(x, prune(w, *DESIGN.sparse), sparse=True, any_index=True)
        bench.command(ROWS, _fitting(terms), sparse=False)
    bench.command(DESIGN.depth, _fitting(DESIGN.reach(DESIGN.rows), sparse=True), calm=True, sparse=True)
    await bench.finish()
    assert bench.products.commands == 3 * len(_terms(sparse=True)) + 1
    assert not dut.error.value


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def stalled_result_stops_the_input(dut):
    """While nobody takes results, rows of X must wait; afterwards nothing is lost."""
    bench = Bench(dut)
    await bench.start()
    sink = bench.sinks["o"]
    taking, sink.pause = sink.pause, lambda: True
    for _ in range(6):    # more than a core holds of commands, accumulators and results
        bench.command(ROWS, _fitting(DESIGN.rows), calm=True)
    await bench.until(lambda: bench.coverage.seen["o stalls while i_x waits"])
    sink.pause = taking
    await bench.finish()
    assert bench.products.commands == 6


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def reset_in_mid_stream_leaves_nothing(dut):
    bench = Bench(dut, (0.2, 2), (0.2, 2))
    await bench.start()
    for cut in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
        for terms in _terms()[-3:]:
            bench.command(ROWS, terms, scale=True)
        if "i_q" in MANIFEST.streams:
            bench.convert(10)
        await ClockCycles(dut.clk, cut)
        await bench.reset()
        bench.coverage.see("reset in mid-stream")
        bench.command(ROWS, _fitting(DESIGN.rows + 1), bias=True)
        beats = bench.convert(4) if "i_q" in MANIFEST.streams else 0
        await bench.finish(beats)
    assert bench.products.commands == 10


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(rows_tiles=[(0, 1), (DESIGN.depth + 1, 1), (1, 0), (1, DESIGN.max_tiles + 1), *_SPARSE_REFUSED])
async def refused_commands_change_nothing(dut, rows_tiles):
    bench = Bench(dut)
    await bench.start()
    stream = MANIFEST.streams["i_cmd"]
    fields = dict(zip(("rows", "tiles", "sparse"), rows_tiles, strict=False))
    if any(value >> stream.field[name].width for name, value in fields.items()):
        return    # the field cannot say so much
    bench.command(ROWS, _fitting(DESIGN.rows + 1))
    bench.sources["i_cmd"].send(stream.pack(**{name: np.array([value]) for name, value in fields.items()}))
    bench.command(ROWS, _fitting(DESIGN.rows), bias=True)
    assert not dut.error.value
    await bench.finish()
    assert bench.products.refused == 1 and bench.products.commands == 2
    assert dut.error.value
    bench.coverage.see("refused command")
    bench.command(1, _fitting(DESIGN.rows))
    await bench.finish()
    assert dut.error.value, "error must stay until reset"
    await bench.reset()
    await ClockCycles(dut.clk, 1)
    assert not dut.error.value
    bench.command(1, _fitting(DESIGN.rows))
    await bench.finish()
    bench.coverage.save(os.environ["HBFP_COVERAGE"])
