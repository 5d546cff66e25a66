"""Training in the formats that HBFP is compared with: MXFP8, MXFP6 and INT8, with straight-through gradients.

Each operand of a layer's products is rounded once, and the products share it: the input, the weight, and the gradient
of the output. torch multiplies them in FP32. Blocks of MX run along the features or channels of a tensor, which is the
reduction dimension of ``y`` and of the input's gradient.
"""

from typing import Any

import torch
from torch.nn.utils import parametrize

from .quantisers import NAMES, quantised

#: Layers whose products are rounded.
LAYERS = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


def _rounded(x, name, axis):
    return torch.from_numpy(quantised(x.detach().contiguous().numpy(), name, axis=axis))


class _StraightThrough(torch.autograd.Function):
    """The rounded numbers; the gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, name: str, axis: int) -> torch.Tensor:
        return _rounded(x, name, axis)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return g, None, None


class _RoundedGradient(torch.autograd.Function):
    """The numbers as they are; the gradient rounded."""

    @staticmethod
    def forward(ctx: Any, y: torch.Tensor, name: str, axis: int) -> torch.Tensor:
        ctx.options = name, axis
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return _rounded(g, *ctx.options), None, None


class _Weight(torch.nn.Module):
    """A weight as products take it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, w: torch.Tensor) -> torch.Tensor:
        return _StraightThrough.apply(w, self.name, 1)


def imitate(module: torch.nn.Module, name: str) -> torch.nn.Module:
    """Let every layer of :data:`LAYERS` of a model train in a format of :mod:`golden.study.quantisers`, in place.

    Parameters
    ----------
    module : torch.nn.Module
        The model, float32 on the CPU, not converted. Weights keep their parameters, under ``parametrizations``.
    name : str
        One of :data:`golden.study.quantisers.NAMES`.

    Returns
    -------
    torch.nn.Module
        ``module``.

    Raises
    ------
    ValueError
        If the format is unknown, or a layer has one already or is of a subclass of these types; names the layer.
    """
    if name not in NAMES:
        raise ValueError(f"Format must be one of {', '.join(NAMES)}, not {name!r}")
    chosen = [(where, layer) for where, layer in module.named_modules() if isinstance(layer, LAYERS)]
    for where, layer in chosen:
        if type(layer) not in LAYERS:
            raise ValueError(f"Layer {where!r} must be one of torch's own, without a format, not "
                             f"{type(layer).__name__}")
    for _, layer in chosen:
        axis = -1 if isinstance(layer, torch.nn.Linear) else 1 - layer.weight.dim()
        parametrize.register_parametrization(layer, "weight", _Weight(name), unsafe=True)
        layer.register_forward_pre_hook(lambda _, given, axis=axis: (_StraightThrough.apply(given[0], name, axis),))
        layer.register_forward_hook(lambda _, given, y, axis=axis: _RoundedGradient.apply(y, name, axis))
    return module
