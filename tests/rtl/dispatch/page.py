"""What docs/design/07-dispatcher.md promises of a dispatcher's ports, held to what they show; no rule of the twin's."""

from collections import Counter, deque

from golden.perf.dispatch.twin import Inputs, Outputs
from golden.spec.dispatch import DispatchUnit, Policy

#: Cycles from an end, and from when something is due, to a start: time, count, pause and choose.
FREE = 20
#: Cycles from a start's taking until a quantum may be overdue: idle, and one to say it.
PATIENT = 8
#: Cycles beside a quantum in which the oldest is known, is too old, and its batch is closed.
CLOSED = 4
OVERDUE, UNASKED, POLICY, TIME = 1, 2, 4, 8


class Page:
    """Sees each cycle of a dispatcher; AssertionError where it breaks a promise.

    Parameters
    ----------
    unit : DispatchUnit
    """

    def __init__(self, unit: DispatchUnit) -> None:
        self.unit, self.period, self.now = unit, 2 ** unit.time, 0
        self.waiting, self.batch = deque(), deque()        # (request, arrived)
        self.reported = deque()                            # (tag, arrived, started, finished)
        self.held = self.error = self.late = self.patience = self.free = 0
        self.running, self.started, self.ended, self.size, self.missing = None, 0, 0, 0, 0
        self.offered, self.before = {}, None               # of the cycle before: policy, how many wait, since when
        self.abandoned = self.closes = False
        self.aged, self.among = 0, None                    # cycles that a batch was due beside a quantum; what it has
        self.whole, self.share, self.turn = True, None, False
        self.first, self.quantum = 0, (0, 0)               # cycle of a start; the last quantum's length, and end
        self.counts, self.latencies, self.busy, self.odd = Counter(), [], Counter(), False

    def valid(self, policy: Policy) -> bool:
        """Whether something may be started."""
        return 1 <= policy.batch <= self.unit.depth and policy.share <= 16

    def due(self, policy: Policy, count: int, since: int, now: int) -> bool:
        """Whether a batch is."""
        return policy.inference and count > 0 and (count >= policy.batch or now - since >= policy.timeout)

    def see(self, given: Inputs, seen: Outputs) -> None:
        """A cycle."""
        self._streams(given, seen)
        assert seen.now == self.now % self.period, "the time"
        assert seen.request_ready == (self.held < self.unit.depth), "a request is refused, or is not"
        if seen.overdue and not self.abandoned:
            self.error |= self._overdue()                  # said in the same cycle
        self.abandoned = seen.overdue
        assert seen.error & ~TIME == self.error & ~TIME, "causes"
        assert not self.error & TIME or seen.error & TIME, "a time that was too long is not told"
        assert not seen.error & ~self.error & ~self.late, "no time was too long"
        fault, may = self._cycle(given, seen)
        self.error = (0 if given.clear else seen.error) | fault
        self.late = TIME if may else 0
        self.before = given.policy, len(self.waiting), self.waiting[0][1] if self.waiting else 0
        if given.request and seen.request_ready:
            self.waiting.append((given.request, self.now if given.arrived is None else given.arrived))
            self.held += 1
        self.closes |= given.policy.closes
        self.whole &= given.policy.share == 16
        self.share = given.policy.share if self.share in (None, given.policy.share) else -1
        self.now += 1

    def _streams(self, given, seen):
        """What is offered stays until it is taken."""
        for name in ("start", "item", "completion", "counter"):
            value = getattr(seen, name)
            assert name not in self.offered or value == self.offered[name], f"{name} does not stay"
            if name == "start" and value is not None and name not in self.offered:
                self._chosen(value)
            self.offered.pop(name, None)
            if value is not None and not getattr(given, f"{name}_ready"):
                self.offered[name] = value

    def _chosen(self, start):
        """A start that comes up was chosen in the cycle before."""
        policy, count, since = self.before
        self.first = self.now
        assert self.running is None and self.valid(policy), "nothing may be started"
        due = self.due(policy, count, since, self.now - 1)
        if start.training:
            assert policy.training and policy.share and start.count == 0, "no training may be started"
            assert not self.abandoned and not self.error & OVERDUE, "a program is overdue"
            assert self.closes or not (due and policy.priority), "a batch goes first"
            length, ended = self.quantum
            if length < self.period and self.share not in (None, -1):
                assert self.share * (self.now - ended) >= (16 - self.share) * length, "the last quantum is not paid for"
            self.share, self.whole = None, True            # nothing is owed as it begins
        else:
            assert due, "no batch is due"
            most = min(count, policy.batch)
            assert start.count == most or self.closes and 1 <= start.count <= most, "requests of a batch"
            barred = self.abandoned or self.error & OVERDUE or not policy.training or not policy.share
            assert policy.priority or not self.turn or barred or not self.whole, "it is training's turn"
            assert self.among is None or start.count <= self.among, "who comes later is in the next batch"
            self.closes, self.aged, self.among = False, 0, None

    def _overdue(self):
        """A program was, in the cycle before."""
        policy = self.before[0]
        assert self.running is True and 0 < policy.patience <= self.now - 1 - self.started, "it is not overdue"
        return OVERDUE | self._ends(True, self.now - 1)

    def _ends(self, training, now):
        """Something does; the cause if it was too long."""
        length, self.running, self.ended = now - self.started, None, now
        self.busy["training" if training else "inference"] += min(length, self.period - 1)
        self.quantum = (length, now) if training else self.quantum
        self.odd |= length >= self.period
        return TIME * (length >= self.period)

    def _cycle(self, given, seen):
        """What is started, handed over, done and reported; causes of the next cycle, and whether a time may be one."""
        fault, may, policy = 0 if self.valid(given.policy) else POLICY, 0, given.policy
        if seen.item:
            assert self.batch and seen.item == self.batch[self.size - self.missing][0], "a request of the batch"
            self.missing -= given.item_ready
        if seen.completion:
            assert self.reported, "nothing is done"
            tag, arrived, *times = self.reported[0]
            assert seen.completion == (tag, *(time % self.period for time in (arrived, *times))), "a completion"
            if given.completion_ready:
                self.reported.popleft()
                self.held -= 1
                self.latencies.append(times[1] - arrived)
                fault |= TIME * (times[1] - arrived >= self.period)
        if given.done is not None and seen.done_ready:
            if self.running is not None and self.running == given.done:
                assert not self.missing and (self.running or not self.reported), "it is not under way, or another is"
                fault |= self._done(given.done)
            elif not (given.done and self.abandoned):
                fault |= UNASKED
        waits = self.running is True and policy.patience and self.now - self.started >= policy.patience
        self.patience = self.patience + 1 if waits else 0
        assert self.patience <= PATIENT, "it is overdue"
        if seen.start and given.start_ready:
            self.running, self.started, self.missing = seen.start.training, self.now, seen.start.count
            self.size, self.turn = seen.start.count, not self.running
            self.batch = deque(self.waiting.popleft() for _ in range(self.size))
            fault |= TIME * (self.now - self.first >= self.period)
            may = self.now - self.ended >= self.period
            self.odd |= may
        old = self.waiting and self.now - self.waiting[0][1] >= policy.timeout
        beside = self.running is True and policy.closes and old and not self.unit.stamped
        self.aged = self.aged + 1 if beside else 0
        if self.aged == CLOSED and self.among is None:
            self.among = len(self.waiting)
        now_due = self.due(policy, len(self.waiting), self.waiting[0][1] if self.waiting else 0, self.now)
        free = self.running is None and not seen.start and self.valid(policy) and now_due
        self.free = self.free + 1 if free and self.now > self.unit.counters else 0
        assert self.free <= FREE, "what is due is not started"
        return fault, may

    def _done(self, training):
        if training:
            self.counts["quanta"] += 1
        else:
            self.counts[self.size] += 1
            self.reported.extend((request.tag, arrived, self.started, self.now) for request, arrived in self.batch)
        return self._ends(training, self.now)

    def counters(self) -> dict[int, int]:
        """Address -> what it counts, once all is done; of idle cycles the fewest, where no time was too long."""
        unit, most = self.unit, 2 ** self.unit.counter - 1
        lengths = [min(each, self.period - 1) for each in self.latencies]
        found = dict.fromkeys(range(8 + unit.time + unit.depth), 0)
        found |= {0: len(lengths), 1: sum(lengths), 2: max(lengths, default=0), 3: self.busy["inference"],
                  4: self.busy["training"], 6: self.counts["quanta"]}
        found |= {7 + size: count for size, count in Counter(each.bit_length() for each in lengths).items()}
        found |= {7 + unit.time + size: self.counts[size] for size in range(1, unit.depth + 1)}
        if self.started:                                   # what else there was up to the last start
            found[5] = self.started - unit.counters - self.busy["inference"] - self.busy["training"]
        return {address: min(value, most) for address, value in found.items()}
