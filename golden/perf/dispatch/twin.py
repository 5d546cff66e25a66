"""The cycle-true twin of the dispatcher: what every port holds in every cycle, from the inputs alone.

Written from docs/design/07-dispatcher.md. :class:`Twin` is stepped once a cycle; a stream that offers nothing is None.
Inside, times are cycles since reset that never wrap; ports show them modulo 2^time.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...spec.dispatch import SHARE_WHOLE, Cause, Counter, DispatchUnit, Policy

#: A change of a counter: its address, the amount, whether the larger of the two is kept.
Change = tuple[int, int, bool]


class Request(NamedTuple):
    """Addresses of the input and of the output, and the host's tag."""
    input: int
    output: int
    tag: int


@dataclass(frozen=True)
class Start:
    """A quantum of training, or a batch of ``count`` requests."""
    training: bool
    count: int


class Completion(NamedTuple):
    """A request that is done; times in cycles since reset."""
    tag: int
    arrived: int
    started: int
    finished: int


@dataclass
class Inputs:
    """One cycle's inputs: what streams offer (None: nothing), whether others are taken, the policy."""
    request: Request | None = None
    done: bool | None = None    # True: the training program yields
    counter: int | None = None
    start_ready: bool = True
    item_ready: bool = True
    completion_ready: bool = True
    counter_ready: bool = True
    clear: bool = False
    policy: Policy = field(default_factory=Policy)
    arrived: int | None = None    # from when on the request counts, if not from now on


@dataclass
class Outputs:
    """One cycle's outputs: what streams offer (None: nothing), whether others are taken."""
    request_ready: bool
    done_ready: bool
    counter_ready: bool
    start: Start | None
    item: Request | None
    completion: Completion | None
    counter: int | None
    now: int
    overdue: bool
    error: int


class Tally:
    """Counters that change one at a time, in two cycles each; after reset they are set to 0, one a cycle."""

    def __init__(self, unit: DispatchUnit) -> None:
        self.unit = unit
        self.clearing = unit.counters
        self.values = [0] * unit.counters
        self.serving: int | None = None       # 0 or 1: whose change is in its second cycle
        self.reading: int | None = None       # value on its way to the host
        self.offered: int | None = None       # value that the host has not taken

    def step(self, changes: tuple[Change | None, Change | None], address: int | None,
             ready: bool) -> tuple[bool, bool, bool]:
        """One cycle.

        Parameters
        ----------
        changes : (tuple or None, tuple or None)
            Wanted by the executor's part and by the report: counter, amount, whether the larger one is kept.
        address : int or None
            Counter that the host wants.
        ready : bool
            The host takes the offered value.

        Returns
        -------
        (bool, bool, bool)
            Whether each change and the host's address are taken in this cycle.
        """
        taken, wants = [False, False], False
        serving, self.serving, read = self.serving, None, None
        if self.clearing:
            self.clearing -= 1
        elif serving is not None:
            change = changes[serving]
            assert change is not None, "a change that is under way was withdrawn"
            counter, amount, largest = change
            before = self.values[counter]
            self.values[counter] = min(max(before, amount) if largest else before + amount,
                                       2 ** self.unit.counter - 1)
            taken[serving] = True
        elif changes[0] or changes[1]:
            self.serving = 0 if changes[0] else 1
        elif address is not None and self.offered is None and self.reading is None:
            wants, read = True, self.values[address] if address < self.unit.counters else 0
        if self.reading is not None:
            self.offered = self.reading
        elif ready:
            self.offered = None
        self.reading = read
        return taken[0], taken[1], wants


