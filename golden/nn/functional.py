"""Functional forms, named as in ``torch.nn.functional``: their matrix products are HBFP, the rest FP32.

``formats`` is an :class:`~golden.spec.format.HBFPFormat` or a :class:`~golden.nn.Formats`; ``stream``
(:class:`golden.noise.Stream`) is needed by ``stochastic`` rounding.
"""

import math

import torch

from ..noise import Stream
from . import conv, ops
from .formats import FormatLike, Formats


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, formats: FormatLike = None, *,
           stream: Stream | None = None) -> torch.Tensor:
    """``input @ weight.T + bias``; input (..., I), weight (O, I)."""
    return ops.linear(input, weight, Formats.of(formats), stream, bias)


def matmul(a: torch.Tensor, b: torch.Tensor, formats: FormatLike = None, *,
           stream: Stream | None = None) -> torch.Tensor:
    """``a @ b`` of (..., M, K) and (..., K, N); ``b`` takes the format of ``w``."""
    return ops.matmul(a, b, Formats.of(formats), stream)


def conv2d(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
           stride: int | tuple[int, int] = 1, padding: int | tuple[int, int] = 0, dilation: int | tuple[int, int] = 1,
           groups: int = 1, formats: FormatLike = None, *, stream: Stream | None = None) -> torch.Tensor:
    """Convolution of input (N, C, H, W); zeros around. The law of its products: :mod:`golden.nn.conv`."""
    stride, padding, dilation = (pair(value, name) for value, name in
                                 ((stride, "stride"), (padding, "padding"), (dilation, "dilation")))
    y = conv.conv2d(input, weight, Formats.of(formats), stride=stride, padding=padding, dilation=dilation,
                    groups=groups, stream=stream)
    return y if bias is None else y + bias[:, None, None]


def pair(value: int | tuple[int, int], name: str) -> tuple[int, int]:
    """``value`` as two ints."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return value[0], value[1]
    raise ValueError(f"{name} must be an int or a pair, not {value!r}")


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 mask: torch.Tensor | None = None, dropout: float = 0.0, formats: FormatLike = None, *,
                                 stream: Stream | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """``softmax(q k^T / sqrt(d)) v``; q, k, v (..., L, d), mask added or boolean (True takes part)."""
    scores = matmul(query, key.transpose(-1, -2), formats, stream=stream) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    weights = torch.dropout(scores.softmax(-1), dropout, dropout > 0)
    return matmul(weights, value, formats, stream=stream), weights
