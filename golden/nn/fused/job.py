"""Models of one architecture joined into one module."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from ..layers import HBFPLinear
from .linear import FusedLinear

#: Modules without state that treat each sample alone, in operations that round nothing: safe on all models at once.
ELEMENTWISE = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, nn.Threshold, nn.Identity, nn.Flatten, nn.Unflatten,
               nn.MaxPool1d, nn.MaxPool2d)


class Each(nn.Module):
    """A layer that runs model by model, each on its part of the batch."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["layers"][0], name)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Positional tensors are cut along their first dimension; options go to every model."""
        count = len(self.layers)
        parts = [x.chunk(count) if torch.is_tensor(x) else (x,) * count for x in inputs]
        results = [layer(*(part[i] for part in parts), **options) for i, layer in enumerate(self.layers)]
        if torch.is_tensor(results[0]):
            return torch.cat(results)
        return tuple(None if part[0] is None else torch.cat(part) for part in zip(*results, strict=True))


class Job(nn.Module):
    """What :func:`fuse` gives: called with the models' batches behind each other, (models * N, ...).

    Attributes
    ----------
    models : list of Module
        The models, which own the parameters; save and evaluate them alone at any time.
    count : int
        Their number.
    """

    def __init__(self, models: Sequence[nn.Module], net: nn.Module) -> None:
        super().__init__()
        self.models, self.count, self.net = list(models), len(models), net

    def forward(self, inputs: torch.Tensor, shared: bool = False) -> torch.Tensor:
        """(models * N, ...) -> (models * N, ...); ``shared`` gives one batch (N, ...) to every model."""
        if shared:
            inputs = inputs.repeat(self.count, *[1] * (inputs.dim() - 1))
        if len(inputs) % self.count:
            raise ValueError(f"Batch must be a multiple of the {self.count} models, not {len(inputs)}")
        return self.net(inputs)

    def train(self, mode: bool = True) -> nn.Module:
        """Training or evaluation mode, also of the models alone."""
        for model in self.models:
            model.train(mode)
        return super().train(mode)


def fuse(models: Iterable[nn.Module]) -> Job:
    """Join models of one architecture into one job.

    Parameters
    ----------
    models : sequence of Module
        Of one architecture, whose forward treats samples alone. Formats, seeds and modes may differ.
        Optimisers may have been made before or are made after. Do not move the models to another
        device or convert them again while the job lives.

    Returns
    -------
    Job

    Raises
    ------
    ValueError
        If there is no model, or two differ in architecture, or a part cannot run in a job.
    """
    models = list(models)
    if not models:
        raise ValueError("Models must be at least one, not []")
    return Job(models, _merge(models, ""))


def _merge(parts, name):
    """One module for the same part of every model."""
    first = parts[0]
    shapes = [[tuple(p.shape) for p in part.parameters()] for part in parts]
    if any(type(part) is not type(first) for part in parts) or any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"Models must have one architecture; they differ at {name or 'the top'!r}")
    if isinstance(first, nn.Dropout) and first.p:
        raise ValueError(f"Dropout at {name!r} must be golden.nn.fused.SeededDropout to run in a job")
    if getattr(first, "batch_first", True) is not True:
        raise ValueError(f"Layer at {name!r} must have batch_first=True to run in a job")
    if type(first) is HBFPLinear and first.weight.device.type == "cpu":
        return FusedLinear(parts)
    if type(first) in ELEMENTWISE:
        return first
    children = dict(first.named_children())
    own = list(first.parameters(recurse=False)) + list(first.buffers(recurse=False))
    if not children or own:
        return Each(parts)
    merged = copy.copy(first)
    merged._modules = {leaf: _merge([getattr(part, leaf) for part in parts], f"{name}.{leaf}".lstrip("."))
                       for leaf in children}
    return merged
