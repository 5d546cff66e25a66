"""Random legal programs on the Verilated accelerator: every word of the golden machine, every cycle of the model."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

import numpy as np

from hbfp.golden.machine.machine import Machine, together
from hbfp.golden.machine.random_programs import random_program
from hbfp.golden.perf.accelerator import model
from hbfp.system import SHARES, Accelerator, Share

from ..manifest import Manifest
from ..simulate.verilator import Progress
from . import pair
from .device import Device, Timing
from .host import execute, place, room

#: What DRAMs may be like, by seed.
LATENCIES, BANDWIDTHS = (1, 200), (8, 16, 32, 64, 128)
#: Chances of a YIELD behind an instruction; cycles between two doorbells.
YIELDS, AFTER = (0, 0.1, 0.4), (0, 5, 500, 3000)
#: Bytes of instructions that one program may have more than another.
_SPARE = 1 << 16


@dataclass(frozen=True)
class Found:
    """What came of random programs.

    Attributes
    ----------
    programs, words : int
        How many ran; 4-byte words of DRAM that were compared.
    failures : dict
        Seed -> what is wrong, one line.
    """
    programs: int
    words: int
    failures: dict[int, str]


def run(manifest: Manifest, system: Accelerator, seeds: Iterable[int], *, instructions: int = 40, level: str = "-O1",
        progress: Progress | None = None, tell: Progress | None = None) -> Found:
    """Run the programs of seeds, each with a DRAM of its own speed and pauses; with two contexts pairs that yield.

    A program ends by bringing every word of V, W and X to DRAM (:func:`golden.machine.random_programs.random_program`).
    Programs of a pair are made for :data:`~cosim.accelerator.pair.PART` sixteenths of the memories, and have random
    shares. Where the DRAM has no pauses, the cycles are compared with the cycle model, too.

    Parameters
    ----------
    manifest : Manifest
        The emitted accelerator.
    system : Accelerator
        Its parameters.
    seeds : iterable of int
        At least one.
    instructions : int
        About how many a program has before it brings its memories to DRAM.
    level, progress
        As for :class:`~cosim.accelerator.device.Device`.
    tell : callable, optional
        Called with (done, total) as programs end.

    Returns
    -------
    Found

    Raises
    ------
    BuildError, BusError, TimesError
        As for :func:`~cosim.accelerator.network.run`.
    """
    seeds, failures, words, count = list(seeds), {}, 0, 0
    made = (_Pair if system.contexts > 1 else _One)(system, instructions)
    memory = np.empty(made.size(seeds[0]) + _SPARE, np.uint8)
    with Device(manifest.verilog, manifest.top, beat=system.beat, memory=memory, burst=system.burst,
                contexts=system.contexts, level=level, progress=progress) as device:
        for seed in seeds:
            pick = Random(seed)
            timing = Timing(pick.randint(*LATENCIES), pick.choice(BANDWIDTHS))
            device.set_timing(timing)
            pauses = pick.choice((0, 0.1, 0.5))
            device.set_pauses(pauses, seed)
            found = made.run(device, seed, pick, None if pauses else (
                manifest.data.latency, timing.latency, timing.bandwidth))
            count += 1
            words += sum(compared for compared, _ in found)
            lines = [line for _, line in found if line]
            if lines:
                failures[seed] = lines[0]
            if tell is not None:
                tell(count, len(seeds))
    return Found(count, words, failures)


def shares_of(pick: Random, size: int) -> tuple[Share, Share]:
    """Shares of two contexts, ``size`` sixteenths of each memory at least, which have nothing in common."""
    first: list[tuple[int, int]] = []
    second: list[tuple[int, int]] = []
    for _ in range(4):
        border = pick.randint(size, SHARES - size)
        ranges = [sorted((pick.randint(0, border - size), border)), [border, SHARES - pick.randint(
            0, SHARES - border - size)]]
        pick.shuffle(ranges)
        for place_, each in zip((first, second), ranges, strict=True):
            place_.append((each[0], each[1] - each[0]))
    one, other = (Share(*zip(*each, strict=True)) for each in (first, second))
    return one, other


class _One:
    """Programs that have the machine to themselves."""

    def __init__(self, system, instructions):
        self.system, self.instructions = system, instructions

    def size(self, seed):
        """Bytes of DRAM that the program of a seed needs."""
        return room(random_program(self.system, seed, self.instructions))[0]

    def run(self, device, seed, pick, timed):
        """Run it; words that were compared, and what is wrong, one line or None; with ``timed`` cycles, too."""
        program = random_program(self.system, seed, self.instructions, yields=pick.choice(YIELDS))
        place(program, device.memory)
        result, golden = execute(device, program), Machine(program)
        golden.run()
        base = room(program)[1]
        times = timed and model.times(program, *timed)
        return [_compared(result, golden, device.memory[base:base + program.limit], times)]


class _Pair(_One):
    """Programs that take turns with another."""

    def _programs(self, seed, pick):
        part = self.system.share(pair.PART)
        return tuple(random_program(part, 2 * seed + number, self.instructions, yields=pick.choice(YIELDS))
                     for number in range(2))

    def size(self, seed):
        return pair.Pair(self._programs(seed, Random(seed)), ()).size

    def run(self, device, seed, pick, timed):
        both = pair.Pair(self._programs(seed, pick), shares_of(pick, pair.PART), pick.random() < 0.3)
        both.place(device.memory)
        ended = pair.execute(device, both, after=(0, pick.choice(AFTER)))
        golden = together(self.system, both.programs, both.shares, priority=both.priority)
        times = timed and model.together(both.programs, *timed, rung=ended.rung, priority=both.priority)
        return [_compared(ended.results[context], golden[context], both.dram(device.memory, context),
                          times and times[context].times) for context in (0, 1)]


def _compared(result, golden, found, times):
    """Words that were compared, and what is wrong."""
    if result.cause is not None:
        return 0, f"stops with cause {result.cause.name} at instruction {result.error_pc}"
    known = golden.dram.defined[:, 0]
    wrong = np.flatnonzero((found.view(np.uint32) != golden.dram.data) & known)
    if wrong.size:
        return int(known.sum()), f"{wrong.size} of {known.sum()} words differ, the first at byte {4 * wrong[0]}"
    if times is not None and times != result.times:
        return int(known.sum()), f"the cycle model says other cycles: {times.cycles} in all, not {result.times.cycles}"
    return int(known.sum()), None
