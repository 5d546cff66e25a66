"""A bound of the latency that can be stated before anything runs; derived in docs/design/07-dispatcher.md."""

from hbfp.checks import check_number, check_range

from ...spec.dispatch import DispatchUnit, Policy

#: Cycles of the dispatcher for each thing that it starts, from the page above.
OVERHEAD = 15


def bound(batch: int, timeout: float, quantum: float, service: float, waiting: int, overhead: float = 0,
          closes: bool = False) -> float:
    """The longest that a request takes from its arrival to its completion, where inference has priority.

    After ``timeout`` the request and all before it are overdue. What runs then ends within a quantum or a batch, and
    from then on batches follow each other until the request is in one.

    Parameters
    ----------
    batch : int
        Requests of a batch.
    timeout, quantum, service : number
        Times of the policy's timeout, of the longest quantum of training and of the longest batch.
    waiting : int
        Requests that wait when it arrives, itself included; at most the depth of the queue.
    overhead : number
        Of the dispatcher, for each thing that it starts.
    closes : bool
        As of the policy: if the timeout is shorter than a quantum and a batch, a batch that closed before the request
        came may go before those that have b of the oldest.
    """
    check_range("Batch", batch, 1, 1 << 40)
    check_range("Waiting", waiting, 0, 1 << 40)
    for name, value in (("Timeout", timeout), ("Quantum", quantum), ("Service", service), ("Overhead", overhead)):
        check_number(name, value, 0)
    batches = -(-waiting // batch)
    if closes and waiting and timeout < quantum + service + 2 * overhead:
        batches = 1 - (1 - waiting) // batch
    return timeout + max(quantum, service) + batches * service + (batches + 1) * overhead


def check(unit: DispatchUnit, policy: Policy, quantum: int, service: int) -> None:
    """Whether a unit's times hold every latency; what they do not hold, it serves in time, but reports as an error.

    Parameters
    ----------
    unit : golden.spec.dispatch.DispatchUnit
    policy : golden.spec.dispatch.Policy
        With priority.
    quantum, service : int
        Cycles of the longest quantum of training and of the longest batch.

    Raises
    ------
    ValueError
        If a request that finds the queue full may take 2^time cycles or more, or a time of the policy does not fit.
    """
    unit.check_policy(policy)
    longest = bound(policy.batch, policy.timeout, quantum, service, unit.depth, OVERHEAD, policy.closes)
    if longest > unit.longest:
        raise ValueError(f"Times of {unit.time} bits end at {unit.longest} cycles, but a request may take "
                         f"{longest:.0f}: timeout {policy.timeout}, quantum {quantum}, batches {service}, "
                         f"queue {unit.depth}")
