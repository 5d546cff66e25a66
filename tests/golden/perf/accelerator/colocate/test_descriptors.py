"""A ring of descriptors before the dispatcher: what is skipped changes nothing, and what is refused by hand."""

from dataclasses import replace

import numpy as np
import pytest

from golden.perf.accelerator.colocate import followed
from golden.perf.accelerator.colocate.descriptors import GAP, Reads, Ring
from golden.perf.accelerator.colocate.dispatched import Quanta
from golden.perf.accelerator.colocate.followed import follow, latencies
from golden.perf.accelerator.colocate.plan import Plan
from golden.perf.dispatch.twin import Request
from golden.spec.dispatch import DispatchUnit, Policy
from hbfp.isa.descriptors import Refusal
from hbfp.system import Accelerator
from tests.cases import sweep

from .test_followed import UNIT, drawn

READS = Reads(20, 32, 32, 4, 16, 8)


def kinds(seed, count):
    """Why descriptors are refused; most are not."""
    rng = np.random.default_rng(seed)
    return [Refusal(int(rng.integers(1, 6))) if rng.random() < 0.2 else None for _ in range(count)]


@pytest.mark.parametrize("seed", sweep(2, range(10)))
def test_cycles_that_are_skipped_change_nothing(seed, monkeypatch):
    policy, service, training, arrivals, bells = drawn(seed)
    options = {"rung": bells, "again": 37, "reads": READS, "kinds": kinds(seed, len(arrivals))}
    if seed % 3 == 0:    # the host is slow
        options["taken"] = [7000 + 900 * number for number in range(len(arrivals))]
    quick = follow(UNIT, policy, service, training, arrivals, **options)
    monkeypatch.setattr(followed._Follower, "_skip", lambda self: None)
    assert follow(UNIT, policy, service, training, arrivals, **options) == quick
    good = [tag for tag, why in enumerate(options["kinds"]) if why is None]
    assert list(quick.completions) == good
    assert {tag: why for tag, (_, why) in quick.refused.items()} == {
        tag: why for tag, why in enumerate(options["kinds"]) if why is not None}
    plan = Plan(UNIT, policy, service, np.zeros(0, np.int64), training, None, reading=READS.longest)
    assert max(each.finished - each.arrived for each in quick.completions.values()) <= plan.bound(UNIT.depth)
    assert all(each.arrived > arrivals[tag] for tag, each in quick.completions.items())


def test_cycles_of_a_job():
    """Two bursts, since one ends at a multiple of four; the machine is free all the time. One is stamped a cycle."""
    every = [(Request(0, 0, tag), None) for tag in range(9)]
    ring, seen, stamps = Ring(Reads(10, 32, 32, 5, 4, 2), 8, every, tail=3), [], []
    for cycle in range(56):
        if ring.given:
            seen.append((cycle, ring.given[0].tag))
            stamps.append(ring.stamps[0])
        ring.tail = 3 if cycle < 30 else 9
        ring.step(cycle, True)
    first, second = 3 + 2 + 10 + 1, 36 + 2 + 10 + 1
    assert seen == [*((first + tag, tag) for tag in range(3)), (second, 3), *((second + tag - 3, tag) for tag in range(
        4, 8))]
    assert stamps == [0, 1, 2, *range(30, 35)]
    assert ring.due and ring.head == 8 and GAP == 2


@pytest.mark.parametrize("seed", sweep(3, range(12)))
def test_training_makes_no_descriptor_later_by_more_than_a_quantum(seed):
    """A descriptor counts from when the host tells of it, and is in the batch in which it is without training."""
    policy, service, _, arrivals, _ = drawn(seed)
    training = Quanta(np.array([50, 120]), np.array([70, 160]))
    policy = replace(policy, timeout=4 * service + seed, training=True, closes=True)
    unit, options = DispatchUnit(depth=64, tag=32), {"reads": READS, "kinds": kinds(seed, len(arrivals))}
    beside = follow(unit, policy, service, training, arrivals, again=100, **options)
    alone = follow(unit, replace(policy, training=False), service, None, arrivals, **options)
    assert [each.requests for each in beside.turns if each.piece < 0] == [each.requests for each in alone.turns]
    later = latencies(beside.completions) - latencies(alone.completions)
    plan = Plan(unit, policy, service, np.zeros(0, np.int64), training, None, reading=READS.longest)
    assert 0 <= later.min() and 0 < later.max() <= plan.delay


def test_reads_are_the_accelerators():
    system = Accelerator(contexts=2, dispatch=16, dispatch_batch=4, dispatch_ring=True, burst=6, reads=3)
    assert Reads.of(system, 9, 64) == Reads(9, 64, 128, 4, 4, 3)


def test_without_a_ring_nothing_changes():
    assert follow(UNIT, Policy(batch=1, training=False), 100, None, [50, 60]).refused == {}
