"""Which quicker ways of computing have the bits of torch's own on this machine.

In what order a library adds depends on the processor, on its version and on the sizes, but not on the numbers. So a way
that gives equal bits on random numbers of given sizes gives them on all: another order of rounding would show.
"""

from collections.abc import Callable, Hashable
from typing import Any

import torch

_FOUND: dict[Hashable, bool] = {}


def proven(key: Hashable, proof: Callable[[torch.Generator], bool]) -> bool:
    """Whether ``proof`` holds, asked once for each ``key`` and number of torch's threads.

    Parameters
    ----------
    key : hashable
        What is compared, with all its sizes.
    proof : callable
        Takes a generator for random numbers; whether the bits are equal.
    """
    key = key, torch.get_num_threads()
    found = _FOUND.get(key)
    if found is None:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            found = _FOUND[key] = proof(torch.Generator().manual_seed(len(_FOUND)))
    return found


def same_bits(ours: torch.Tensor, theirs: Any) -> bool:
    """Whether a float32 tensor has the bits of another, or of the stack of several."""
    theirs = theirs if torch.is_tensor(theirs) else torch.stack(list(theirs))
    return torch.equal(ours.contiguous().view(torch.int32), theirs.contiguous().view(torch.int32))
