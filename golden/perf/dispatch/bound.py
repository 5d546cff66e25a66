"""A bound of the latency that can be stated before anything runs; derived in docs/design/07-dispatcher.md."""


def bound(batch: int, timeout: float, quantum: float, service: float, waiting: int, overhead: float = 0) -> float:
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
    """
    batches = -(-waiting // batch)
    return timeout + max(quantum, service) + batches * service + (batches + 1) * overhead
