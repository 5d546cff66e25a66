"""The same attention layer of several models."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from .. import functional
from ..layers import HBFPMultiheadAttention
from ..pairs import Matmul
from .each import Each, Fused
from .linear import FusedLinear
from .parameters import Parameters
from .products import Linear, Products


class FusedAttention(Fused):
    """:class:`~golden.nn.HBFPMultiheadAttention` of several models: all their heads in one call for each product."""

    def __init__(self, layers: Sequence[HBFPMultiheadAttention], parameters: Parameters) -> None:
        super().__init__(layers, parameters)
        self.weights: Any = parameters.stack(layers[0].in_proj_weight)
        self.biases = parameters.stack(layers[0].in_proj_bias)
        self.products, self.each = Products(layers), Each(layers, parameters)
        self.out = FusedLinear([layer.out_proj for layer in layers], parameters)

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                key_padding_mask: torch.Tensor | None = None, need_weights: bool = True,
                attn_mask: torch.Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """As of the layer alone, batches (models * N, L, E); a mask of two dimensions serves every model."""
        first, products = self.layers[0], self.products.refresh()
        masks = [mask for mask in (key_padding_mask, attn_mask) if mask is not None and mask.dtype != torch.bool]
        if not products.serve(query, key, value, *masks):
            return self.each(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights,
                             is_causal)
        weights = self.weights.chunk(3, 1)
        biases = (None,) * 3 if self.biases is None else self.biases.chunk(3, 1)
        q, k, v = (self._heads(*three, products) for three in zip((query, key, value), weights, biases, strict=True))
        mask = first._mask(query, key, key_padding_mask, attn_mask, is_causal)
        scores = self._matmul(q, k.transpose(-1, -2), products) / math.sqrt(q.shape[-1])
        shares = functional.shares(scores, mask)
        y = self.out(self._matmul(shares, v, products).transpose(1, 2).flatten(2))
        return y, (shares.mean(1) if average_attn_weights else shares) if need_weights else None

    def _heads(self, x, w, bias, products):
        """One projection, (models * N, heads, L, d)."""
        rows = x.reshape(self.count, -1, x.shape[-1]).contiguous()
        y = Linear.apply(rows, w, bias, products).view(*x.shape[:-1], -1)
        products.note("linear", rows.numel() * y.shape[-1])
        return y.unflatten(-1, (self.layers[0].num_heads, -1)).transpose(1, 2)

    @staticmethod
    def _matmul(a, b, products):
        y = Matmul.apply(a.flatten(0, 1), b.flatten(0, 1), products)
        products.note("matmul", a.numel() * b.shape[-1])
        return y.unflatten(0, a.shape[:2])
