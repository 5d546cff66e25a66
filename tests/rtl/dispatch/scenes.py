"""Scenes for a dispatcher: sizes, and phases of policies, loads, paces and faults; a host and an executor play them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from golden.perf.dispatch.twin import Inputs, Outputs, Request
from golden.spec.dispatch import SHARE_WHOLE, DispatchUnit, Policy

#: What may happen as a phase begins: nothing, a reset, errors cleared, an end that nobody asked for.
EVENTS = "", "reset", "clear", "done", "yield"


@dataclass(frozen=True)
class Phase:
    """So many cycles of one kind.

    Attributes
    ----------
    cycles : int
    policy : Policy
    gap : int
        Cycles from a request to the next; 0: none come.
    service, quantum : int
        Cycles of a batch, and of a quantum, that begin in it.
    pause : int
        An output is taken in one cycle of so many.
    event : str
        One of :data:`EVENTS`.
    counter : int or None
        One that is read.
    """
    cycles: int
    policy: Policy
    gap: int
    service: int
    quantum: int
    pause: int
    event: str
    counter: int | None


@dataclass(frozen=True)
class Scene:
    """Phases of a dispatcher, and how many cycles late requests are told where it has them ``stamped``."""
    unit: DispatchUnit
    phases: Sequence[Phase]
    late: int


@st.composite
def scenes(draw: Any) -> Scene:
    """Small sizes, so that queues fill, times wrap and counters end."""
    unit = DispatchUnit(depth=draw(st.sampled_from((2, 4, 8, 16))), address=draw(st.integers(8, 12)),
                        tag=draw(st.integers(1, 8)), time=draw(st.integers(5, 9)), counter=draw(st.integers(4, 12)),
                        stamped=draw(st.integers(0, 1)))
    times = st.integers(0, unit.longest)
    policies = st.builds(Policy, inference=st.booleans(), training=st.booleans(), priority=st.booleans(),
                         batch=st.integers(1, unit.depth) | st.integers(0, unit.depth + 1), timeout=times | st.just(0),
                         share=st.just(SHARE_WHOLE) | st.integers(0, SHARE_WHOLE + 1), patience=st.just(0) | times,
                         closes=st.booleans())
    lengths = st.integers(1, 40) | st.integers(1, unit.longest + 5)
    phases = st.builds(Phase, cycles=st.integers(1, 120), policy=policies, gap=st.integers(0, 30), service=lengths,
                       quantum=lengths, pause=st.integers(1, 4), event=st.sampled_from(EVENTS) | st.just(""),
                       counter=st.none() | st.integers(0, 2 ** (unit.counters - 1).bit_length() - 1))
    return Scene(unit, draw(st.lists(phases, min_size=1, max_size=8)), draw(st.integers(0, unit.longest // 8)))


class Surroundings:
    """Host and executor: what they give to ports in each cycle of a scene, and then until all requests are done."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.unit, self.sent, self.cycle = scene, scene.unit, 0, 0
        self.phases, self.left, self.gap = deque(scene.phases), 0, 0
        self.phase = scene.phases[0]
        self.restart()

    def restart(self) -> None:
        """Nothing is offered, and nothing runs."""
        self.request: Request | None = None
        self.outside = deque[tuple[Request, int]]()        # are there, and not yet told of, with the time
        self.done = deque[bool]()                          # ends that are offered, one behind the other
        self.counter: int | None = None
        self.running: bool | None = None                   # a batch or a quantum, until its end is taken
        self.ends: int | None = None                       # cycles until it has one
        self.missing = self.now = 0                        # requests of the batch that have yet to be handed over
        self.held = 0                                      # those that were taken and are not reported
        self.dropped: int | None = None                    # cycles until a program that is overdue has its end
        self.late = False                                  # whether one was overdue in the cycle before

    @property
    def over(self) -> bool:
        """Whether all phases are."""
        return not self.phases and not self.left

    @property
    def pending(self) -> bool:
        """Whether something is offered, or will be."""
        return bool(self.request or self.outside or self.done) or self.dropped is not None

    def finish(self) -> None:
        """From now on everything is served, and no request comes."""
        policy = Policy(batch=1, training=False)
        self.phases, self.left = deque([Phase(1 << 30, policy, 0, 1, 1, 1, "", None)]), 0

    def inputs(self, starting: bool) -> Inputs | None:
        """What this cycle has, None for a reset; ``starting``: the dispatcher offers a start."""
        clear = False
        if not self.left:
            self.phase = self.phases.popleft()
            self.left, self.gap = self.phase.cycles, self.phase.gap
            if self.phase.event == "reset":
                self.restart()
                return None
            clear = self.phase.event == "clear"
            if self.phase.event in ("done", "yield") and not self.done:
                self.done.append(self.phase.event == "yield")
            self.counter = self.phase.counter if self.counter is None else self.counter
        self.left, phase, policy, arrived = self.left - 1, self.phase, self.phase.policy, None
        self.gap -= 1
        if phase.gap and self.gap <= 0 and self.request is None:
            self.request = Request(self.sent % 2 ** self.unit.address, -self.sent % 2 ** self.unit.address,
                                   self.sent % 2 ** self.unit.tag)
            self.sent, self.gap = self.sent + 1, phase.gap
        request = self.request
        if self.unit.stamped:                              # while nothing runs, and nothing is chosen
            if self.request is not None and self.held + len(self.outside) < self.unit.depth:
                self.outside.append((self.request, self.now))
                self.request = None
            request, free = None, self.running is None and not starting
            if free and self.outside and self.now - self.outside[0][1] >= self.scene.late:
                policy = replace(policy, inference=False, training=False)
                request, arrived = self.outside[0]
                arrived = max(arrived, self.now - self.unit.longest)    # times tell no longer ago
        if self.ends is not None and not self.missing:
            self.ends = max(self.ends - 1, 0)
            if not self.ends:
                self.done.append(bool(self.running))
                self.ends = None
        if self.dropped is not None:
            self.dropped -= 1
            if self.dropped <= 0:
                self.done.append(True)
                self.dropped = None
        ready = self.cycle % phase.pause == 0
        self.cycle += 1
        return Inputs(request, self.done[0] if self.done else None, self.counter, ready, ready, ready, ready, clear,
                      policy, arrived)

    def see(self, given: Inputs, seen: Outputs) -> None:
        """What was taken and started in a cycle."""
        self.now += 1
        self.held -= bool(seen.completion and given.completion_ready)
        if given.request and seen.request_ready:
            self.held += 1
            if given.arrived is not None:
                self.outside.popleft()
            else:
                self.request = None
        if given.done is not None and seen.done_ready:
            if self.running == self.done.popleft():        # or its end was offered before its time
                self.running = self.ends = None
        if given.counter is not None and seen.counter_ready:
            self.counter = None
        if seen.item and given.item_ready:
            self.missing -= 1
        if seen.overdue and self.running and not self.late:    # the program goes on; nobody waits for it
            self.dropped, self.running, self.ends = self.ends, None, None
        self.late = seen.overdue
        if seen.start and given.start_ready:
            self.running, self.missing = seen.start.training, seen.start.count
            self.ends = self.phase.quantum if self.running else self.phase.service
