"""The three matrix products of training as torch autograd functions: docs/numerics.md, section 9."""

from typing import Any

import torch

from ..fast import kernels
from ..noise import Stream
from . import again, converted
from .formats import Formats
from .memory import array
from .pairs import Alike, Matmul
from .placed import by_role
from .products import Operand, check_float32, product
from .side import here


class Linear(torch.autograd.Function):
    """``y = x w^T``; ``gx = g w``; ``gw = g^T x``, each in HBFP."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, formats: Formats, stream: Stream | None,
                grads: bool = False) -> torch.Tensor:
        """``x`` (M, I), ``w`` (O, I) -> (M, O); ``grads``: gradients may be asked for."""
        of_x, of_w, of_g = by_role(stream)
        needs_x, needs_w = (grads and need for need in ctx.needs_input_grad[:2])
        operands = Operand(x, formats.x, of_x, both=needs_w), Operand(w, formats.w, of_w, both=needs_x)
        ctx.save_for_backward(x, w)                    # for torch's check that nobody changed them meanwhile
        ctx.operands, ctx.formats, ctx.stream = operands, formats, of_g
        ctx.run = again.rule(formats, lambda a, b: Linear.apply(a, b, formats, None, True))
        return again.made(lambda: product(operands[0].along(-1), operands[1].along(-1), formats, turn_b=True), x,
                          lambda: (len(x), len(w)))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        _ = ctx.saved_tensors
        (x, w), formats = ctx.operands, ctx.formats
        g = Operand(g, formats.g, ctx.stream, both=all(ctx.needs_input_grad[:2]))
        gx = product(g.along(-1), w.along(0), formats) if ctx.needs_input_grad[0] else None
        gw = product(g.along(0), x.along(0), formats, turn_a=True) if ctx.needs_input_grad[1] else None
        return gx, gw, None, None, None


class AddBias(torch.autograd.Function):
    """``y + bias`` along the last dimension; the gradient of the bias is summed over the rows in ascending order."""

    @staticmethod
    def forward(y: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """``y`` (rows, O), ``bias`` (O)."""
        return y + bias

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``y`` and ``bias``."""
        return g, _RowSums.apply(g) if ctx.needs_input_grad[1] else None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], y: torch.Tensor,
             bias: torch.Tensor) -> tuple[torch.Tensor, int]:
        """The loop."""
        return again.looped(AddBias.apply, info.batch_size, in_dims, y, bias)


class _RowSums(torch.autograd.Function):
    """:func:`row_sums`; the gradient of each row is that of the sum."""

    @staticmethod
    def forward(g):
        return row_sums(g)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.rows = len(inputs[0])

    @staticmethod
    def backward(ctx, h):
        return AddBias.apply(h.new_zeros(ctx.rows, *h.shape), h)

    @staticmethod
    def vmap(info, in_dims, g):
        return again.looped(_RowSums.apply, info.batch_size, in_dims, g)


def row_sums(g: torch.Tensor) -> torch.Tensor:
    """Sums over the rows: (rows, O) -> (O); with side arithmetic torch's operation, which has them."""
    if here():
        return g.sum(0)
    if converted.serves(g):
        return converted.row_sums(g)
    return torch.from_numpy(kernels.row_sums(array(g)[None])[0]) if g.device.type == "cpu" else g.sum(0)


def check_linear(x: torch.Tensor, w: torch.Tensor) -> None:
    """Raise ``TypeError`` or ``ValueError`` with one line unless x (..., I) and w (O, I) are float32."""
    check_float32(input=x, weight=w)
    if x.shape[-1:] != w.shape[1:] or w.dim() != 2:
        raise ValueError(f"Shapes of input and weight must be (..., I) and (O, I), not {tuple(x.shape)} and "
                         f"{tuple(w.shape)}")


def check_matmul(a: torch.Tensor, b: torch.Tensor) -> None:
    """Raise ``TypeError`` or ``ValueError`` with one line unless a (..., M, K) and b (..., K, N) are float32."""
    check_float32(a=a, b=b)
    if a.dim() < 2 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"Shapes of a and b must be (..., M, K) and (..., K, N), not {tuple(a.shape)} and "
                         f"{tuple(b.shape)}")


@torch.compiler.disable
def linear(x: torch.Tensor, w: torch.Tensor, formats: Formats, stream: Stream | None = None,
           bias: torch.Tensor | None = None) -> torch.Tensor:
    """``x @ w.T + bias`` of x (..., I) and w (O, I); see :class:`Linear` and :class:`AddBias`."""
    check_linear(x, w)
    rows = x.reshape(-1, x.shape[-1]) if x.numel() else x.reshape(x.shape[:-1].numel(), x.shape[-1])
    y = Linear.apply(rows, w, formats, stream, torch.is_grad_enabled())
    if bias is not None:
        y = AddBias.apply(y, bias)
    return y if x.dim() == 2 else y.reshape(*x.shape[:-1], w.shape[0])


@torch.compiler.disable
def matmul(a: torch.Tensor, b: torch.Tensor, formats: Formats, stream: Stream | None = None) -> torch.Tensor:
    """``a @ b`` of a (..., M, K) and b (..., K, N) with equal leading dimensions: :class:`golden.nn.pairs.Matmul`."""
    check_matmul(a, b)
    y = Matmul.apply(*(t.flatten(0, -3) if t.dim() > 2 else t[None] for t in (a, b)),
                     Alike(formats, stream, torch.is_grad_enabled()))
    return y.reshape(*a.shape[:-1], b.shape[-1])
