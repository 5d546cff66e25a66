"""The cycle model: programs stepped through cycle by cycle, without values.

It must equal the Verilog to the cycle. :mod:`.steps` steps it; each unit of the RTL has a file, with the registers that
decide when things move. Programs of two contexts have the machine in turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hbfp.program import Program
from hbfp.system import Accelerator

from . import bus, convert, core, dma, dram, programs, vector, walk
from .decode import decoded
from .steps import BEGIN, OWNED, STEPPER, STOP, TURNS, UNITS
from .times import Times, ends

#: Cycles after which a program counts as one that never ends.
LIMIT = 1 << 40


class EndlessError(ValueError):
    """A program does not end; one line."""


def times(program: Program, latency: dict[str, int], dram_latency: int, bandwidth: int) -> Times:
    """When each instruction of a program starts and completes.

    Parameters
    ----------
    program : Program
    latency : dict
        Of the core: the manifest's ``latency``.
    dram_latency, bandwidth : int
        Of the DRAM: cycles, and bytes a cycle.

    Raises
    ------
    EndlessError
        If the program does not end.
    """
    return together([program], latency, dram_latency, bandwidth)[0].times


@dataclass(frozen=True)
class Turns:
    """Of a program of a context.

    Attributes
    ----------
    times : Times
        From the cycle in which it began on, the other's turns counted, too.
    begun : int
        That cycle, counted from the one after the first doorbell.
    owned : int
        Cycles that it had the machine: the register ``cycles``.
    given : int
        How often it gave the machine to the other at a YIELD.
    """
    times: Times
    begun: int
    owned: int
    given: int


def together(programs_of: Sequence[Program], latency: dict[str, int], dram_latency: int, bandwidth: int, *,
             rung: Sequence[int] = (0, 0), priority: bool = False, accelerator: Accelerator | None = None
             ) -> list[Turns]:
    """Programs in the contexts of one accelerator.

    Parameters
    ----------
    programs_of : sequence of Program
        Of each context.
    latency, dram_latency, bandwidth
        As of :func:`times`.
    rung : sequence of int
        Cycles of the doorbells of each; the first is 0.
    priority : bool
        Context 0 does not give way at a YIELD.
    accelerator : Accelerator, optional
        Whose contexts they are; else that of the first program.

    Raises
    ------
    EndlessError
        If a program does not end.
    """
    accelerator = accelerator or programs_of[0].accelerator
    arrays = [decoded(program) for program in programs_of]
    count = np.array([len(program.instructions) for program in programs_of])
    made = np.zeros((3, count.sum()), np.int64)
    walkers = np.zeros((2, walk.SIZE), np.int64)
    for each in walkers:
        each[[walk.BEAT, walk.LONGEST, walk.RECORD, walk.HEIGHT]] = (
            accelerator.beat, accelerator.burst, accelerator.record_beats, accelerator.core.height)
    words, firsts = _joined([programs.words(program) for program in programs_of])
    numbers = np.zeros((len(arrays), UNITS, count.max()), np.int64)
    for context, each in enumerate(arrays):
        numbers[context, :, :count[context]] = each.numbers + count[:context].sum()
    found = np.zeros((len(arrays), 5), np.int64)
    asked = np.full(2, LIMIT, np.int64)
    asked[:len(arrays)] = rung[:len(arrays)]
    joined = [np.concatenate([getattr(each, name) for each in arrays])
              for name in ("opcode", "unit", "waits", "fields")]
    cycles = STEPPER(*joined, numbers, count, asked, priority, found, made, accelerator.queue,
                     core.fresh(accelerator.core, latency),
                     dram.fresh(dram_latency, bandwidth, accelerator.beat),
                     np.array([bus.fresh_fetch(accelerator, each) for each in count]), bus.fresh(accelerator),
                     bus.fresh(accelerator), walkers[0], walkers[1],
                     dma.fresh(accelerator.lanes, accelerator.record_beats, accelerator.reads),
                     dma.fresh(accelerator.lanes, accelerator.record_beats, dma.STORE_PIECES),
                     convert.fresh(accelerator.core), vector.fresh(accelerator), words, firsts, LIMIT)
    if cycles == LIMIT:
        raise EndlessError(f"The program does not end in {LIMIT} cycles")
    turns, first = [], 0
    for program, size, state in zip(programs_of, count, found, strict=True):
        own = made[:, first:first + size]
        first += size
        own[:2] -= state[BEGIN]
        cycles = int(state[STOP] - state[BEGIN] + 1)
        turns.append(Turns(Times(cycles, *ends(program, cycles, own[0], own[1]), own[2]), int(state[BEGIN]),
                           int(state[OWNED]), int(state[TURNS])))
    return turns


def _joined(several):
    """Words of the vector unit, and where those of each instruction begin, of all programs."""
    firsts, position = [], 0
    for words, first in several:
        firsts.append(first + position)
        position += len(words)
    return np.concatenate([words for words, _ in several]), np.concatenate(firsts)
