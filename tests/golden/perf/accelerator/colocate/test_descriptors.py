"""A ring of descriptors before the dispatcher: what is skipped changes nothing, and what is refused by hand."""

import numpy as np
import pytest

from golden.perf.accelerator.colocate import followed
from golden.perf.accelerator.colocate.descriptors import GAP, Reads, Ring
from golden.perf.accelerator.colocate.followed import follow
from golden.perf.accelerator.colocate.plan import Plan
from golden.perf.dispatch.twin import Request
from golden.spec.dispatch import Policy
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
    assert all(each.arrived > arrivals[tag] + READS.latency for tag, each in quick.completions.items())


def test_cycles_of_a_job():
    """Two bursts, since one ends at a multiple of four; the machine is free all the time."""
    every = [(Request(0, 0, tag), None) for tag in range(9)]
    ring, seen = Ring(Reads(10, 32, 32, 5, 4, 2), 8, every, tail=3), []
    for cycle in range(50):
        if ring.given:
            seen.append((cycle, ring.given[0].tag))
        ring.tail = 3 if cycle < 30 else 9
        ring.step(cycle, True)
    first, second = 0 + 2 + 10 + 1, 30 + 2 + 10 + 1
    assert seen == [*((first + tag, tag) for tag in range(3)), (second, 3), *((second + tag - 3, tag) for tag in range(
        4, 8))]
    assert ring.due and ring.head == 8 and GAP == 2


def test_reads_are_the_accelerators():
    system = Accelerator(contexts=2, dispatch=16, dispatch_batch=4, dispatch_ring=True, burst=6, reads=3)
    assert Reads.of(system, 9, 64) == Reads(9, 64, 128, 4, 4, 3)


def test_without_a_ring_nothing_changes():
    assert follow(UNIT, Policy(batch=1, training=False), 100, None, [50, 60]).refused == {}
