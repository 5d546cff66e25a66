"""What :func:`.followed.follow` says of an inference that goes first, compiled, for a million requests and more.

The states of dispatcher, counters, report and control are those of :class:`~golden.perf.dispatch.twin.Twin` and of
:class:`.dispatched.Machine`, in numbers; cycles are skipped where these have nothing to do. A test holds both to equal
times on random arrivals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.golden.spec.dispatch import SHARE_WHOLE, DispatchUnit, Policy

from .. import control
from .dispatched import Quanta

#: States of the executor's part of the dispatcher, of its report, and of the control.
_CHOOSE, _START, _IDLE, _READ, _ITEM, _RUN, _TIME, _COUNT, _PAUSE = range(9)
_TAKES, _OFFERS, _COUNTS = range(3)
_FREE, _BEGINS, _RUNS, _TURN, _HOLD, _END, _STOP = range(7)
#: Counters that change for a request that is reported.
_REPORTED = 4
#: No cycle.
_NEVER = np.int64(1 << 62)


@dataclass(frozen=True)
class Run:
    """What happened; cycles count from reset.

    Attributes
    ----------
    arrived, started, finished : ndarray of int64, (requests,)
        As completions have them, but without end, in the order in which requests came.
    fills : ndarray of int64, (batches,)
        Requests of each batch.
    ran : ndarray of int64, (quanta of a step,)
        How often each quantum has run to its YIELD, or HALT.
    steps : int
        Steps of training that have ended.
    refused : int
        Requests that came to a full queue.
    overdue : int
        Cycle in which training was found to be overdue, which ends it; -1: never.
    turns : ndarray of int64, (turns, 3)
        The first: number of the quantum (-1: a batch), and the cycles of its start and of its end.
    """
    arrived: NDArray[np.int64]
    started: NDArray[np.int64]
    finished: NDArray[np.int64]
    fills: NDArray[np.int64]
    ran: NDArray[np.int64]
    steps: int
    refused: int
    overdue: int
    turns: NDArray[np.int64]

    @property
    def latency(self) -> NDArray[np.int64]:
        """Of each request, cycles from its arrival to the end of its batch."""
        return self.finished - self.arrived

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Of each request, how many wait when it comes, itself included."""
        number = np.arange(len(self.arrived))
        return number + 1 - np.minimum(np.searchsorted(self.started, self.arrived, "right"), number)


def follow(unit: DispatchUnit, policy: Policy, service: int, training: Quanta | None,
           arrivals: Sequence[int] | NDArray[np.int64], *, again: int, turns: int = 0) -> Run:
    """Serve all requests, in the order in which they come; doorbells ring as if they were not given to
    :func:`.followed.follow`, which has the same parameters.

    Parameters
    ----------
    unit, policy, service, training, arrivals, again
    turns : int
        How many are kept.

    Raises
    ------
    ValueError
        If the policy does not let inference go first, or holds training back.
    """
    first = policy.inference and policy.priority and 1 <= policy.batch <= unit.depth
    if not first or policy.share != SHARE_WHOLE:
        raise ValueError(f"Policy must serve batches of 1 to {unit.depth} first, and not limit training, not {policy}")
    unit.check_policy(policy)
    none = np.zeros(0, np.int64)
    on, anew = (none, none) if training is None or not policy.training else (training.on, training.anew)
    return Run(*_follow(unit.counters, unit.depth, 1 << unit.time - 1, policy.batch, int(policy.timeout),
                        policy.patience, policy.closes, service, on, anew, np.ascontiguousarray(arrivals, np.int64),
                        again, control.SETTLED, np.zeros((turns, 3), np.int64)))


