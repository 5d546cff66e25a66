"""What gives the machine to one of two programs, cycle by cycle; twin of ``control.py`` of the RTL."""

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import Opcode

from . import bus, queue
from .record import Record, part, record

#: How the program that has the machine stands; in PARK and IDLE none has it.
START, RUN, TURN, PARK, IDLE, END = range(6)
#: Cycles of PARK and END behind the first.
PARKED, SETTLED = 40, 64
_HALT, _YIELD = int(Opcode.HALT), int(Opcode.YIELD)

#: The context that has the machine, how its program stands and for how long, the YIELD or HALT that is awaited (0:
#: none), programs that have not ended; whether context 0 does not give way.
STATE = record("owner phase timer ends left", "priority")
#: Of a context: instructions of its program and where they begin, the cycle of its doorbell, the next instruction; its
#: first and last cycle, cycles that it had, turns that it gave; whether it has begun and ended; what each unit has
#: completed of it, and its fetch at the first instruction.
CONTEXT = record("size first rung place begin stop owned turns", "begun ended", done=(np.int64, (queue.UNITS,)),
                 fetch=bus.FETCH)


@part
def begin(m: Record, contexts: NDArray[np.void]) -> None:
    """The first doorbell."""
    owner = 0
    for other in range(1, len(contexts)):
        if contexts[other].rung < contexts[owner].rung:
            owner = other
    m.control.owner, m.control.left = owner, len(contexts)
    _start(m, contexts[owner], 0)


@part
def _start(m, context, now):
    """A program begins, or goes on."""
    m.control.phase = START
    if not context.begun:
        context.begun, context.begin = True, now
    m.fetch = context.fetch
    bus.start(m.fetch, context.place)
    for u in range(1, queue.UNITS):
        m.queues[u].next = context.done[u]


@part
def _waits(s, contexts, now):
    """Whether the other context has a program that waits for the machine."""
    other = 1 - s.owner
    return len(contexts) > 1 and contexts[other].rung <= now and not contexts[other].ended


@part
def runs(s: Record) -> bool:
    """Whether a program runs; else the units are reset, and nothing goes on but the bus."""
    return s.phase == RUN or s.phase == TURN


@part
def rest(m: Record, contexts: NDArray[np.void], now: int, quiet: bool) -> None:
    """The end of a cycle in which no program runs; ``quiet``: nothing was under way on the bus."""
    s = m.control
    s.timer += 1
    if s.phase == START:
        contexts[s.owner].owned += 1
        if quiet:
            s.phase = RUN
    elif s.phase == IDLE:
        if _waits(s, contexts, now + 1):
            s.owner = 1 - s.owner
        if not contexts[s.owner].ended:
            _start(m, contexts[s.owner], now + 1)
    elif s.timer > (PARKED if s.phase == PARK else SETTLED):
        s.phase = IDLE


@part
def halt(s: Record, context: Record, empty: bool, now: int) -> bool:
    """The begin of a cycle: whether the last program ends in it; ``empty``: no instruction is left."""
    context.owned += 1
    if empty and s.ends == _HALT:
        context.stop, context.ended = now, True
        s.left -= 1
    return s.left == 0


@part
def decode(m: Record, context: Record, instructions: NDArray[np.void]) -> int:
    """The unit to whose queue the next instruction goes, 0 for none; YIELD and HALT are awaited from here on."""
    s = m.control
    if not m.fetch.valid or s.ends != 0 or context.place >= context.size:
        return 0
    unit = 0
    head = instructions[context.first + context.place]
    if head.opcode == _HALT or head.opcode == _YIELD:
        s.ends = head.opcode
        m.fetch.taken = True
    elif queue.room(m.queues[head.unit]):
        unit = head.unit
        m.fetch.taken = True
    context.place += m.fetch.taken
    return unit


@part
def turn(m: Record, fresh: Record, contexts: NDArray[np.void], empty: bool, now: int) -> None:
    """The end of a cycle in which a program runs; ``fresh``: the units at reset; ``empty``: as of :func:`halt`."""
    s = m.control
    if s.phase == TURN or (empty and s.ends == _HALT):
        m.units = fresh
        for u in range(1, queue.UNITS):
            m.queues[u].completed = 0
        s.timer = 0
        if s.ends == _HALT:
            s.phase = END
        elif _waits(s, contexts, now) and not (s.priority and s.owner == 0):
            s.phase = PARK
            contexts[s.owner].turns += 1
        else:
            s.phase = RUN
        s.ends = 0
    elif empty:
        s.phase = TURN
