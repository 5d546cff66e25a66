"""What PyTorch answers to each request of a serving network alone, in the accelerator's arithmetic."""

from collections.abc import Sequence

import numpy as np
import torch

from hbfp.system import Accelerator

from .graph import reference


class Alone:
    """A model that is asked one sample at a time.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is.
    accelerator : Accelerator
    samples : sequence of tensor
        What is asked, along the first dimension of each; requests take them in turns.
    """

    def __init__(self, model: torch.nn.Module, accelerator: Accelerator, samples: Sequence[torch.Tensor]) -> None:
        self.model, self.samples = reference(model, accelerator), samples
        self._known: dict[int, list[np.ndarray]] = {}

    def sample(self, request: int) -> list[torch.Tensor]:
        """The inputs of a request: batches of one."""
        place = request % len(self.samples[0])
        return [each[place:place + 1] for each in self.samples]

    def answer(self, request: int) -> list[np.ndarray]:
        """The outputs, float32: batches of one."""
        place = request % len(self.samples[0])
        if place not in self._known:
            with torch.no_grad():
                given = self.model(*self.sample(request))
            self._known[place] = [each.float().numpy() for each in torch.utils._pytree.tree_leaves(given)
                                  if isinstance(each, torch.Tensor)]
        return self._known[place]