@njit(cache=True)
def _follow(clearing, depth, half, batch, timeout, patience, closes, service, on, anew, arrivals, again, settled,
            turns):
    """The loop over cycles."""
    total, pieces = len(arrivals), len(on)
    arrived, started = np.zeros(total, np.int64), np.zeros(total, np.int64)
    finished, fills, ran = np.zeros(total, np.int64), np.zeros(total, np.int64), np.zeros(pieces, np.int64)
    now = since = held = batches = steps = kept = refused = 0
    overdue_at = full = -1
    # Requests in their order: reported, of the batch that is reported, of the one that runs, waiting, and to come.
    done = reported = first = behind = came = 0
    state, training, known, handed, end = _CHOOSE, False, False, 0, 0
    closed = -1    # requests of a batch that became due beside a quantum
    abandoned = barred = late = False
    report, step, serving = _TAKES, 0, -1
    machine, timer, left, context, place, length = _FREE, 0, 0, 0, 0, 0
    rings = waits = False
    over = -1
    bell, piece, begun = (0 if pieces else _NEVER), 0, 0
    while done < total:
        # Go on to where anything may change.
        if report == _TAKES and done == reported and serving < 0 and clearing == 0 and over < 0:
            ahead = _NEVER
            closing = closes and training and behind < came and closed < 0
            if machine == _RUNS and state == _RUN and not (closing and not known):
                ahead = now + length - timer - 1
                if closing:
                    ahead = min(ahead, max(arrived[behind] + timeout, now))
            elif (machine == _FREE or machine == _HOLD) and state == _CHOOSE:
                if not (waits or pieces and (rings or machine == _HOLD) and not barred
                        or behind < came and not (known and came - behind < batch)):
                    ahead = (since // half + 1) * half
                    if behind < came:
                        ahead = min(ahead, arrived[behind] + timeout)
            if ahead < _NEVER:
                if came < total and held < depth:
                    ahead = min(ahead, arrivals[came])
                ahead = min(ahead, bell)
                if patience:
                    ahead = min(ahead, since + patience)
                if ahead > now:
                    timer += ahead - now
                    now = ahead
        # Counters.
        cleared = clearing == 0
        counted = told = False
        if clearing:
            clearing -= 1
        elif serving >= 0:
            counted, told, serving = serving == 0, serving == 1, -1
        elif state == _IDLE or state == _PAUSE or state == _TIME or state == _COUNT:
            serving = 0
        elif report == _COUNTS:
            serving = 1
        # The dispatcher's decisions in this cycle.
        free = machine == _FREE or machine == _HOLD
        ready = state == _CHOOSE or state == _RUN and (training or done == reported)
        ends = state == _RUN and ready and over >= 0 and (over == 1) == training
        overdue = state == _RUN and training and not ends and patience > 0 and now - since >= patience
        starts = state == _START and free
        settles = cleared and (behind == came or known)
        chosen = -1
        if state == _CHOOSE and settles:
            if behind < came and (came - behind >= batch or now - arrived[behind] >= timeout):
                chosen = 0
            elif pieces and (rings or machine == _HOLD) and not (barred or abandoned):
                chosen = 1
        item = state == _ITEM
        takes = came < total and now >= arrivals[came] and held < depth
        stopped = abandoned
        if ready and over >= 0 and not ends and abandoned and over == 1:
            abandoned = False
        # The report.
        freed = False
        if report == _TAKES:
            if done < reported:
                report = _OFFERS
        elif report == _OFFERS:
            report, freed = _COUNTS, True
        elif told:
            step = (step + 1) % _REPORTED
            if step == 0:
                done += 1
                report = _TAKES
        # The executor's part.
        if closes and training and state != _CHOOSE:
            if known and closed < 0 and now - arrived[behind] >= timeout:
                closed = came - behind
            known = behind < came
        paused = False
        if state == _CHOOSE:
            reads = behind < came or known
            if chosen >= 0:
                training, late, state, handed = chosen == 1, False, _START, 0
                if not training:
                    first, behind = behind, behind + min(came - behind if closed < 0 else closed, batch)
                    end, closed = behind, -1
                reads = known and training
            elif settles and now // half > since // half:
                state = _PAUSE
            known = reads
        elif state == _START:
            if free:
                state = _IDLE
        elif state == _IDLE:
            if counted:
                state = _RUN if training else _READ
        elif state == _READ:
            state = _ITEM
        elif state == _ITEM:
            handed += 1
            state = _RUN if handed == end - first else _READ
        elif state == _RUN:
            if ends or overdue:
                if ends and not training:
                    for request in range(first, end):
                        started[request], finished[request] = since, now
                    reported, fills[batches] = end, end - first
                    batches += 1
                state, late = _TIME, overdue
                if overdue:
                    abandoned = barred = True
                    overdue_at = now
        elif state == _TIME:
            if counted:
                state = _CHOOSE if late else _COUNT
        elif counted:
            paused = state == _PAUSE
            state = _CHOOSE
        if ends or overdue or starts or not cleared or paused:
            since = now
        if held == depth:
            full = now
        if takes:
            arrived[came] = now
            refused += arrivals[came] <= full
            came += 1
            held += 1
        held -= freed
        # The control.
        if over >= 0 and ready:
            over = -1
        was = machine
        timer += 1
        if machine == _FREE:
            if waits or starts:
                context = 1 if starts and training else 0
                waits = False
                if context:
                    rings = False
                machine, timer = _BEGINS, 0
        elif stopped and context == 1 and (machine == _BEGINS or machine == _RUNS or machine == _TURN):
            machine, timer, over = _STOP, 0, 1
        elif machine == _BEGINS:
            if context or left == 0:
                machine = _RUNS
                timer, length = (0, anew[place]) if context else (timer - 1, service - 1)
                place += context
        elif machine == _RUNS:
            if timer == length:
                over = context
                machine, timer = (_TURN if context and place < pieces else _END), 0
        elif machine == _TURN:
            machine, timer = _HOLD, 0
        elif machine == _HOLD:
            if starts and training:
                machine, timer, length = _RUNS, 0, on[place]
                place += 1
            elif starts:
                machine, timer, rings, waits = _FREE, 0, True, True
        elif timer > (settled if machine == _STOP else 0):
            machine, timer = _FREE, 0
        if starts:
            begun = now
            if not training:
                left = end - first
        if item:
            left -= 1
        if was == _RUNS and machine != _RUNS and not (machine == _STOP):
            if kept < len(turns):
                turns[kept] = (piece if context else -1), begun, now
                kept += 1
            if context:
                ran[piece] += 1
                piece += 1
                if piece == pieces:
                    piece, steps, bell = 0, steps + 1, now + again
        if now == bell:
            rings, place, bell = True, 0, _NEVER
        now += 1
    return arrived, started, finished, fills[:batches], ran, steps, refused, overdue_at, turns[:kept]
