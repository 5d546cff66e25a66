"""The matrix products of a training run with mixed mantissas: what goes into each, and what it gives."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from hbfp.format import HBFPFormat

from ..nn.formats import Formats
from ..nn.replace import convert, hbfp_layers
from ..schedule import MixedMantissa
from . import tasks
from .experiment import RECIPES


@dataclass(frozen=True, eq=False)
class TrainingProduct:
    """One product of a step of training, ``result = x @ w + bias``, as :mod:`golden.nn` computed it.

    Attributes
    ----------
    name : str
        Epoch, step, layer and which product of training it is: ``y``, ``gx`` or ``gw``.
    mantissa : int
        Bits of the mantissas of both operands.
    x, w, result : ndarray of float32
        (M, K), (K, N) and (M, N).
    bias : ndarray of float32, optional
        (N,), of the product ``y``.
    """
    name: str
    mantissa: int
    x: np.ndarray
    w: np.ndarray
    result: np.ndarray
    bias: np.ndarray | None = None


class _Layer:
    """Listens to one layer: what goes in and comes out, forward and backward."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.g: Any = None
        self.gx: Any = None
        layer.register_forward_hook(self._forward)

    def _forward(self, layer, inputs, output):
        self.x, self.y, self.gx = inputs[0].detach().numpy(), output.detach().numpy(), None
        output.register_hook(partial(self._gradient, "g"))
        if inputs[0].requires_grad:
            inputs[0].register_hook(partial(self._gradient, "gx"))

    def _gradient(self, name, value):
        setattr(self, name, value.numpy())

    def products(self, where: str) -> Iterator[TrainingProduct]:
        """Those of the last step."""
        mantissa = self.layer.formats.x.mantissa
        weight, bias = (part.detach().numpy().copy() for part in (self.layer.weight, self.layer.bias))
        yield TrainingProduct(f"{where} y", mantissa, self.x, weight.T, self.y, bias)
        if self.gx is not None:
            yield TrainingProduct(f"{where} gx", mantissa, self.g, weight, self.gx)
        yield TrainingProduct(f"{where} gw", mantissa, self.g.T, self.x, self.layer.weight.grad.numpy())


def products(schedule: MixedMantissa, fmt: HBFPFormat, accumulate: str = "fp32", *, steps: int = 0,
             seed: int = 0) -> Iterator[TrainingProduct]:
    """Train the digits network, and give each product before the weights change; torch's global seed is set.

    Parameters
    ----------
    schedule : MixedMantissa
        Widths of mantissas, and the number of epochs.
    fmt : HBFPFormat
        Format of all roles, whose mantissas the schedule sets; not ``stochastic``: a core draws noise in another order.
    accumulate : str
        As of :func:`golden.matmul.matmul`.
    steps : int
        Steps of each epoch; 0 for all.
    seed : int
        Of the start and of the order of the images.
    """
    x, y, _, _ = tasks.load("digits")
    _, batch, rate = RECIPES["digits"]
    torch.manual_seed(seed)
    net = tasks.network("digits")
    convert(net, Formats(x=fmt, w=fmt, g=fmt, accumulate=accumulate))
    layers = list(hbfp_layers(net))
    watched = [_Layer(layer) for _, layer in layers]
    optimiser = torch.optim.SGD(net.parameters(), rate, momentum=0.9)
    for epoch in range(schedule.epochs):
        schedule.apply(layers, epoch)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1000 * seed + epoch))
        batches = order.split(batch)
        for step, rows in enumerate(batches[:steps or len(batches)]):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            for number, layer in enumerate(watched, 1):
                yield from layer.products(f"epoch {epoch + 1} step {step + 1} layer {number}")
            optimiser.step()
