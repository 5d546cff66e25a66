"""Attention of torch in FP32, of several models."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from .each import Each, Fused
from .linear import FP32Linear
from .parameters import Parameters
from .proof import proven, same_layers


class FusedFP32Attention(Fused):
    """``torch.nn.MultiheadAttention`` of a sequence to itself, in training: one call of torch for each step of it.

    Each model's tokens keep the order that they have alone, in which torch adds the gradients of weights. All else,
    and sizes for which this is not :func:`~golden.nn.fused.proof.proven` to have the bits of the models alone, goes
    model by model.
    """

    def __init__(self, layers: Sequence[nn.MultiheadAttention], parameters: Parameters) -> None:
        super().__init__(layers, parameters)
        first = layers[0]
        self.stacks = [parameters.stack(p) for p in (first.in_proj_weight, first.in_proj_bias, first.out_proj.weight,
                                                     first.out_proj.bias)]
        self.each = Each(layers, parameters)

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *masks: Any, **options: Any) -> Any:
        """As of the layer alone, batches (models * N, L, E)."""
        if not self._fits(query, key, value, *masks, **options):
            return self.each(query, key, value, *masks, **options)
        return self._once(query), None

    def _fits(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
              average_attn_weights=True, is_causal=False):
        return (query is key is value and not need_weights and key_padding_mask is attn_mask is None and not is_causal
                and query.dim() == 3 and query.dtype == torch.float32 and query.is_contiguous() and query.numel() > 0
                and torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
                and all(layer.training and layer.in_proj_weight is not None and layer.bias_k is None
                        and not layer.add_zero_attn for layer in self.layers)
                and proven(("attention", query.shape, self.layers[0].num_heads, *(p is None for p in self.stacks),
                            torch.backends.cuda.flash_sdp_enabled()), lambda generator: self._proof(query, generator)))

    def _once(self, x):
        """(models * N, L, E) -> the same, as torch has it in memory: L before the batch."""
        weight, bias, out, out_bias = self.stacks
        models, length, heads = self.count, x.shape[1], self.layers[0].num_heads
        rows = x.view(models, -1, *x.shape[1:]).transpose(1, 2).reshape(models, -1, x.shape[2])
        y = FP32Linear.apply(rows, weight, bias).view(models, length, -1, 3, heads, x.shape[2] // heads)
        q, k, v = y.permute(3, 0, 2, 4, 1, 5).flatten(1, 2).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(models, -1, *x.shape[1:])
        y = FP32Linear.apply(y.transpose(1, 2).reshape(models, -1, x.shape[2]), out, out_bias)
        return y.view(models, length, -1, x.shape[2]).transpose(0, 1).flatten(1, 2).transpose(0, 1)

    def _proof(self, like, generator):
        """Layers of random numbers alone and here, with all gradients."""
        layers = [copy.deepcopy(layer) for layer in self.layers]
        x, top = (torch.randn(like.shape, generator=generator) for _ in range(2))
        for layer in layers:
            for p in layer.parameters():
                p.data = torch.randn(p.shape, generator=generator) * 0.3
        return same_layers(layers, x, top, lambda layer, own: layer(own, own, own, need_weights=False)[0],
                           lambda twins, held: FusedFP32Attention(twins, held)._once)
