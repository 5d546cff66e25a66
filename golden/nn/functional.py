"""Functional forms, named as in ``torch.nn.functional``: their matrix products are HBFP, the rest FP32.

``formats`` is an :class:`~golden.spec.format.HBFPFormat` or a :class:`~golden.nn.Formats`; ``stream``
(:class:`golden.noise.Stream`) is needed by ``stochastic`` rounding.
"""

import math

import torch

from . import conv, ops
from .formats import Formats


def linear(input, weight, bias=None, formats=None, *, stream=None):
    """``input @ weight.T + bias``; input (..., I), weight (O, I)."""
    return ops.linear(input, weight, Formats.of(formats), stream, bias)


def matmul(a, b, formats=None, *, stream=None):
    """``a @ b`` of (..., M, K) and (..., K, N); ``b`` takes the format of ``w``."""
    return ops.matmul(a, b, Formats.of(formats), stream)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, formats=None, *, stream=None):
    """Convolution of input (N, C, H, W); zeros around. The law of its products: :mod:`golden.nn.conv`."""
    stride, padding, dilation = (pair(value, name) for value, name in
                                 ((stride, "stride"), (padding, "padding"), (dilation, "dilation")))
    y = conv.conv2d(input, weight, Formats.of(formats), stride=stride, padding=padding, dilation=dilation,
                    groups=groups, stream=stream)
    return y if bias is None else y + bias[:, None, None]


def pair(value, name):
    """``value`` as two ints."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return tuple(value)
    raise ValueError(f"{name} must be an int or a pair, not {value!r}")


def scaled_dot_product_attention(query, key, value, mask=None, dropout=0.0, formats=None, *, stream=None):
    """``softmax(q k^T / sqrt(d)) v``; q, k, v (..., L, d), mask added or boolean (True takes part)."""
    scores = matmul(query, key.transpose(-1, -2), formats, stream=stream) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    weights = torch.dropout(scores.softmax(-1), dropout, dropout > 0)
    return matmul(weights, value, formats, stream=stream), weights
