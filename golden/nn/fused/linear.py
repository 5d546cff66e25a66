"""The same linear layer of several models, in one call."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from ...fast import kernels
from ..layers import HBFPLinear
from ..ops import row_sums
from ..products import Operand, check_float32, product


class _StackedLinear(torch.autograd.Function):
    """``y = x w^T + b`` of every model: x (models, N, I), w (models, O, I), b (models, O), and the gradients."""

    @staticmethod
    def forward(ctx, x, layer, *parameters):
        w = layer.stacked
        ctx.save_for_backward(x, *parameters)
        ctx.layer = layer
        y, ctx.operands = layer.products(x, w.transpose(1, 2), "y", None)
        return y if layer.biases is None else y + layer.biases[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, *parameters = ctx.saved_tensors
        layer, gx, gw, gb = ctx.layer, None, (None,) * ctx.layer.count, ()
        g = g.contiguous()
        tops = [None] * layer.count
        if ctx.needs_input_grad[0]:
            gx, tops = layer.products(g, layer.stacked, "gx", ctx.operands, tops)
        if any(ctx.needs_input_grad[2:]):
            gw, _ = layer.products(g.transpose(1, 2), x, "gw", ctx.operands, tops)
            gw = gw.unbind(0)
            gb = () if layer.biases is None else row_sums(g, layer.count).unbind(0)
        elif layer.biases is not None:
            gb = (None,) * layer.count
        return gx, None, *gw, *gb


class FusedLinear(nn.Module):
    """The same linear layer of several models, in one call.

    Parameters
    ----------
    layers : sequence of HBFPLinear
        Of equal shape; each with its own formats and noise. Their weights move into one tensor.
    """

    def __init__(self, layers: Sequence[HBFPLinear]) -> None:
        super().__init__()
        self.layers, self.count = list(layers), len(layers)
        self.stacked = torch.stack([layer.weight.detach() for layer in layers])
        self.biases = None if layers[0].bias is None else torch.stack([layer.bias.detach() for layer in layers])
        for i, layer in enumerate(layers):
            layer.weight.data = self.stacked[i]
            if self.biases is not None:
                layer.bias.data = self.biases[i]
        self.parameters_of_models = [layer.weight for layer in layers]
        if self.biases is not None:
            self.parameters_of_models += [layer.bias for layer in layers]
        self._formats = None

    def _refresh(self):
        """Formats as the kernel reads them, made again when a schedule has changed one."""
        formats = [layer.formats for layer in self.layers]
        if formats == self._formats:
            return
        self._formats = formats
        roles = {"y": ("x", "w"), "gx": ("g", "w"), "gw": ("g", "x")}
        self.kernel = {name: kernels.StackFormats(*([getattr(f, role) for f in formats] for role in pair))
                       for name, pair in roles.items()}
        # 2: models that only the general way computes.
        self.skip = np.array([2 * (f.stochastic or f.order != "block" or f.accumulate != "fp32"
                                   or kernels.library() is None) for f in formats], np.int32)

    def products(self, a: torch.Tensor, b: torch.Tensor, which: str, operands: Any,
                 tops: list[Any] | None = None) -> tuple[torch.Tensor, list[Any]]:
        """One of the three products for all models; the general way where the quick one does not serve."""
        a, b = a.detach(), b.detach()
        y, done = kernels.stack_product(a.numpy(), b.numpy(), self.kernel[which], self.skip)
        y = torch.from_numpy(y)
        made: list[Any] = list(tops or [None] * self.count) if which != "y" else [None] * self.count
        for i in np.flatnonzero(done != 1):
            layer, formats = self.layers[i], self.layers[i].formats
            if which == "y":
                made[i] = Operand(a[i], formats.x, layer.stream), Operand(b[i].T, formats.w, layer.stream)
                y[i] = product(made[i][0].along(-1), made[i][1].along(-1), formats, turn_b=True)
                continue
            x, w = operands[i] or (None, None)
            if which == "gx":
                made[i] = Operand(a[i], formats.g, layer.stream)
                w = w or Operand(b[i], formats.w, layer.stream)
                y[i] = product(made[i].along(-1), w.along(0), formats)
            else:
                top = made[i] or Operand(a[i].T, formats.g, layer.stream)
                x = x or Operand(b[i], formats.x, layer.stream)
                y[i] = product(top.along(0), x.along(0), formats, turn_a=True)
        return y, made

    @torch.compiler.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, ..., I) -> (models * N, ..., O)."""
        check_float32(input=x)
        self._refresh()
        rows = x.reshape(self.count, -1, x.shape[-1])
        y = _StackedLinear.apply(rows.contiguous(), self, *self.parameters_of_models)
        return y.reshape(*x.shape[:-1], y.shape[-1])
