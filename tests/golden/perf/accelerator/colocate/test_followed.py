"""Batches and quanta behind a dispatcher: what is skipped changes nothing, and no latency is above its bound.

Covers: golden/perf/accelerator/colocate/plan.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from golden.perf.accelerator.colocate import followed
from golden.perf.accelerator.colocate.dispatched import Quanta
from golden.perf.accelerator.colocate.followed import follow, latencies
from golden.perf.accelerator.colocate.plan import Plan
from golden.spec.dispatch import DispatchUnit, Policy
from tests.cases import sweep

UNIT = DispatchUnit(depth=8, tag=32)


def drawn(seed):
    """A policy, times, arrivals and doorbells."""
    rng = np.random.default_rng(seed)
    count, service = int(rng.integers(1, 6)), int(rng.integers(80, 600))
    on = rng.integers(60, 300, count)
    training = Quanta(on, on + rng.integers(5, 60, count)) if seed % 5 else None
    policy = Policy(batch=int(rng.integers(1, 5)), timeout=int(rng.integers(0, 1500)), training=training is not None,
                    closes=seed // 2 % 2 > 0)
    arrivals = np.cumsum(rng.integers(0, int(3 * service / policy.batch), 40)) + 500
    bells = None if seed % 2 else np.cumsum(rng.integers(int(training.anew.sum()) + 3000, 9000, 9)).tolist() \
        if training else None
    return policy, service, training, arrivals.tolist(), bells


@pytest.mark.parametrize("seed", sweep(3, range(10)))
def test_cycles_that_are_skipped_change_nothing(seed, monkeypatch):
    policy, service, training, arrivals, bells = drawn(seed)
    options = {"rung": bells, "again": 37}
    quick = follow(UNIT, policy, service, training, arrivals, **options)
    monkeypatch.setattr(followed._Follower, "_skip", lambda self: None)
    assert follow(UNIT, policy, service, training, arrivals, **options) == quick
    batches = [each for each in quick.turns if each.piece < 0]
    assert [tag for each in batches for tag in each.requests] == list(range(len(arrivals)))
    assert all(each.ran < service for each in batches) and len(batches) >= len(arrivals) / policy.batch
    if training is not None:
        pieces = [each.piece for each in quick.turns if each.piece >= 0]
        assert pieces == [number % len(training.on) for number in range(len(pieces))] and (pieces or bells)


@pytest.mark.parametrize("seed", range(6))
def test_no_latency_above_its_bound(seed):
    """Of requests that found a place in the queue: as many as it holds wait, at most."""
    policy, service, training, arrivals, _ = drawn(seed)
    plan = Plan(UNIT, policy, service, np.zeros(0, np.int64), training, None)
    found = follow(UNIT, policy, service, training, arrivals, again=100)
    assert latencies(found.completions).max() <= plan.bound(UNIT.depth)
    for tag, each in found.completions.items():
        waiting = sum(other.arrived <= each.arrived < other.started for other in found.completions.values())
        assert each.finished - each.arrived <= plan.bound(waiting), tag


@pytest.mark.parametrize("seed", sweep(3, range(12)))
def test_training_makes_no_request_later_by_more_than_a_quantum(seed):
    """Batches that close have the requests that they have without training."""
    policy, service, _, arrivals, _ = drawn(seed)
    training = Quanta(np.array([50, 120]), np.array([70, 160]))
    policy = replace(policy, timeout=4 * service + seed, training=True, closes=True)
    unit = DispatchUnit(depth=64, tag=32)
    beside = follow(unit, policy, service, training, arrivals, again=100)
    alone = follow(unit, replace(policy, training=False), service, None, arrivals)
    assert [each.requests for each in beside.turns if each.piece < 0] == [each.requests for each in alone.turns]
    later = latencies(beside.completions) - latencies(alone.completions)
    assert 0 <= later.min() and 0 < later.max() <= 160 + 9
    assert len(beside.turns) > len(alone.turns)


def test_doorbells():
    """A step begins behind its doorbell; without another there are no further ones."""
    policy, training = Policy(batch=1), Quanta(np.array([100, 90]), np.array([140, 120]))
    found = follow(UNIT, policy, 200, training, [1000, 5000, 9000], rung=[2000, 6000])
    steps = [each for each in found.turns if each.piece == 0]
    assert [each.started > bell for each, bell in zip(steps, (2000, 6000), strict=True)] == [True, True]
    assert found.rung == [2000, 6000] and len(found.turns) == 3 + 4


@pytest.mark.slow
def test_tags_of_two_clients():
    """Ten thousand requests of two clients, at random: each tag comes back once, with its own arrival, in order."""
    rng = np.random.default_rng(9)
    clients = rng.integers(0, 2, 10_000)
    arrivals = np.cumsum(rng.integers(1, 260, 10_000)) + 500
    training = Quanta(np.array([100, 90]), np.array([140, 120]))
    found = follow(DispatchUnit(depth=64, tag=32), Policy(batch=4, timeout=900), 400, training, arrivals.tolist())
    assert list(found.completions) == list(range(10_000))
    for client in (0, 1):
        own = [found.completions[tag] for tag in np.flatnonzero(clients == client).tolist()]
        assert [each.arrived for each in own] == arrivals[clients == client].tolist()
        assert [each.finished for each in own] == sorted(each.finished for each in own)
