"""Clients: what they ask of a serving network, where it lies in DRAM, and what PyTorch answers to each alone."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from hbfp.golden.lower.graph import reference
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
    model : torch.nn.Module
        What it was lowered from.
    asked : sequence of tensor
        Samples along their first dimension; requests take them in turns.
    count : int
        Requests.
    """

    def __init__(self, serving: Serving, model: torch.nn.Module, asked: Sequence[torch.Tensor], count: int) -> None:
        self.serving, self.asked, self.count = serving, asked, count
        self.model = reference(model, serving.program.accelerator)
        self._known: dict[int, list[np.ndarray]] = {}

    def sample(self, request: int) -> list[torch.Tensor]:
        """The inputs of a request: batches of one."""
        place = request % len(self.asked[0])
        return [each[place:place + 1] for each in self.asked]

    def program(self, requests: Sequence[int]) -> Program:
        """The serving program with a batch of these requests."""
        return self.serving.batch_of(requests, self.count)

    def put(self, put: Put) -> None:
        """Write the inputs of all requests to DRAM, and to where answers go what no answer is."""
        none = np.full(self.serving.sizes[1] // 4, np.nan, np.float32).tobytes()
        for request in range(self.count):
            into, out = self.serving.addresses(request)
            put(into, self.serving.request(self.sample(request)))
            put(out, none)

    def wanted(self, request: int) -> list[np.ndarray]:
        """What PyTorch answers to a request alone."""
        place = request % len(self.asked[0])
        if place not in self._known:
            with torch.no_grad():
                given = self.model(*self.sample(request))
            self._known[place] = [each.float().numpy() for each in torch.utils._pytree.tree_leaves(given)
                                  if isinstance(each, torch.Tensor)]
        return self._known[place]

    def compare(self, get: Get, requests: Sequence[int]) -> Comparison:
        """Compare the answers in DRAM to these requests."""
        found = Comparison()
        for request in requests:
            given = self.serving.answer(get(self.serving.addresses(request)[1], self.serving.sizes[1]))
            for part, one, wanted in zip(self.serving.outputs, given, self.wanted(request), strict=True):
                found.add(f"request {request}, {part.name}", np.ascontiguousarray(one), np.ascontiguousarray(wanted))
        return found
