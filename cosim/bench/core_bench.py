"""What stimulates and judges a core in the simulator: drivers, monitors and scoreboards on all of its streams."""

import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

from hbfp.golden.bfp import per_line
from hbfp.golden.sparsity import compress, prune

from ..manifest import Manifest
from .awkward import awkward, awkward_blocks
from .coverage import Coverage
from .directed import block_modes
from .scoreboard import ConverterScoreboard, ProductScoreboard
from .stream import Dut, Monitor, Pauses, Sink, Source, clocked, until
from .tiling import Tiling, commands, w_beats, x_beats

MANIFEST = Manifest.load(os.environ["HBFP_MANIFEST"])
DESIGN = MANIFEST.design
SEED = int(os.environ.get("HBFP_SEED", "1"))
#: Numbers of a block, as the converter takes them.
ELEMENTS = DESIGN.encode_beats * DESIGN.encode_lanes


class Bench:
    """Drivers, monitors and scoreboards on one core.

    Parameters
    ----------
    dut : cocotb handle
        The core.
    idle, stall : tuple
        Share of the cycles that pause, and cycles of a pause: on inputs, and on outputs.
    seed : int
        Seed of data and pauses, beside that of the run.
    """

    def __init__(self, dut: Dut, idle: tuple[float, float] = (0.0, 1), stall: tuple[float, float] = (0.0, 1),
                 seed: int = 0) -> None:
        self.dut, self.rng = dut, np.random.default_rng([SEED, seed])
        self.coverage = Coverage(DESIGN)
        self.products = ProductScoreboard(MANIFEST, DESIGN, self.coverage)
        self.boards: list[ProductScoreboard | ConverterScoreboard] = [self.products]
        if "o_q" in MANIFEST.streams:
            self.converter = ConverterScoreboard(MANIFEST, DESIGN, self.coverage)
            self.boards.append(self.converter)
        self.sources: dict[str, Source] = {}
        self.sinks: dict[str, Sink] = {}
        self.monitors: dict[str, Monitor] = {}
        for stream in MANIFEST.streams.values():
            share, burst = idle if stream.direction == "in" else stall
            pause = Pauses(random.Random(f"{SEED} {seed} {stream.name}"), share, burst)
            if stream.direction == "in":
                self.sources[stream.name] = Source(dut, stream, pause)
            else:
                self.sinks[stream.name] = Sink(dut, stream, pause)
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

    def step(self) -> None:
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

    def command(self, rows: int, terms: int, scale: bool = False, bias: bool = False, relu: bool = False,
                calm: bool = False, faint: bool = False, wide: tuple[bool, bool] | None = None,
                sparse: bool | None = None) -> None:
        """Queue one command of awkward data.

        ``wide``: whether mantissas of X and of W are; drawn, if not given, on a core that has them.
        ``calm``: without blocks that overflow or are invalid. ``faint``: of numbers so small that products underflow.
        ``sparse``: whether weights are sparse; by default at random, where they may be.
        """
        if sparse is None:
            sparse = DESIGN.takes_sparse and bool(self.rng.integers(2))
        wide = self.modes() if wide is None else wide
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
        self.product(x, prune(w, *DESIGN.sparse) if sparse else w, vectors[0], vectors[1], relu, wide, sparse)

    def modes(self) -> tuple[bool, bool]:
        """Whether mantissas of X and of W are wide."""
        if not DESIGN.wide:
            return False, False
        wide_x, wide_w = map(bool, self.rng.integers(0, 2, 2))
        return wide_x, wide_w

    def product(self, x: np.ndarray, w: np.ndarray, scale: np.ndarray | None = None, bias: np.ndarray | None = None,
                relu: bool = False, wide: tuple[bool, bool] = (False, False), sparse: bool = False,
                any_index: bool = False) -> None:
        """Queue one product of (M, K) and (K, columns), in as many commands as its rows need.

        Vectors of the side unit have a value for every column of the core, though two give one of a wide product.
        ``any_index``: in place of the indices that sparse weights have, any.
        """
        from hbfp.golden.core.core import encode  # operands come converted; the converter is tested by itself

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
        from hbfp.golden.core.baselines import BASELINES

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
        """Put anything where a core must not look: exponents and flags, mantissas and their indices if asked for."""
        low, high = DESIGN.format.exponent_range
        spans = {"exponent": (low, high + 1), "invalid": (0, 2)}
        if mantissas:
            spans["mantissa"] = -DESIGN.format.limit, DESIGN.format.limit + 1
            spans |= {"index": (0, DESIGN.sparse[1])} if "index" in fields else {}
        for name, span in spans.items():
            fields[name][where] = self.rng.integers(*span, fields[name][where].shape)

    def convert(self, blocks: int, rare: float = 0.1) -> int:
        """Queue awkward blocks for the converter, so many; the number of beats."""
        return self.send_blocks(awkward_blocks(self.rng, blocks, ELEMENTS, DESIGN.format, rare))

    def send_blocks(self, blocks: np.ndarray, wide: bool | None = None) -> int:
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
