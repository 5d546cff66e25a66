"""Products of a module's own code in a job."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from ..formats import Formats
from ..scope import OwnProduct, Scope
from .each import Each


class Together:
    """Runs the own code of a module that is a :class:`~golden.nn.scope.Scope` once for all models, or model by model.

    Once where it gives the bits of the models alone: it has no products, or formats are equal at the moment, nothing is
    drawn, and blocks are parts of rows, into which nothing of another model can come. Whether it has products shows
    when it first runs: at one that has to be model by model, all is put back as it was before.

    Parameters
    ----------
    layers : sequence of Scope
        The same module of each model.
    merged : Scope
        The first one's copy, whose parts are those of the job.
    each : Each
        The models' own.
    """

    def __init__(self, layers: Sequence[Scope], merged: Scope, each: Each) -> None:
        self.layers, self.merged, self.each, self.multiplies = list(layers), merged, each, False

    def __call__(self, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """As :meth:`golden.nn.scope.Scope.hbfp_forward`."""
        first, *others = [(_now(layer), layer.hbfp_strict) for layer in self.layers]
        if all(other == first for other in others) and _exact(first[0]):
            self.merged.hbfp_strict = first[1]
            return self._once(first[0], False, forward, args, kwargs)
        formats = next((own for own, _ in (first, *others) if own is not None), None)
        if self.multiplies or formats is None:
            return self.each(*args, **kwargs)
        before = _Before(self.layers, (args, kwargs))
        try:
            return self._once(formats.nearest(), True, forward, args, kwargs)
        except OwnProduct:
            self.multiplies = True
            before.restore()
        return self.each(*args, **kwargs)

    def _once(self, formats, apart, forward, args, kwargs):
        self.merged._hbfp_formats = self.merged._hbfp_nearest = formats
        self.merged.hbfp_apart = apart
        return Scope.hbfp_forward(self.merged, forward, args, kwargs)


class _Before:
    """What a forward pass may change: buffers, torch's generator; and its inputs."""

    def __init__(self, layers, inputs):
        self.buffers = [(buffer, buffer.clone()) for layer in layers for buffer in layer.buffers()]
        self.generator = torch.get_rng_state()
        self.inputs = [(x, x._version) for x in _pytree.tree_leaves(inputs) if torch.is_tensor(x)]

    def restore(self):
        """Put all back."""
        if any(x._version != version for x, version in self.inputs):
            raise RuntimeError("A module of a job must not change its input in place before it multiplies in formats "
                               "that differ between the models")
        torch.set_rng_state(self.generator)
        for buffer, value in self.buffers:
            buffer.copy_(value)


def _now(layer):
    """Formats of a call made now, or None for FP32."""
    return layer._hbfp_formats if layer.training else layer._hbfp_nearest


def _exact(formats: Formats | None) -> bool:
    """Whether a product has the same bits beside those of other models."""
    return formats is None or (not formats.stochastic and formats.mode == "hbfp" and formats.order == "block"
                               and not any(fmt.square for fmt in (formats.x, formats.w, formats.g)))