class Report:
    """Offers the completions of a batch that is done; four counters change for each."""

    def __init__(self, unit: DispatchUnit) -> None:
        self.unit, self.state, self.step = unit, "READ", 0
        self.left: deque[tuple[int, int]] = deque()    # tag, arrival
        self.started = self.finished = 0

    def begin(self, batch: Iterable[tuple[int, int]], started: int, finished: int) -> None:
        """Take a batch, (tag, arrival) of each request."""
        self.left.extend(batch)
        self.started, self.finished = started, finished

    @property
    def offer(self) -> Completion | None:
        """The completion that is offered, or None."""
        if self.state != "OFFER":
            return None
        tag, arrived = self.left[0]
        return Completion(tag, *(time % 2 ** self.unit.time for time in (arrived, self.started, self.finished)))

    @property
    def excess(self) -> bool:
        """The latency of the oldest request is longer than times can tell."""
        return self.finished - self.left[0][1] > self.unit.longest

    @property
    def change(self) -> Change | None:
        """The change of a counter that is wanted, or None."""
        if self.state != "COUNT":
            return None
        latency = min(self.finished - self.left[0][1], self.unit.longest)
        return ((Counter.COMPLETED, 1, False), (self.unit.histogram(latency.bit_length()), 1, False),
                (Counter.LATENCY, latency, False), (Counter.LONGEST, latency, True))[self.step]

    def advance(self, ready: bool, counted: bool) -> bool:
        """To the next cycle; whether the place of the oldest request is free."""
        if self.state == "READ" and self.left:
            self.state = "OFFER"
        elif self.state == "OFFER" and ready:
            self.state = "COUNT"
            return True
        elif self.state == "COUNT" and counted:
            self.step = (self.step + 1) % 4
            if not self.step:
                self.left.popleft()
                self.state = "READ"
        return False


