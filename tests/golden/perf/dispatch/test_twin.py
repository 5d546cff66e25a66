"""What the dispatcher promises, on its twin: nothing is lost, inference is served, counters are exact and end."""

import random
from collections import Counter as Count
from dataclasses import replace

import pytest

from golden.perf.dispatch.bound import OVERHEAD, bound, check
from golden.perf.dispatch.twin import Inputs, Request, Twin
from golden.spec.dispatch import Cause, Counter, DispatchUnit, Policy

UNIT = DispatchUnit(depth=8, address=8, tag=16, time=16, counter=32)


class Served:
    """A twin with a host that offers a request every so many cycles, and a simple executor.

    Attributes
    ----------
    taken : list of (int, int)
        Tag and time of each request that was taken.
    completions : list of golden.perf.dispatch.twin.Completion
    stuck : bool
        The training program does not yield.
    """

    def __init__(self, unit=UNIT, service=40, quantum=15):
        self.twin, self.service, self.quantum = Twin(unit), service, quantum
        self.left = self.kind = self.offered = self.last = None
        self.taken, self.completions, self.stuck = [], [], False

    def run(self, policy, cycles, every=100_000, clear=False):
        """So many cycles under a policy; the last outputs."""
        for cycle in range(1, cycles + 1):
            if self.offered is None and cycle % every == 0:
                self.offered = Request(0, 0, (len(self.taken) + 1) % 65536)
            inputs = Inputs(request=self.offered, policy=policy, clear=clear)
            if self.left == 0 and not (self.kind and self.stuck):
                inputs.done = self.kind
            out = self.last = self.twin.step(inputs)
            self.left = self.left - 1 if self.left else self.left
            if inputs.done is not None and out.done_ready:
                self.left = None
            if out.start:
                self.kind = out.start.training
                self.left = self.quantum if self.kind else self.service
            if self.offered and out.request_ready:
                self.taken.append((self.offered.tag, out.now))
                self.offered = None
            if out.completion:
                self.completions.append(out.completion)
        return self.last

    def counter(self, address):
        """The value of a counter."""
        return self.twin.tally.values[address]


def overload(cycles):
    served = Served()
    last = served.run(Policy(batch=4), cycles, every=1)
    done = served.taken[:len(served.completions)]
    assert [(each.tag, each.arrived) for each in served.completions] == done
    assert len(served.taken) - len(served.completions) <= UNIT.depth
    assert last.error == 0 and len(served.completions) > cycles / 60


def test_requests_faster_than_service_are_refused_and_none_is_lost():
    overload(20_000)


@pytest.mark.slow
def test_a_million_cycles_of_overload():
    overload(1_000_000)


def test_training_that_never_yields_is_reported_and_inference_goes_on():
    """The executor drops the program when it is told to start a batch; its late end comes after that."""
    served, policy = Served(), Policy(batch=2, timeout=100, patience=50)
    served.run(policy, 400)
    trained = served.counter(Counter.QUANTA)
    served.stuck = True
    last = served.run(policy, 3000, every=30)
    assert trained > 5 and last.overdue and last.error == 1 << Cause.OVERDUE
    assert len(served.completions) > 80
    time, quanta = served.counter(Counter.TRAINING), served.counter(Counter.QUANTA)
    while served.twin.abandoned:    # the late end is taken where the dispatcher looks for one
        served.twin.step(Inputs(done=True, policy=policy))
    last = served.run(policy, 300)
    assert last.error == 1 << Cause.OVERDUE and not last.overdue
    assert served.counter(Counter.TRAINING) == time, "training was started before the error was cleared"
    served.stuck = False
    served.run(policy, 1, clear=True)
    assert served.run(policy, 400).error == 0
    assert served.counter(Counter.QUANTA) > quanta


def test_done_without_a_start_is_reported_and_changes_nothing():
    twin, policy = Twin(UNIT), Policy(batch=2, training=False)
    for _ in range(UNIT.counters + 4):
        twin.step(Inputs(policy=policy))
    for kind in (False, True):
        twin.step(Inputs(done=kind, policy=policy))
        assert twin.step(Inputs(clear=True, policy=policy)).error == 1 << Cause.UNASKED
    assert sum(twin.tally.values) == 0 and twin.state == "CHOOSE"


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"batch": 9}, {"share": 17}])
def test_wrong_policy_starts_nothing(wrong):
    served = Served()
    last = served.run(Policy(**({"batch": 2} | wrong)), 2000, every=10)
    assert len(served.taken) == UNIT.depth and not served.completions
    assert last.error == 1 << Cause.POLICY


