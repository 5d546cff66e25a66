"""Routes of a round through the copies of a banyan: :mod:`golden.perf.pods.interconnect` says where ways meet."""

import numpy as np
from numba import njit


@njit(cache=True)
def find(links: np.ndarray, source: int, target: int) -> int:
    """The first copy with a free way, or -1; ``links`` (copies, stages, ports) has the source on each link, or -1."""
    copies, stages = links.shape[0], links.shape[1]
    if copies == 0:
        return 0
    for copy in range(copies):
        free = True
        for stage in range(stages):
            low = stages - stage    # bits of the source that are left after this stage
            owner = links[copy, stage, target >> low << low | source & ((1 << low) - 1)]
            if owner >= 0 and owner != source:
                free = False
                break
        if free:
            return copy
    return -1


@njit(cache=True)
def take(links: np.ndarray, copy: int, source: int, target: int) -> None:
    """Occupy the way that :func:`find` found."""
    stages = links.shape[1]
    for stage in range(stages if links.shape[0] else 0):
        low = stages - stage
        links[copy, stage, target >> low << low | source & ((1 << low) - 1)] = source
