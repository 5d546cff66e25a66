"""A simulator of many requests, event by event: what the dispatcher does, without its few cycles of overhead.

Times are in any unit; the studies use the time S of a batch. An event is the start of a batch; quanta of training
between two batches are counted, not stepped. :mod:`golden.perf.dispatch.twin` is the dispatcher cycle by cycle, and
tests hold the two together.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hbfp.checks import check_kind, check_number

from ...number.arrays import as_array
from ...spec.dispatch import SHARE_WHOLE, Policy


@dataclass(frozen=True)
class Served:
    """What happened to all requests; times in the unit of the arrivals.

    Attributes
    ----------
    latency : ndarray
        From a request's arrival to its completion, in the order of arrival.
    fills : ndarray of int
        Requests of each batch.
    started : ndarray
        Time at which each batch started.
    training : float
        Time in which training ran, quanta that were under way at the end included.
    total : float
        Time up to the last completion.
    """
    latency: np.ndarray
    fills: np.ndarray
    started: np.ndarray
    training: float
    total: float

    def quantile(self, share: float) -> float:
        """Latency that this share of the requests do not exceed."""
        return float(np.quantile(self.latency, share))


class _Training:
    """Quanta of training: how many fit before a time, each paid for before the next."""

    def __init__(self, policy: Policy, quantum: float) -> None:
        self.runs = policy.training and policy.share > 0 and quantum > 0
        self.quantum, self.done = quantum, 0.0
        self.wait = quantum * (SHARE_WHOLE - policy.share) / policy.share if self.runs else 0.0
        self.ready = 0.0    # the last quantum is paid for

    def one(self, now: float) -> float:
        """Run one quantum if it may run; the time after it."""
        if not self.runs or self.ready > now:
            return now
        self.done += self.quantum
        self.ready = now + self.quantum + self.wait
        return now + self.quantum

    def until(self, now: float, due: float) -> float:
        """Run quanta from ``now`` until a batch is ``due``; the time at which it starts."""
        first = max(now, self.ready)
        if not self.runs or first >= due:
            return max(now, due)
        period = self.quantum + self.wait
        count = -int(-(due - first) // period)
        self.done += count * self.quantum
        end = first + (count - 1) * period + self.quantum
        self.ready = end + self.wait
        return max(end, due)


def simulate(arrivals: np.ndarray, policy: Policy, service: float | Callable[[int], float], quantum: float,
             depth: int | None = None) -> Served:
    """Run all requests to their completion.

    Parameters
    ----------
    arrivals : ndarray
        Ascending times.
    policy : golden.spec.dispatch.Policy
        ``timeout`` in the unit of the times; ``patience`` plays no part.
    service : float or callable
        Time of a batch, or a function of the number of its requests.
    quantum : float
        Time of a quantum of training.
    depth : int, optional
        Requests that the queue holds; more wait outside. None is without end.

    Returns
    -------
    Served

    Raises
    ------
    ValueError
        If the policy serves no requests, or arrivals are no line of numbers.
    """
    check_kind("Policy", policy, Policy)
    check_number("Quantum", quantum, 0)
    arrivals = as_array(arrivals, "Arrivals")
    if arrivals.ndim != 1 or arrivals.dtype.kind not in "fiu":
        raise ValueError(f"Arrivals must be a line of numbers, not {arrivals.dtype} of shape {arrivals.shape}")
    if not policy.inference:
        raise ValueError("Policy must serve requests to be simulated")
    time_of: Callable[[int], float] = service if callable(service) else lambda count: service
    times = arrivals.tolist()
    finished, fills, started = [0.0] * len(times), list[int](), list[float]()
    entered = times if depth is None else list(times)
    training, now, first, turn = _Training(policy, quantum), 0.0, 0, False
    batch, timeout, total = policy.batch, policy.timeout, len(times)
    while first < total:
        if depth is not None:    # a request enters when the one `depth` before it is done
            for place in range(max(first, depth), min(first + batch, total)):
                entered[place] = max(times[place], finished[place - depth])
        last = first + batch - 1
        due = entered[first] + timeout
        if last < total and entered[last] < due:
            due = entered[last]
        closes = max(now, due)
        if turn and not policy.priority:
            now = training.one(now)
        now = training.until(now, due)
        end = first + 1
        while end < total and end <= last and entered[end] <= (closes if policy.closes else now):
            end += 1
        started.append(now)
        fills.append(end - first)
        now += time_of(end - first)
        finished[first:end] = [now] * (end - first)
        first, turn = end, True
    latency = np.array(finished) - np.array(times)
    return Served(latency, np.array(fills), np.array(started), training.done, now)
