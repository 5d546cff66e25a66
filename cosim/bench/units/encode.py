"""cocotb tests of the converter alone, FP32 stream to block stream; run by :mod:`cosim.bench.runner`."""

import os
import random
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

from ...manifest import Manifest
from ..awkward import awkward_blocks
from ..coverage import Coverage
from ..directed import block_modes, directed_blocks
from ..scoreboard import ConverterScoreboard
from ..stream import Dut, Monitor, Pauses, Sink, Source, clocked, until

MANIFEST = Manifest.load(os.environ["HBFP_MANIFEST"])
DESIGN = MANIFEST.design
SEED = int(os.environ.get("HBFP_SEED", "1"))
ELEMENTS = DESIGN.encode_beats * DESIGN.encode_lanes
#: Idle and stall, each off, often and nearly always, in long and short pauses.
LEVELS = ((0.0, 1), (0.5, 1), (0.8, 6))


class Bench:
    """Driver, monitors and scoreboard on one converter; ``idle`` and ``stall`` are shares and lengths of pauses."""

    def __init__(self, dut: Dut, idle: tuple[float, float] = (0.0, 1), stall: tuple[float, float] = (0.0, 1)) -> None:
        self.dut, self.rng = dut, np.random.default_rng([SEED, int(100 * idle[0]), int(100 * stall[0])])
        self.coverage = Coverage(DESIGN, "encode")
        self.board = ConverterScoreboard(MANIFEST, DESIGN, self.coverage, ("i", "o"))
        self.drivers: dict[str, Any] = {stream.name: (Source if stream.direction == "in" else Sink)(
            dut, stream, Pauses(random.Random(f"{SEED} {stream.name} {idle} {stall}"),
                                *(idle if stream.direction == "in" else stall)))
            for stream in MANIFEST.streams.values()}
        self.monitors = {name: Monitor(dut, MANIFEST.streams[name], self.board.taken(name)) for name in ("i", "o")}

    async def start(self):
        """Clock, reset, and everything running."""
        Clock(self.dut.clk, 10, unit="ns").start()
        await self.reset(3)

    async def reset(self, cycles=1):
        """Reset in whatever is going on."""
        if hasattr(self, "running"):
            self.running.cancel()
        self.dut.rst.value = 1
        for part in (*self.drivers.values(), *self.monitors.values(), self.board):
            part.clear()
        await ClockCycles(self.dut.clk, cycles)
        self.dut.rst.value = 0
        self.running = cocotb.start_soon(clocked(self.dut, *self.monitors.values(), *self.drivers.values()))

    def convert(self, blocks: int, rare: float = 0.1) -> int:
        """Queue awkward blocks, so many; the number of beats."""
        return self.send(awkward_blocks(self.rng, blocks, ELEMENTS, DESIGN.format, rare))

    def send(self, blocks: np.ndarray, wide: bool | None = None) -> int:
        """Queue blocks of bit patterns (blocks, elements), of one width if ``wide`` says so; the number of beats."""
        value = blocks.reshape(-1, DESIGN.encode_lanes)
        modes = {"wide": block_modes(self.rng, DESIGN, len(value), wide)} if DESIGN.wide else {}
        self.drivers["i"].send(MANIFEST.streams["i"].pack(value=value, **modes))
        return len(value)

    async def finish(self, beats, patience=2000):
        """Wait for that many beats, compare them, see that nothing follows."""
        goal = self.monitors["o"].transfers + beats
        await until(self.dut, self.monitors, lambda: self.monitors["o"].transfers >= goal, patience)
        await ClockCycles(self.dut.clk, 30)
        self.board.check()
        assert not self.board.leftovers(), f"left over: {self.board.leftovers()}"
        self.coverage.save(os.environ["HBFP_COVERAGE"])


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(idle=LEVELS, stall=LEVELS)
async def conversions_equal_golden(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.start()
    await bench.finish(bench.convert(100) + bench.convert(10, rare=0))
    assert bench.board.compared == 110 * ELEMENTS


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def every_corner_is_converted(dut):
    bench = Bench(dut, (0.3, 2), (0.3, 2))
    await bench.start()
    beats = bench.send(directed_blocks(DESIGN.format, ELEMENTS), wide=False)
    if DESIGN.wide:
        beats += bench.send(directed_blocks(DESIGN.widest, ELEMENTS), wide=True)
    await bench.finish(beats)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def reset_in_mid_stream_leaves_nothing(dut):
    bench = Bench(dut, (0.2, 2), (0.2, 2))
    await bench.start()
    for cut in (1, 2, 3, 5, 8, 13, 21):
        bench.convert(20)
        await ClockCycles(dut.clk, cut)
        await bench.reset()
        bench.coverage.see("reset in mid-stream")
        await bench.finish(bench.convert(6))
