"""Convolution, normalisation and embedding of several models, in one node of autograd for each layer.

Each model's own operation of torch runs on its part of the batch, so the bits are those of the model alone; what is
saved is what torch does around it.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from .. import conv
from ..record import note
from ..state import runs_once
from .each import Each, Fused
from .loop import Loop, Operation
from .parameters import Parameters

_ATEN = torch.ops.aten


class Looped(Fused):
    """A layer with ``weight`` and ``bias`` that :class:`Loop` runs; what its :meth:`serves` refuses goes by parts."""

    def __init__(self, layers: Sequence[nn.Module], parameters: Parameters) -> None:
        super().__init__(layers, parameters)
        self.weights, self.biases = (parameters.stack(getattr(layers[0], name, None)) for name in ("weight", "bias"))
        self.each = Each(layers, parameters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, ...) -> (models * N, ...)."""
        if not all(map(self.serves, self.layers)):
            return self.each(x)
        return Loop.apply(x, self.weights, self.biases, [self.operation(layer) for layer in self.layers])

    def serves(self, layer: Any) -> bool:
        """Whether a layer is one that :meth:`operation` knows."""
        return True

    def operation(self, layer: Any) -> Operation:
        """What runs for one model."""
        raise NotImplementedError


class FusedConvolution(Looped):
    """``torch.nn`` convolutions in FP32, also transposed, of one to three dimensions."""

    def serves(self, layer: Any) -> bool:
        return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)

    def operation(self, layer: Any) -> Operation:
        options = (layer.stride, layer.padding, layer.dilation, layer.transposed, layer.output_padding, layer.groups)

        def forward(x, weight, bias):
            return torch.convolution(x, weight, bias, *options), None

        def backward(_, g, x, weight, wanted):
            sizes = [weight.shape[1] * layer.groups if layer.transposed else weight.shape[0]]
            return _ATEN.convolution_backward(g, x, weight, sizes if wanted[2] else None, *options, wanted)
        return Operation(forward, backward)


class FusedConv2d(Looped):
    """:class:`~golden.nn.HBFPConv2d`; each model with its own formats and noise."""

    def serves(self, layer: Any) -> bool:
        formats = layer.hbfp_now
        return (layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
                and formats.mode == "hbfp" and (runs_once() or not formats.stochastic))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, C, H, W) -> (models * N, O, OH, OW)."""
        if x.dim() != 4 or x.dtype != torch.float32 or x.shape[1] != self.layers[0].in_channels:
            return self.each(x)
        return super().forward(x)

    def operation(self, layer: Any) -> Operation:
        options = (layer.stride, layer.padding, layer.dilation, layer.hbfp_now, layer.stream)

        def forward(x, weight, bias):
            ctx = SimpleNamespace(save_for_backward=lambda *_: None)
            y = conv.Conv2d.forward(ctx, x, weight, *options)
            note("conv2d", layer.hbfp_now, y.numel() * weight[0].numel())
            return y if bias is None else y + bias[:, None, None], ctx

        def backward(ctx, g, x, weight, wanted):
            ctx.saved_tensors, ctx.needs_input_grad = (x, weight), wanted
            gx, gw, *_ = conv.Conv2d.backward(ctx, g)
            return gx, gw, g.sum((0, 2, 3), keepdim=True).view(-1) if wanted[2] else None
        return Operation(forward, backward)


class FusedLayerNorm(Looped):
    """``torch.nn.LayerNorm``."""

    def operation(self, layer: Any) -> Operation:
        shape, eps = layer.normalized_shape, layer.eps

        def forward(x, weight, bias):
            y, *kept = torch.native_layer_norm(x.contiguous(), shape, weight, bias, eps)
            return y, (kept, bias)

        def backward(kept, g, x, weight, wanted):
            (mean, deviation), bias = kept
            g, x = g.contiguous(), x.contiguous()
            return _ATEN.native_layer_norm_backward(g, x, shape, mean, deviation, weight, bias, wanted)
        return Operation(forward, backward)


class FusedBatchNorm(Looped):
    """``torch.nn.BatchNorm1d`` to ``3d``, each model with its own statistics."""

    def serves(self, layer: Any) -> bool:
        return layer.training or layer.running_mean is not None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape of ``x``."""
        for layer in self.layers:
            layer._check_input_dim(x)
        return super().forward(x)

    def operation(self, layer: Any) -> Operation:
        momentum = layer.momentum or 0.0
        if layer.training and layer.track_running_stats and layer.num_batches_tracked is not None:
            layer.num_batches_tracked.add_(1)
            if layer.momentum is None:
                momentum = 1.0 / float(layer.num_batches_tracked)
        keeps = not layer.training or layer.track_running_stats
        mean, variance = (layer.running_mean, layer.running_var) if keeps else (None, None)
        training, eps = layer.training or layer.running_mean is None, layer.eps

        def forward(x, weight, bias):
            y, *kept = torch.native_batch_norm(x, weight, bias, mean, variance, training, momentum, eps)
            return y, kept

        def backward(kept, g, x, weight, wanted):
            return _ATEN.native_batch_norm_backward(g, x, weight, mean, variance, *kept, training, eps, wanted)
        return Operation(forward, backward)


class FusedEmbedding(Looped):
    """``torch.nn.Embedding`` without ``max_norm`` and ``sparse``."""

    def serves(self, layer: Any) -> bool:
        return layer.max_norm is None and not layer.sparse

    def operation(self, layer: Any) -> Operation:
        padding = -1 if layer.padding_idx is None else layer.padding_idx

        def forward(x, weight, _):
            return _ATEN.embedding(weight, x, padding, layer.scale_grad_by_freq, False), None

        def backward(_, g, x, weight, wanted):
            found = _ATEN.embedding_dense_backward(g, x, len(weight), padding, layer.scale_grad_by_freq)
            return None, found, None
        return Operation(forward, backward)


#: Layer -> what runs it for all models.
LOOPED: dict[type, type[Looped]] = {
    nn.LayerNorm: FusedLayerNorm, nn.Embedding: FusedEmbedding,
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
                    FusedConvolution)}
