"""The cycle model: programs stepped through cycle by cycle, without values.

It must equal the Verilog to the cycle. :mod:`.steps` steps it; each unit of the RTL has a file, with the registers that
decide when things move. Programs of two contexts have the machine in turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import Opcode
from hbfp.program import Program
from hbfp.system import Accelerator

from . import banks, bus, control, machine, programs, queue
from .decode import decoded, numbers
from .steps import run
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
    """When the program of a context ran.

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
    joined, contexts = _joined(programs_of, accelerator)
    contexts["rung"] = rung[:len(contexts)]
    cycles = run(machine.fresh(accelerator, latency, dram_latency, bandwidth, priority), contexts, joined, LIMIT)
    if cycles == LIMIT:
        raise EndlessError(f"The program does not end in {LIMIT} cycles")
    found = np.split(joined.instructions, contexts["first"][1:])
    return [_turns(*each) for each in zip(programs_of, contexts, found, strict=True)]


def resumed(program: Program, pieces: Sequence[tuple[int, int]], cycles: int, latency: dict[str, int],
            dram_latency: int, bandwidth: int) -> NDArray[np.int64]:
    """Cycles of pieces of a program that each begin alone, as where another program had the machine before.

    Parameters
    ----------
    pieces : sequence of (int, int)
        First instruction of each, which is the program's first or stands behind a YIELD, and the one behind its last,
        which is a YIELD or HALT.
    cycles : int
        That none of them takes.
    latency, dram_latency, bandwidth
        As of :func:`times`.

    Returns
    -------
    ndarray of int64, (pieces,)
        From the first cycle of its turn to the completion of all that it has.

    Raises
    ------
    EndlessError
        If one takes as many cycles.
    """
    accelerator = program.accelerator
    joined, contexts = _joined([program], accelerator)
    unit, found = joined.instructions["unit"], np.zeros(len(pieces), np.int64)
    joined.instructions["opcode"][[stop for _, stop in pieces]] = Opcode.HALT    # nobody waits for what is behind
    before = np.zeros((len(unit) + 1, queue.UNITS), np.int64)
    before[np.arange(len(unit)) + 1, unit] = 1
    before = before.cumsum(axis=0)
    _, accesses = banks.of(program, *programs.words(program))
    for number, (first, stop) in enumerate(pieces):
        completed = joined.instructions["completed"][first:stop]
        completed[...] = -1
        start = contexts.copy()
        start["place"], start["done"] = first, before[first]
        state = machine.fresh(accelerator, latency, dram_latency, bandwidth, False)
        state["banks"]["done"][0] = accesses[first]
        run(state, start, joined, cycles)
        own = completed[unit[first:stop] > 0]
        if (own < 0).any():
            raise EndlessError(f"Instructions {first} to {stop - 1} are not complete in {cycles} cycles")
        found[number] = own.max(initial=0)
    return found


def _joined(programs_of, accelerator):
    """The programs of all contexts together, and the contexts at the first doorbell."""
    contexts, decoded_of, words_of, streams = np.zeros(len(programs_of), control.CONTEXT), [], [], []
    contexts["size"] = [len(program.instructions) for program in programs_of]
    contexts["first"] = np.cumsum(contexts["size"]) - contexts["size"]
    position = 0
    for context, program in zip(contexts, programs_of, strict=True):
        words, firsts = programs.words(program)
        decoded_of.append(decoded(program, firsts + position))
        words_of.append(words)
        streams.append(banks.of(program, words, firsts)[0])
        position += len(words)
        context["fetch"] = bus.fresh_fetch(accelerator, context["size"])
    return machine.Programs(
        np.concatenate(decoded_of),
        np.stack([numbers(program, contexts["size"].max()) + first
                  for program, first in zip(programs_of, contexts["first"], strict=True)]),
        np.concatenate(words_of), *banks.joined(streams)), contexts


def _turns(program, context, found):
    """What came of a program."""
    begun, cycles = int(context["begin"]), int(context["stop"] - context["begin"] + 1)
    return Turns(
        Times(cycles, *ends(program, cycles, found["started"] - begun, found["completed"] - begun), found["waited"]),
        begun, int(context["owned"]), int(context["turns"]))
