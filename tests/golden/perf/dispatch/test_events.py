"""The simulator of many requests: the published figures, the twin's schedule, the bound.

Covers: golden/perf/dispatch/arrivals.py, golden/perf/dispatch/bound.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from golden.perf.dispatch.arrivals import times
from golden.perf.dispatch.bound import bound
from golden.perf.dispatch.events import simulate
from golden.perf.dispatch.twin import Inputs, Request, Twin
from golden.spec.dispatch import DispatchUnit, Policy, policies
from tests.cases import cover

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
SERVICE, QUANTUM = 400, 60


@pytest.mark.parametrize("batch", [14, 148])
@pytest.mark.parametrize("load", LOADS)
def test_latency_and_training_as_published(batch, load):
    """Batch or timeout of 3 S, quanta of 0.05 S: p99 at most 4.1 S, training at least 0.75 of what is idle."""
    arrivals = times("poisson", 100_000, load * batch, seed=1)
    outcome = simulate(arrivals, Policy(batch=batch, timeout=3), 1.0, 0.05)
    assert outcome.quantile(0.99) <= 4.1
    assert outcome.training / outcome.total >= 0.75 * (1 - load)


def test_greedy_leaves_no_time_for_training():
    arrivals = times("poisson", 100_000, 0.1 * 148, seed=1)
    outcome = simulate(arrivals, Policy(batch=148, timeout=0), 1.0, 0.05)
    assert outcome.training / outcome.total < 0.001
    assert outcome.fills.mean() / 148 < 0.11


@pytest.mark.parametrize("name, load", cover(policies(8, 900), [0.2, 0.9], turns=1))
def test_schedule_is_that_of_the_twin(name, load):
    """Batches of equal fill, at times that differ by the cycles in which the dispatcher counts."""
    policy = policies(8, 900)[name]
    if not policy.inference:
        with pytest.raises(ValueError, match="^Policy must serve requests to be simulated$"):
            simulate(np.zeros(1), policy, SERVICE, QUANTUM)
        return
    arrivals = np.floor(times("poisson", 200, load * 8 / SERVICE, seed=2))
    arrivals = np.maximum.accumulate(arrivals + np.arange(len(arrivals)) * 1.0)    # one a cycle at most
    fills, starts = _twin(arrivals, policy)
    outcome = simulate(arrivals, policy, SERVICE + 10, QUANTUM + 10, depth=64)
    assert abs(fills.mean() / outcome.fills.mean() - 1) < 0.1
    assert abs(starts[-1] - outcome.started[-1]) < 3 * SERVICE


def _twin(arrivals, policy):
    """Fills and starts of the batches of the cycle-true twin."""
    twin, fills, starts = Twin(DispatchUnit(depth=64)), [], []
    ends, kind, place, completed = None, None, 0, 0
    while completed < len(arrivals):
        inputs = Inputs(policy=policy)
        if place < len(arrivals) and arrivals[place] <= twin.now:
            inputs.request = Request(0, 0, place % 65536)
        if ends is not None and twin.now >= ends:
            inputs.done = kind
        out = twin.step(inputs)
        place += bool(inputs.request and out.request_ready)
        if inputs.done is not None and out.done_ready:
            ends = None
        if out.start:
            kind = out.start.training
            ends = out.now + (QUANTUM if kind else SERVICE)
            if not kind:
                fills.append(out.start.count)
                starts.append(out.now)
        completed += out.completion is not None
    return np.array(fills), np.array(starts)


def check_bound(kind, count, batch, load, timeout=2, **policy):
    """No latency is above the bound of its place in the queue, and the bound is not far away."""
    arrivals = times(kind, count, load * batch, seed=3)
    outcome = simulate(arrivals, Policy(batch=batch, timeout=timeout, **policy), 1.0, 0.3)
    waiting = _waiting(outcome, arrivals)
    bounds = np.array([bound(batch, timeout, 0.3, 1.0, n, **policy) for n in range(waiting.max() + 1)])
    assert (outcome.latency <= bounds[waiting] + 1e-6).all()
    assert (outcome.latency / bounds[waiting]).max() > 0.6


@pytest.mark.parametrize("kind", ["poisson", "bursts", "day"])
@pytest.mark.parametrize("batch, load", [(1, 0.5), (14, 0.9), (14, 1.0)])
def test_bound_is_never_exceeded(kind, batch, load):
    check_bound(kind, 50_000, batch, load)


@pytest.mark.parametrize("timeout", [0, 0.1, 1.3, 3])
def test_bound_where_batches_close(timeout):
    check_bound("poisson", 50_000, 14, 0.9, timeout, closes=True)


@pytest.mark.parametrize("load", LOADS)
def test_batches_that_close_have_the_requests_of_a_machine_that_serves_alone(load):
    """So that training makes none later by more than a quantum, as long as no part of a batch waits behind a batch."""
    arrivals, policy = times("poisson", 50_000, load * 14, seed=7), Policy(batch=14, timeout=3, closes=True)
    alone = simulate(arrivals, replace(policy, training=False), 1.0, 0.3)
    beside = simulate(arrivals, policy, 1.0, 0.3)
    assert beside.training > 0 and beside.fills.tolist() == alone.fills.tolist()
    later = beside.latency - alone.latency
    assert -1e-6 <= later.min() and 0.29 < later.max() <= 0.3 + 1e-6
    other = simulate(arrivals, replace(policy, closes=False), 1.0, 0.3)
    assert load == 0.9 or abs(other.latency - alone.latency).max() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("batch, load", [(14, 0.5), (14, 0.9), (148, 0.3), (148, 0.7), (148, 0.9)])
def test_bound_is_never_exceeded_in_ten_million_requests(batch, load):
    check_bound("poisson", 2_000_000, batch, load)


def _waiting(outcome, arrivals):
    """Requests that wait when each arrives, itself included."""
    taken = np.concatenate([[0], np.cumsum(outcome.fills)])
    started = np.searchsorted(outcome.started, arrivals, side="right")
    return np.arange(1, len(arrivals) + 1) - taken[started]


@pytest.mark.parametrize("kind", ["poisson", "bursts", "day"])
def test_arrivals_ascend_at_the_mean_rate(kind):
    found = times(kind, 50_000, 7.0, seed=5)
    assert (np.diff(found) >= 0).all()
    assert found[-1] == pytest.approx(50_000 / 7, rel=0.05)
    assert np.array_equal(found, times(kind, 50_000, 7.0, seed=5))


def test_wrong_kind_of_arrivals():
    with pytest.raises(ValueError, match="^Arrivals must be one of poisson, bursts, day, not 'nope'$"):
        times("nope", 1, 1.0)
