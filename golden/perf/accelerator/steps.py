"""One cycle after the other of the whole accelerator: the order in which its parts look at each other's registers."""

from pathlib import Path

import numpy as np
from numba import njit, typeof
from numpy.typing import NDArray

from hbfp import files
from hbfp.isa import instructions

from ...spec import vector
from . import banks, bus, control, core, dram, ports, queue, units
from .machine import Programs
from .record import Record, part

_V_READ, _V_WRITE, _VECTOR = ports.NUMBER["v_read"], ports.NUMBER["v_write"], int(instructions.Unit.VECTOR)


@part
def _step(m, fresh, contexts, programs, limit):
    control.begin(m, contexts)
    for now in range(limit):
        dram.begin(m.dram, now)
        if control.runs(m.control):
            if _run(m, fresh, contexts, programs, now):
                return now
        else:
            quiet = m.reader.under_way == 0
            bus.rest(m)
            bus.end(m, now)
            control.rest(m, contexts, now, quiet)
    return limit


@part
def _run(m, fresh, contexts, programs, now):
    """A cycle in which a program runs; whether it is the last one of all."""
    owner = m.control.owner
    context = contexts[owner]
    empty = queue.look(m.queues, programs.instructions, programs.numbers, owner) and m.control.ends != 0
    if control.halt(m.control, context, empty, now):
        return True
    bus.begin(m)
    if m.banks.count:
        banks.look(m.banks, programs.banks, programs.streams, owner)
    units.ask(m)
    ports.grant(m.ports)
    fetched = m.reader.beats
    units.step(m)
    if m.banks.count:
        u = m.units
        banks.count(m.banks, owner, u.multiply.issued, u.core.out.v, u.core.out.o,
                    ports.granted(m.ports, _V_READ, _VECTOR), ports.granted(m.ports, _V_WRITE, _VECTOR))
    if m.units.vector.there:    # P has answered
        m.units.vector.word = programs.words[m.units.vector.here]
    core.step(m.units.core)
    bus.end(m, now)
    unit = control.decode(m, context, programs.instructions)
    bus.fetch_step(m.fetch, fetched)
    for u in range(1, queue.UNITS):
        q = m.queues[u]
        if q.nop or q.begins:
            programs.instructions[q.head].started = now
        if q.done or q.nop:
            programs.instructions[programs.numbers[owner, u, context.done[u]]].completed = now
            context.done[u] += 1
        queue.step(q, unit == u)
    control.turn(m, fresh, contexts, empty, now)
    return False


def _compiled(files_key):
    """The stepper, compiled; Numba keeps it for this key, which stands for all files that it is made of."""

    @njit(cache=True)
    def run(m, fresh, contexts, programs, limit):
        files_key    # noqa: B018    # Numba looks at what a function closes over, not at the files of what it calls
        return _step(m, fresh, contexts, programs, limit)
    return run


def sources() -> list[Path]:
    """Files that the compiled stepper follows from: all of this folder, the instruction set, and the vector unit's."""
    return [*(path for folder in (Path(__file__).parent, Path(instructions.__file__).parent)
              for path in sorted(folder.glob("*.py"))), Path(vector.__file__)]


def key() -> str:
    """What stands for all of them."""
    return files.key(*(path.read_bytes() for path in sources()))


_STEPPER = _compiled(key())


def run(m: Record, contexts: NDArray[np.void], programs: Programs, limit: int) -> int:
    """Cycles until HALT of the last program, at most ``limit``.

    Parameters
    ----------
    m : Record
        The machine at reset; it is changed.
    contexts : ndarray of :data:`~golden.perf.accelerator.control.CONTEXT`
        Gets when each program begins and ends, and what it has of the machine.
    programs : Programs
        Get when instructions start and complete, and how long they wait.
    limit : int
    """
    arguments = m, m["units"].copy(), contexts, programs, limit
    if not _STEPPER.signatures:
        _compile(tuple(map(typeof, arguments)))
    return int(_STEPPER(*arguments))


def _compile(signature):
    """Have the stepper for arguments of these types: one process makes it in a minute, the others read what it kept."""
    try:
        with files.lock(files.cache("numba") / "steps"):
            _STEPPER.compile(signature)
    except OSError:    # a folder that cannot be written
        _STEPPER.compile(signature)
