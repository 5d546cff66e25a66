"""Every batch, quantum and completion behind a dispatcher, to the cycle, for as many requests as a simulation has.

:class:`~.dispatched.Machine` is stepped where something happens; cycles in between, in which a program runs or nothing
is due, are skipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hbfp.golden.perf.dispatch.twin import Completion, Request, Twin
from hbfp.golden.spec.dispatch import DispatchUnit, Policy
from hbfp.isa.descriptors import Refusal

from .descriptors import Reads, Ring
from .dispatched import Machine, Quanta, State


@dataclass(frozen=True)
class Turn:
    """A batch, or a quantum of training.

    Attributes
    ----------
    piece : int
        Number of the quantum in its step; -1 of a batch.
    started, ended : int
        Cycle in which the dispatcher's start is taken, and in which its HALT or YIELD takes effect.
    ran : int
        Cycles in which its program ran.
    requests : tuple of int
        Tags of the batch, oldest first.
    """
    piece: int
    started: int
    ended: int
    ran: int
    requests: tuple[int, ...] = ()


@dataclass
class Followed:
    """What happened; cycles count from reset.

    Attributes
    ----------
    turns : list of Turn
        In their order; those that have ended.
    completions : dict of int to Completion
        Tag of each request -> its times.
    rung : list of int
        Cycles of the doorbells of the training.
    refused : dict of int to (int, Refusal)
        Tag of each request whose descriptor was refused -> when, and why.
    """
    turns: list[Turn] = field(default_factory=list)
    completions: dict[int, Completion] = field(default_factory=dict)
    rung: list[int] = field(default_factory=list)
    refused: dict[int, tuple[int, Refusal]] = field(default_factory=dict)


def latencies(completions: dict[int, Completion]) -> NDArray[np.int64]:
    """Of each request, in the order of the tags, the cycles from its arrival to the end of its batch."""
    return np.array([each.finished - each.arrived for _, each in sorted(completions.items())], np.int64)


def follow(unit: DispatchUnit, policy: Policy, service: int, training: Quanta | None, arrivals: Sequence[int], *,
           rung: Sequence[int] | None = None, again: int = 1, reads: Reads | None = None,
           kinds: Sequence[Refusal | None] | None = None, taken: Sequence[int] | None = None) -> Followed:
    """Serve all requests, whose tags are 0, 1 and so on.

    Parameters
    ----------
    unit, policy, service, training
        As of :class:`~.dispatched.Machine`.
    arrivals : sequence of int
        Cycles in which requests come, ascending; one that finds the queue full waits.
    rung : sequence of int, optional
        Cycles of the doorbells of the training; behind the last there is none. If not given, the first is rung in cycle
        0, and each of the others ``again`` cycles behind the end of the step before.
    again : int
    reads : Reads, optional
        How requests are read from a ring of descriptors: ``arrivals`` are then the cycles in which the host writes
        ``ring_tail``.
    kinds : sequence, optional
        Why the descriptor of each request is refused; None, also in place of the sequence: it is not.
    taken : sequence of int, optional
        With a ring, cycles in which the host takes completions; if not given, each as it comes.
    """
    ring = None
    if reads is not None:
        ring = Ring(reads, unit.depth, [(Request(0, 0, tag), kinds[tag] if kinds else None)
                                        for tag in range(len(arrivals))])
    return _Follower(unit, policy, service, training, arrivals, rung, again, ring, taken).run()


class _Follower:
    """The machine, and what comes to it."""

    def __init__(self, unit, policy, service, training, arrivals, rung, again, ring, taken):
        self.machine = Machine(Twin(unit), service, training, ring)
        self.ring, self.taken, self.took, self.refuses = ring, taken, 0, False
        self.policy, self.training, self.arrivals, self.again = policy, training, arrivals, again
        self.first, self.found = 0, Followed()
        self.given = None if rung is None else list(rung)
        self.bells = [] if training is None else [0] if rung is None else list(rung[:1])
        self.started, self.tags, self.piece = 0, list[int](), 0

    def run(self):
        """Step until all requests are reported."""
        machine, found = self.machine, self.found
        while len(found.completions) + len(found.refused) < len(self.arrivals):
            self._skip()
            now, was = machine.twin.now, machine.state
            request = None
            if self.ring is not None:
                self._given(now)
            elif self.first < len(self.arrivals) and now >= self.arrivals[self.first]:
                request = Request(0, 0, self.first)
            out = machine.step(self.policy, request)
            if self.ring is None:
                self.first += bool(request and out.request_ready)
            else:
                self._read(now, out)
            if out.start is not None and was in (State.IDLE, State.HOLD):
                self.started, self.tags = now, []
            if out.item is not None:
                self.tags.append(out.item.tag)
            if out.completion is not None:
                found.completions[out.completion.tag] = out.completion
            if was is State.RUN and machine.state not in (State.RUN, State.STOP):
                self._ended(now, machine.state is State.END)
            if self.bells and now == self.bells[-1] and len(self.bells) > len(found.rung):
                machine.ring()
                found.rung.append(now)
        return found

    def _given(self, now):
        """Before a cycle: what the host has taken, and what of the ring is refused in it."""
        ring, taken = self.ring, self.taken or ()
        while self.took < len(taken) and taken[self.took] < now:
            ring.owed -= 1
            self.took += 1
        self.refuses = ring.given is not None and ring.given[1] is not None
        if self.refuses:
            self.found.refused[ring.given[0].tag] = now, ring.given[1]
            ring.owed -= self.taken is None

    def _read(self, now, out):
        """Behind a cycle: the host's tail, and completions that are taken as they come."""
        while self.first < len(self.arrivals) and self.arrivals[self.first] <= now:
            self.first += 1
        self.ring.tail = self.first
        self.ring.owed -= self.taken is None and out.completion is not None and not self.refuses

    def _ended(self, now, last):
        """A program has given way or ended in this cycle; ``last``: ended."""
        machine, training = self.machine, bool(self.machine.context)
        self.found.turns.append(Turn(self.piece if training else -1, self.started, now, machine.length,
                                     tuple(self.tags)))
        if training:
            self.piece = 0 if last else self.piece + 1
            if last:
                rung = len(self.found.rung)
                self.bells += [now + self.again] if self.given is None else self.given[rung:rung + 1]

    def _skip(self):
        """Go on to the next cycle in which anything may change, where nothing of the dispatcher is under way."""
        machine, twin, policy = self.machine, self.machine.twin, self.policy
        quiet = (twin.report.state == "READ" and not twin.report.left and twin.tally.serving is None
                 and not twin.tally.clearing and not twin.debt and machine.over is None)
        ring = self.ring
        if not quiet or ring is not None and not ring.still:
            return
        ahead = [self.arrivals[self.first]] if self.first < len(self.arrivals) else []
        if ring is not None and self.taken and ring.tail != ring.head:
            ahead += self.taken[self.took:self.took + 1]
        ahead += self.bells[-1:] if len(self.bells) > len(self.found.rung) else []
        if machine.state is State.RUN and twin.state == "RUN":
            if policy.closes and twin.training and twin.waiting and twin.closed is None:
                if not twin.known:
                    return
                ahead.append(max(twin.waiting[0][1] + int(policy.timeout), twin.now))
            ahead.append(twin.now + machine.length - machine.timer - 1)
        elif machine.state in (State.IDLE, State.HOLD) and twin.state == "CHOOSE":
            if ring is not None and ring.due or machine.waits or policy.training and machine.trains or (
                    twin.waiting and not (twin.known and len(twin.waiting) < policy.batch)):
                return
            ahead += [twin.waiting[0][1] + int(policy.timeout)] if twin.waiting else []
            ahead.append((twin.since // twin.half + 1) * twin.half)
        else:
            return
        if patience := policy.patience:
            ahead.append(twin.since + patience)
        if ahead and (over := min(ahead) - twin.now) > 0:
            twin.now += over
            machine.timer += over