class Twin:
    """The dispatcher, cycle by cycle.

    Parameters
    ----------
    unit : golden.spec.dispatch.DispatchUnit
    """

    def __init__(self, unit: DispatchUnit | None = None) -> None:
        self.unit = unit = unit or DispatchUnit()
        self.tally, self.report = Tally(unit), Report(unit)
        self.half = 2 ** (unit.time - 1)    # idle cycles are counted at the latest once in so many
        self.waiting: deque[tuple[Request, int]] = deque()    # with the arrival of each
        self.batch: deque[tuple[Request, int]] = deque()
        self.held = self.now = self.error = self.since = self.span = self.debt = 0
        self.state, self.abandoned, self.late = "CHOOSE", False, False
        self.training, self.turn, self.known, self.cleared = False, False, False, False
        self.handed = 0
        self.closed: int | None = None    # requests that waited when they became due, while a quantum ran
        self.policy: Policy | None = None    # the last one, whose times fit

    def _valid(self, policy: Policy) -> bool:
        return 1 <= policy.batch <= self.unit.depth and policy.share <= SHARE_WHOLE

    @property
    def settled(self) -> bool:
        """Counters are set to 0, and the age of the oldest request is known: something may be chosen."""
        return self.cleared and (not self.waiting or self.known)

    def choice(self, policy: Policy) -> Start | None:
        """What the policy starts now: a :class:`Start` or None."""
        if not self._valid(policy) or not self.settled:
            return None
        count = len(self.waiting) if self.closed is None else self.closed
        full = count >= policy.batch
        due = policy.inference and self.waiting and (full or self.now - self.waiting[0][1] >= policy.timeout)
        barred = self.abandoned or self.error >> Cause.OVERDUE & 1
        may_train = policy.training and policy.share and not barred and not self.debt
        if due and (policy.priority or not self.turn or not may_train):
            return Start(False, min(count, policy.batch))
        return Start(True, 0) if may_train else None

    def _change(self) -> Change | None:
        """The change of a counter that the executor's part wants."""
        return {"IDLE": (Counter.IDLE, self.span, False),
                "PAUSE": (Counter.IDLE, self.now - self.since, False),
                "TIME": (Counter.TRAINING if self.training else Counter.INFERENCE, self.span, False),
                "COUNT": (Counter.QUANTA if self.training else self.unit.fill(len(self.batch)), 1, False),
                }.get(self.state)

    def step(self, inputs: Inputs) -> Outputs:
        """One cycle.

        Parameters
        ----------
        inputs : Inputs

        Returns
        -------
        Outputs
            Of the same cycle.

        Raises
        ------
        ValueError
            If a time of the policy is longer than the unit's times.
        """
        state, policy = self.state, inputs.policy
        if policy is not self.policy:
            self.unit.check_policy(policy)
            self.policy = policy
        changes, self.cleared = (self._change(), self.report.change), not self.tally.clearing
        value = self.tally.offered
        counted, reported, counter_ready = self.tally.step(changes, inputs.counter, inputs.counter_ready)
        done_ready = state == "CHOOSE" or (state == "RUN" and (self.training or not self.report.left))
        outputs = Outputs(
            request_ready=self.held != self.unit.depth, done_ready=done_ready, counter_ready=counter_ready,
            start=Start(self.training, len(self.batch)) if state == "START" else None,
            item=self.batch[self.handed][0] if state == "ITEM" else None,
            completion=self.report.offer, counter=value, now=self.now % 2 ** self.unit.time,
            overdue=self.abandoned, error=self.error)

        fault = 0 if self._valid(policy) else 1 << Cause.POLICY
        running = self.training and state in ("IDLE", "RUN")
        done = inputs.done if done_ready else None
        ends = state == "RUN" and done is not None and bool(done) == self.training
        overdue = (state == "RUN" and self.training and not ends and policy.patience > 0
                   and self.now - self.since >= policy.patience)
        chosen = self.choice(policy) if state == "CHOOSE" else None
        if done is not None and not ends:
            if self.abandoned and done:
                self.abandoned = False
            else:
                fault |= 1 << Cause.UNASKED
        if overdue:
            fault |= 1 << Cause.OVERDUE
        begins, elapsed = ends or overdue or (state == "START" and inputs.start_ready), self.now - self.since
        late = self.report.offer is not None and inputs.completion_ready and self.report.excess
        if late or (begins and elapsed > self.unit.longest):
            fault |= 1 << Cause.TIME
        freed = self.report.advance(inputs.completion_ready, reported)
        came = self.now if inputs.arrived is None else inputs.arrived
        if policy.closes and self.training:
            self._close(policy, came, bool(inputs.request and outputs.request_ready and inputs.arrived is not None))
        self._executor(inputs, chosen, ends, overdue, counted)
        if begins:
            self.span = min(elapsed, self.unit.longest)
        if begins or not self.cleared or (state == "PAUSE" and counted):
            self.since = self.now
        limit = 2 ** (self.unit.time + 4) - 1
        self.debt = min(max(self.debt + (SHARE_WHOLE if running else 0) - policy.share, 0), limit)
        if inputs.request and outputs.request_ready:
            self.waiting.append((inputs.request, came))
            self.held += 1
        self.held -= freed
        self.error = (0 if inputs.clear else self.error) | fault
        self.now += 1
        return outputs

    def _close(self, policy: Policy, came: int, told: bool) -> None:
        """Beside a quantum: the age of the oldest request is read, then looked at; behind it too, as others are told.
        """
        beside = self.state != "CHOOSE"
        if self.waiting if told else beside and self.known:
            due = came - self.waiting[0][1] >= policy.timeout
            if due and self.closed is None:
                self.closed = len(self.waiting)
            elif told and self.closed is not None and not due:
                self.closed += 1
        self.known = bool(self.waiting) if beside else self.known

    def _executor(self, inputs: Inputs, chosen: Start | None, ends: bool, overdue: bool, counted: bool) -> None:
        """The next state of choosing, starting, handing over, waiting and counting."""
        if self.state == "CHOOSE":
            read = bool(self.waiting) or self.known
            if chosen:
                self.training, self.turn, self.late = chosen.training, not chosen.training, False
                self.batch = deque(self.waiting.popleft() for _ in range(chosen.count))
                self.closed = self.closed if chosen.training else None
                self.handed, self.state = 0, "START"
                read = self.known and chosen.training
            elif self.settled and self.now // self.half > self.since // self.half:
                self.state = "PAUSE"
            self.known = read
        elif self.state == "START":
            if inputs.start_ready:
                self.state = "IDLE"
        elif self.state == "IDLE":
            if counted:
                self.state = "RUN" if self.training else "READ"
        elif self.state == "READ":
            self.state = "ITEM"
        elif self.state == "ITEM":
            if inputs.item_ready:
                self.handed += 1
                self.state = "RUN" if self.handed == len(self.batch) else "READ"
        elif self.state == "RUN":
            if ends or overdue:
                if ends and not self.training:
                    self.report.begin([(request.tag, arrived) for request, arrived in self.batch],
                                      self.since, self.now)
                self.state = "TIME"
                self.late, self.abandoned = overdue, self.abandoned or overdue
        elif self.state == "TIME":
            if counted:
                self.state = "CHOOSE" if self.late else "COUNT"
        elif counted:
            self.state = "CHOOSE"