def test_counters_are_exact():
    served = Served()
    served.run(Policy(batch=4, timeout=200), 20_000, every=37)
    served.run(Policy(batch=4, inference=False, training=False), 3000)
    latencies = [each.finished - each.arrived for each in served.completions]
    assert [served.counter(n) for n in (Counter.COMPLETED, Counter.LATENCY, Counter.LONGEST)] == [
        len(latencies), sum(latencies), max(latencies)]
    sizes = Count(latency.bit_length() for latency in latencies)
    assert [served.counter(UNIT.histogram(n)) for n in range(UNIT.time + 1)] == [sizes[n] for n in range(UNIT.time + 1)]
    fills = Count(Count(each.started for each in served.completions).values())
    assert [served.counter(UNIT.fill(count)) for count in range(1, 9)] == [fills[count] for count in range(1, 9)]
    times = Counter.INFERENCE, Counter.TRAINING, Counter.IDLE
    assert sum(map(served.counter, times)) == served.twin.since - (UNIT.counters - 1)    # once they were cleared
    assert served.counter(Counter.QUANTA) > 100


def test_counters_end():
    served = Served(DispatchUnit(depth=8, address=8, tag=16, time=16, counter=4))
    served.run(Policy(batch=4), 20_000, every=20)
    assert [served.counter(n) for n in (Counter.COMPLETED, Counter.LATENCY, Counter.LONGEST)] == [15, 15, 15]


def test_training_has_its_share_at_most():
    served = Served()
    served.run(Policy(batch=4, share=4), 40_000)
    assert 0.22 < served.counter(Counter.TRAINING) / served.twin.now <= 0.25


def test_inference_alone_and_training_alone():
    served = Served()
    served.run(Policy(batch=2, training=False), 4000, every=50)
    assert served.completions and not served.counter(Counter.QUANTA)
    served = Served()
    served.run(Policy(batch=2, inference=False), 4000, every=50)
    assert not served.completions and len(served.taken) == UNIT.depth and served.counter(Counter.QUANTA) > 50


def test_idle_cycles_are_counted_however_long():
    """Nothing comes for many periods of the time, and that is no error."""
    unit = DispatchUnit(depth=8, address=8, tag=16, time=8, counter=32)
    served = Served(unit)
    served.run(Policy(batch=1, training=False), 20_000, every=9000)
    last = served.run(Policy(batch=1, training=False), 200)
    assert len(served.completions) == 2 and last.error == 0
    assert sum(map(served.counter, (Counter.INFERENCE, Counter.IDLE))) == served.twin.since - (unit.counters - 1)


@pytest.mark.parametrize("kind, counter", [("latency", Counter.LONGEST), ("quantum", Counter.TRAINING),
                                           ("wait", Counter.IDLE)])
@pytest.mark.parametrize("cycles", [254, 255, 256, 300, 511, 512, 2000])
def test_a_time_that_ports_cannot_tell_is_an_error(kind, counter, cycles):
    """2^time - 1 cycles are told; more count as many, and set the error."""
    twin = Twin(DispatchUnit(depth=8, address=8, tag=16, time=8, counter=32))
    policy = Policy(batch=1, inference=kind == "latency", training=kind != "latency")
    begun, waits = None, kind == "wait"
    for cycle in range(3000):
        reached = begun is not None and cycle - begun >= cycles
        request = Request(0, 0, 1) if kind == "latency" and begun is None and cycle > 100 else None
        out = twin.step(Inputs(request=request, policy=policy, start_ready=reached or not waits,
                               done=policy.training if reached and not waits else None))
        if begun is None and (request or out.start):
            begun = twin.since if waits else cycle
        if reached:
            policy, begun = replace(policy, inference=False, training=False), 10_000
    assert begun == 10_000 and twin.tally.values[counter] == min(cycles, 255)
    assert twin.error == (1 << Cause.TIME if cycles > 255 else 0)


@pytest.mark.parametrize("seed", range(20))
def test_what_the_check_allows_keeps_its_bound_and_has_no_error(seed):
    rng = random.Random(seed)
    unit, batch = DispatchUnit(depth=8, address=8, tag=16, time=9, counter=32), rng.choice((1, 2, 5, 8))
    service, quantum = rng.randint(12 * batch + 4, 120), rng.randint(1, 300)
    policy = Policy(batch=batch, timeout=rng.randint(0, 300), closes=seed % 3 > 0)
    longest = bound(batch, policy.timeout, quantum, service, unit.depth, OVERHEAD, policy.closes)
    if longest > unit.longest:
        with pytest.raises(ValueError, match=rf"^Times of 9 bits end at 511 cycles, but a request may take {longest}: "
                           rf"timeout {policy.timeout}, quantum {quantum}, batches {service}, queue 8$"):
            check(unit, policy, quantum, service)
        return
    check(unit, policy, quantum, service)
    served = Served(unit, service, quantum)
    for every in (1, 20, 700):
        last = served.run(policy, 4000, every)
    assert last.error == 0 and len(served.completions) > 10
    assert served.counter(Counter.LONGEST) <= longest


def test_a_time_of_the_policy_must_fit():
    unit = DispatchUnit(depth=8, time=8)
    for name in ("timeout", "patience"):
        with pytest.raises(ValueError, match=f"^Policy's {name} must be 0 to 255 cycles, not 256$"):
            Twin(unit).step(Inputs(policy=Policy(**{name: 256})))


@pytest.mark.parametrize("time", [4, 49])
def test_width_of_a_time(time):
    with pytest.raises(ValueError, match=f"^Time width must be 5 to 48 bits, not {time}$"):
        DispatchUnit(time=time)
