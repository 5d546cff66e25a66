"""The dispatcher in front of two contexts, cycle by cycle: its twin, and what the control does with what it starts.

Written from docs/design/13-dispatched.md; the executor is that of ``rtl/accelerator/control.py``, where programs take
the cycles that the cycle model has found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from hbfp.program import Program

from ....spec.dispatch import Policy
from ...dispatch.twin import Completion, Inputs, Outputs, Request, Twin
from .. import control, model
from ..times import Times, between_yields
from .descriptors import Ring


@dataclass(frozen=True)
class Quanta:
    """Cycles of the quanta of a training program, in which it runs.

    Attributes
    ----------
    on, anew : ndarray of int64, (quanta,)
        Of each if it goes on behind the one before, and if its instructions are fetched anew; to the cycle before that
        in which its YIELD, or HALT, takes effect.
    """
    on: NDArray[np.int64]
    anew: NDArray[np.int64]


def quanta(program: Program, latency: dict[str, int], dram_latency: int, bandwidth: int,
           known: Times | None = None) -> Quanta:
    """The quanta of a program, from the cycle model; ``known`` are its times, where somebody has them.

    A quantum that goes on finds as many instructions fetched as there is room for: it must be long enough for that.
    """
    found, parts = known or model.times(program, latency, dram_latency, bandwidth), between_yields(program)
    done = [found.completed[first:end].max(initial=0) for first, end in parts]
    alone = model.resumed(program, parts, 2 * found.cycles + 1000, latency, dram_latency, bandwidth)
    on = np.diff(done, prepend=-2) - 1
    return Quanta(np.array(on, np.int64), alone + 1)


class State(Enum):
    """How the control stands."""
    IDLE, START, RUN, TURN, HOLD, END, STOP = (auto() for _ in range(7))


class Machine:
    """Dispatcher and control, a cycle at a time, in which programs take the given cycles.

    What training has under way on the bus when it is stopped, being overdue, ends while its counters settle.

    Parameters
    ----------
    twin : Twin
        The dispatcher at its reset.
    service : int
        Cycles of the program of context 0, START among them: those that the cycle model counts.
    training : Quanta, optional
        Of the program of context 1.
    descriptors : Ring, optional
        From which requests come.
    """

    def __init__(self, twin: Twin, service: int, training: Quanta | None = None, descriptors: Ring | None = None
                 ) -> None:
        self.twin, self.service, self.training, self.descriptors = twin, service, training, descriptors
        self.state, self.timer, self.left = State.IDLE, 0, 0    # cycles in the state; places that are to come
        self.context, self.place = 0, 0    # who has the machine; the quantum that is next
        self.rings = False         # context 1 has a program, and has not the machine
        self.waits = False         # a batch was started, and has not the machine
        self.anew, self.length = True, 0    # the quantum's instructions are to be fetched; cycles of RUN
        self.over: bool | None = None    # of what the dispatcher was not yet told: True is a quantum
        self.ended: list[int] = []       # cycles in which programs of context 1 came to HALT

    @property
    def trains(self) -> bool:
        """Whether there is training to start."""
        return self.rings or self.state is State.HOLD

    def ring(self) -> None:
        """The doorbell of context 1, in this cycle; it counts from the next."""
        self.rings, self.place = True, 0

    def step(self, policy: Policy, request: Request | None = None) -> Outputs:
        """One cycle."""
        free = self.state is State.HOLD or self.state is State.IDLE and not self.waits
        ring, refused, arrived = self.descriptors, False, None
        wanted = replace(policy, training=False) if policy.training and not self.trains else policy
        if ring is not None:
            if ring.holds:
                wanted = replace(policy, training=False, inference=False)
            if ring.given is not None:
                given, why = ring.given
                request, refused = (given, False) if why is None else (None, True)
                arrived = ring.stamps[0]
        now = self.twin.now
        out = self.twin.step(Inputs(request, self.over, start_ready=free, completion_ready=not refused,
                                    policy=wanted, arrived=arrived))
        start = out.start if free else None
        if ring is not None:
            ring.step(now, free and out.start is None)
            ring.owed += bool(request and out.request_ready) or refused
        if self.over is not None and out.done_ready:
            self.over = None
        if out.overdue and self.context and self.state in (State.START, State.RUN, State.TURN):
            self._enter(State.STOP)
            self.over = True
        else:
            self._advance(start.training if start else None)
        if start and not start.training:
            self.left = start.count
        elif out.item:
            self.left -= 1
        return out

    def _enter(self, state: State) -> None:
        self.state, self.timer = state, 0

    def _advance(self, training: bool | None) -> None:
        """To the next cycle; ``training``: what is started in this one, None for nothing."""
        state = self.state
        self.timer += 1
        if state is State.IDLE and (self.waits or training is not None):
            self.context, self.waits = int(bool(training)), False
            self.rings, self.anew = self.rings and not training, True
            self._enter(State.START)
        elif state is State.START and (self.context or not self.left):
            self._run()
        elif state is State.RUN and self.timer == self.length:
            self._end()
        elif state is State.TURN:
            self._enter(State.HOLD)
        elif state is State.HOLD and training:
            self.anew = False
            self._run()
        elif state is State.HOLD and training is not None:
            self._enter(State.IDLE)
            self.rings = self.waits = True
        elif state in (State.END, State.STOP) and self.timer > (control.SETTLED if state is State.STOP else 0):
            self._enter(State.IDLE)

    def _run(self) -> None:
        begun = self.timer    # cycles of START; from the second on instructions are fetched
        self._enter(State.RUN)
        if not self.context:
            self.timer, self.length = begun - 1, self.service - 1
            return
        assert self.training is not None
        self.length = int((self.training.anew if self.anew else self.training.on)[self.place])
        self.place += 1

    def _end(self) -> None:
        self.over = bool(self.context)
        if self.context and self.training and self.place < len(self.training.on):
            self._enter(State.TURN)
            return
        self._enter(State.END)
        if self.context:
            self.ended.append(self.twin.now)


def serve(machine: Machine, policy: Policy, requests: Sequence[tuple[int, Request]], limit: int) -> list[Completion]:
    """Completions of requests, each with the cycle in which it comes, in the order of these.

    Raises
    ------
    ValueError
        If they are not all done before cycle ``limit``.
    """
    found: list[Completion] = []
    coming = list(reversed(requests))
    while len(found) < len(requests):
        if machine.twin.now >= limit:
            raise ValueError(f"{len(found)} of {len(requests)} requests are done in {limit} cycles")
        request = coming.pop()[1] if coming and coming[-1][0] == machine.twin.now else None
        out = machine.step(policy, request)
        if out.completion:
            found.append(out.completion)
    return found
