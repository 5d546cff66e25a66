"""Random legal programs on the Verilated accelerator, against the golden machine: every word of every memory."""

from dataclasses import dataclass
from random import Random

import numpy as np

from hbfp.golden.machine.machine import Machine
from hbfp.golden.machine.random_programs import random_program

from .device import Device, Timing
from .host import execute, place, room

#: What DRAMs may be like, by seed.
LATENCIES, BANDWIDTHS = (1, 200), (8, 16, 32, 64, 128)
#: Bytes of instructions that one program may have more than another.
_SPARE = 1 << 16


@dataclass(frozen=True)
class Found:
    """What came of programs.

    Attributes
    ----------
    programs, words : int
        How many ran; 4-byte words of DRAM that were compared.
    failures : dict
        Seed -> what is wrong, one line.
    """
    programs: int
    words: int
    failures: dict


def run(manifest, system, seeds, *, instructions=40, level="-O1", progress=None, tell=None):
    """Run the programs of seeds, each with a DRAM of its own speed and pauses.

    A program ends by bringing every word of V, W and X to DRAM (:func:`golden.machine.random_programs.random_program`).

    Parameters
    ----------
    manifest : Manifest
        Of the Verilog.
    system : Accelerator
    seeds : iterable of int
        One at least.
    instructions, level, progress
        Of the program, and of :class:`~cosim.accelerator.device.Device`.
    tell : callable, optional
        Called with (done, total) as programs end.

    Raises
    ------
    BuildError, BusError, TimesError
        As of :func:`~cosim.accelerator.network.run`.
    """
    seeds, failures, words, count = list(seeds), {}, 0, 0
    memory = np.empty(room(random_program(system, seeds[0], instructions))[0] + _SPARE, np.uint8)
    with Device(manifest.verilog, manifest.top, beat=system.beat, memory=memory, burst=system.burst, level=level,
                progress=progress) as device:
        for seed in seeds:
            program = random_program(system, seed, instructions)
            pick = Random(seed)
            device.set_timing(Timing(pick.randint(*LATENCIES), pick.choice(BANDWIDTHS)))
            device.set_pauses(pick.choice((0, 0.1, 0.5)), seed)
            place(program, memory)
            result = execute(device, program)
            golden = Machine(program)
            golden.run()
            count += 1
            if result.cause is not None:
                failures[seed] = f"stops with cause {result.cause.name} at instruction {result.error_pc}"
                continue
            _, base = room(program)
            known = golden.dram.defined[:, 0]
            found = memory[base:base + program.limit].view(np.uint32)
            wrong = np.flatnonzero((found != golden.dram.data) & known)
            words += int(known.sum())
            if wrong.size:
                failures[seed] = f"{wrong.size} of {known.sum()} words differ, the first at byte {4 * wrong[0]}"
            if tell is not None:
                tell(count, len(seeds))
    return Found(count, words, failures)
