"""Products with the semantics of the published research emulator: docs/numerics.md, section 10.

Both operands are rounded once, where they are, by :func:`golden.bfp.emulate`; torch multiplies them in FP32, and
likewise the rounded gradient of the output with each of them. The bias is not rounded.
"""

from collections.abc import Callable
from typing import Any

import torch

from hbfp.format import HBFPFormat

from ..bfp import emulate
from .formats import Formats
from .memory import array
from .once import once_differentiable, unviewed
from .products import as_hbfp


def uniform(shape: torch.Size) -> torch.Tensor:
    """Noise of ``stochastic`` in [-0.5, 0.5), from torch's generator."""
    return torch.rand(shape) - 0.5


@torch.compiler.disable
def rounded(x: torch.Tensor, fmt: HBFPFormat) -> torch.Tensor:
    """``x`` rounded in square tiles of ``x.reshape(x.shape[0], -1)``; ValueError if it is not on the CPU."""
    if x.device.type != "cpu":
        raise ValueError(f"Mode 'emulator' needs CPU tensors with values, not {x.device.type}")
    noise = array(uniform(x.shape)) if fmt.rounding == "stochastic" else None
    return torch.from_numpy(emulate(array(x.contiguous()), fmt.magnitude, fmt.block[0], noise))


class _Rounded(torch.autograd.Function):
    """The operand rounded; its gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fmt: HBFPFormat) -> torch.Tensor:
        return rounded(x, fmt)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return g, None


class _RoundedGradient(torch.autograd.Function):
    """The result as it is; its gradient rounded."""

    @staticmethod
    def forward(ctx: Any, y: torch.Tensor, fmt: HBFPFormat) -> torch.Tensor:
        ctx.fmt = fmt
        return unviewed(y)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return rounded(g, ctx.fmt), None


def product(multiply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], x: torch.Tensor, w: torch.Tensor,
            formats: Formats) -> torch.Tensor:
    """``multiply(x, w)``, one of torch's products, on rounded operands; x is rounded first."""
    x, w = _Rounded.apply(x, formats.x), _Rounded.apply(w, formats.w)
    with as_hbfp():
        y = multiply(x, w)
    return _RoundedGradient.apply(y, formats.g)
