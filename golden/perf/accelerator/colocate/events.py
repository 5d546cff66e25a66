"""Inference beside training on one accelerator of two contexts: batches and quanta, with the cycle model's times.

Context 0 serves and goes first; context 1 trains and gives way at its YIELDs. The array does one thing at a time, so
that each has the DRAM's bandwidth while it runs, and its times are those that it has alone.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.program import Program
from hbfp.system import Accelerator

from ..model import resumed, together
from ..times import between_yields

#: Cycles from the completion of all before a YIELD to that in which it takes effect.
_SEEN = 2
#: Cycles from HALT to the next program's first: 64 in which counters settle, one to see the doorbell, one to begin.
_AGAIN = 66
#: Cycles that a quantum may take longer for beginning alone, beside its own number.
_SLACK = 100_000


@dataclass(frozen=True)
class Costs:
    """Cycles in which the machine changes hands.

    Attributes
    ----------
    enter : int
        From where a YIELD of the training program takes effect to the first cycle of a batch's.
    leave : ndarray of int64, (quanta,)
        For each quantum of a step: from a batch's last cycle to where it would have begun without one.
    again : int
        From the last cycle of a program to the first of the next in the same context, whose doorbell rings at once.
    """
    enter: int
    leave: NDArray[np.int64]
    again: int

    @classmethod
    def alone(cls) -> Self:
        """Where nothing trains."""
        return cls(0, np.zeros(0, np.int64), _AGAIN)


def costs(serve: Program, train: Program, pieces: NDArray[np.int64], accelerator: Accelerator, latency: dict[str, int],
          dram_latency: int, bandwidth: int) -> Costs:
    """What changes cost these two programs, of which the second has these quanta, from the cycle model.

    A change waits until the DRAM has answered what was under way. That takes no time of its own where it answers within
    40 cycles; beyond, what is found at the first YIELD stands for all.
    """
    memory = dram_latency, bandwidth
    # Programs give way where all is complete, and begin where a doorbell rings: fetching anew is all that differs.
    alone = resumed(train, between_yields(train), 2 * int(pieces.max()) + _SLACK, latency, *memory)
    leave = _AGAIN + alone - pieces
    leave[0] = _AGAIN
    if len(pieces) == 1:
        return Costs(0, leave, _AGAIN)
    batch = together([serve, train], latency, *memory, rung=(1, 0), priority=True, accelerator=accelerator)[0]
    return Costs(batch.begun - int(pieces[0]) - _SEEN, leave, _AGAIN)


@dataclass(frozen=True)
class Run:
    """What happened.

    Attributes
    ----------
    latency : ndarray of int64, (requests,)
        Cycles from a request's arrival to the end of its batch.
    started : ndarray of int64, (batches,)
        First cycle of each batch's program.
    fills : ndarray of int64, (batches,)
        Requests of each.
    waiting : ndarray of int64, (requests,)
        Requests in the queue when one enters it, itself included.
    pieces : int
        Quanta of training that were run; those behind the last batch are left out.
    cycles, idle, training : int
        Up to the end of the last batch: all; those in which no batch ran; those of quanta.
    """
    latency: NDArray[np.int64]
    started: NDArray[np.int64]
    fills: NDArray[np.int64]
    waiting: NDArray[np.int64]
    pieces: int
    cycles: int
    idle: int
    training: int


def simulate(arrivals: NDArray[np.int64], batch: int, timeout: int, service: int, pieces: NDArray[np.int64],
             cost: Costs) -> Run:
    """Serve all requests, and train in between.

    A batch is due when ``batch`` requests wait, or the oldest has waited for ``timeout`` cycles. It begins when the
    quantum that is under way ends, takes what waits, at most ``batch``, and runs to its end. If another is due then, it
    is next; else training goes on, step after step.

    Parameters
    ----------
    arrivals : ndarray of int64
        Cycles, ascending.
    batch, timeout, service : int
        Requests of a batch, cycles to the timeout, cycles of a batch whatever its fill.
    pieces : ndarray of int64
        Cycles of the quanta of a step; empty if nothing trains.
    cost : Costs

    Returns
    -------
    Run
    """
    done = np.concatenate(([0], np.cumsum(pieces, dtype=np.int64)))
    gives = done[1:] + _SEEN
    if len(pieces):
        gives[-1] += cost.again - _SEEN
    latency, started, fills, waiting, ran, training, now = _run(
        np.ascontiguousarray(arrivals, np.int64), batch, timeout, service, done, gives, cost.enter, cost.leave,
        cost.again)
    return Run(latency, started, fills, waiting, int(ran), int(now), int(now - service * len(started)), int(training))


def bound(batch: int, timeout: int, service: int, pieces: NDArray[np.int64], cost: Costs,
          waiting: NDArray[np.int64] | int) -> NDArray[np.int64] | int:
    """Cycles from a request's arrival to the end of its batch, at most; known before anything runs.

    After ``timeout`` the request is overdue, and so are those before it. What runs then, a batch or a quantum, ends;
    then batches follow each other, until it is in one.

    Parameters
    ----------
    batch, timeout, service, pieces, cost
        As of :func:`simulate`.
    waiting : int or ndarray
        Requests in the queue when it enters it, itself included.
    """
    first = service + cost.again
    if len(pieces):
        ends = pieces + cost.leave
        first = max(first, int(ends[-1]) + cost.again, int(ends[:-1].max(initial=0)) + _SEEN + cost.enter)
    return timeout + first - (-waiting // batch) * (service + cost.again)


@njit(cache=True)
def _run(arrivals, batch, timeout, service, done, gives, enter, leave, again):
    """The event loop. In a step, ``done`` cycles of training are behind so many pieces, and piece n gives way at
    ``gives[n]``, or the next step begins there."""
    total, count = len(arrivals), len(gives)
    latency, waiting = np.zeros(total, np.int64), np.zeros(total, np.int64)
    started, fills = np.zeros(total, np.int64), np.zeros(total, np.int64)
    first = batches = place = ran = training = now = 0
    base = 0    # where the step that is under way would have begun, had nothing interrupted it
    while first < total:
        due = arrivals[first] + timeout
        if first + batch <= total:
            due = min(due, arrivals[first + batch - 1])
        if batches and due <= now:
            begin = now + again
        elif not count:
            begin = max(due, now + again if batches else 0)
        else:
            if batches:
                base = now + leave[place] - done[place]
            steps = max(due - base - 1, 0) // gives[-1]
            to = np.searchsorted(gives, due - base - steps * gives[-1])    # the first piece that ends no sooner
            to = max(to, place) if not steps else to
            ran += steps * count + to + 1 - place
            training += steps * done[-1] + done[to + 1] - done[place]
            begin = base + steps * gives[-1] + gives[to] + (enter if to + 1 < count else 0)
            place = (to + 1) % count
        stop = first + 1
        while stop < total and stop < first + batch and arrivals[stop] <= begin:
            stop += 1
        started[batches], fills[batches] = begin, stop - first
        now = begin + service
        for request in range(first, stop):
            latency[request] = now - arrivals[request]
        batches, first = batches + 1, stop
    oldest = 0
    for request in range(total):    # with those before it whose batch had not begun when it came
        while oldest < request and arrivals[oldest] + latency[oldest] - service <= arrivals[request]:
            oldest += 1
        waiting[request] = request - oldest + 1
    return latency, started[:batches], fills[:batches], waiting, ran, training, now
