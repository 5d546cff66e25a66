"""Clients: what they ask of a serving network, where it lies in DRAM, and what PyTorch answers to each alone."""

from collections.abc import Callable, Sequence

import numpy as np

from hbfp.golden.lower.alone import Alone
from hbfp.golden.lower.serving import Serving
from hbfp.program import Program

from ..bench.comparison import Comparison

#: Reads bytes of context 0's DRAM, from an address on; writes them.
Get = Callable[[int, int], bytes]
Put = Callable[[int, bytes], None]


class Clients:
    """Requests, each with a place of its own for its input and its output.

    Parameters
    ----------
    serving : Serving
    alone : Alone
        PyTorch, and what clients ask: requests take its samples in turns.
    count : int
        Requests.
    """

    def __init__(self, serving: Serving, alone: Alone, count: int) -> None:
        self.serving, self.alone, self.count = serving, alone, count

    def program(self, requests: Sequence[int]) -> Program:
        """The serving program with a batch of these requests."""
        return self.serving.batch_of(requests, self.count)

    def put(self, put: Put) -> None:
        """Write the inputs of all requests to DRAM, and to where answers go what no answer is."""
        none = np.full(self.serving.sizes[1] // 4, np.nan, np.float32).tobytes()
        for request in range(self.count):
            into, out = self.serving.addresses(request)
            put(into, self.serving.request(self.alone.sample(request)))
            put(out, none)

    def wanted(self, request: int) -> list[np.ndarray]:
        """What PyTorch answers to a request alone."""
        return self.alone.answer(request)

    def compare(self, get: Get, requests: Sequence[int]) -> Comparison:
        """Compare the answers in DRAM to these requests."""
        found = Comparison()
        for request in requests:
            given = self.serving.answer(get(self.serving.addresses(request)[1], self.serving.sizes[1]))
            for part, one, wanted in zip(self.serving.outputs, given, self.wanted(request), strict=True):
                found.add(f"request {request}, {part.name}", np.ascontiguousarray(one), np.ascontiguousarray(wanted))
        return found
