"""Functional forms, named as in ``torch.nn.functional``: their matrix products are HBFP, the rest FP32.

``formats`` is a name such as ``"hbfp8"``, an :class:`~hbfp.format.HBFPFormat` or a :class:`~golden.nn.Formats`;
``stream`` (:class:`golden.noise.Stream`) is needed by ``stochastic`` rounding. Tensors of bfloat16 and float16 are
converted as the FP32 numbers that they are, and the result has their type.
"""

import math
from typing import Any

import torch
from torch.autograd import forward_ad

from ..noise import Stream
from . import again, attended, library, nested
from .dropout import dropped
from .formats import FormatLike, Formats
from .memory import check_dense
from .operators import refuse_onnx
from .record import note
from .state import NO_SCRIPT

#: Types whose every number FP32 has.
NARROW = (torch.bfloat16, torch.float16)


def single(*operands: torch.Tensor, bias: torch.Tensor | None = None) -> tuple[list[Any], torch.dtype]:
    """Operands and bias with narrow types widened to float32, and the type of a result.

    Raises
    ------
    TypeError
        If one is no tensor, or no dense one.
    NotImplementedError
        If forward-mode differentiation runs, an export to ONNX, or ``torch.jit.trace``.
    """
    refuse_onnx()
    given = [*operands] if bias is None else [*operands, bias]
    check_dense(*given)
    if not torch.compiler.is_compiling():
        if again.forward_mode() if again.transformed(*given) else any(map(_dual, given)):
            raise NotImplementedError(again.NO_FORWARD)
        if torch.jit.is_tracing():
            raise NotImplementedError(NO_SCRIPT)
    types = {t.dtype for t in given}
    dtype = next(iter(types)) if len(types) == 1 and types <= set(NARROW) else torch.float32
    return [t.float() if t is not None and t.dtype in NARROW else t for t in (*operands, bias)], dtype


def _dual(t):
    """Whether a tensor has a tangent, as in forward-mode differentiation."""
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(t).tangent is not None


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
           formats: FormatLike = "hbfp8", *, stream: Stream | None = None) -> torch.Tensor:
    """``input @ weight.T + bias``; input (..., I), weight (O, I)."""
    formats = Formats.of(formats)
    if nested.jagged(input):
        return nested.by_rows(lambda rows: linear(rows, weight, bias, formats, stream=stream), input)
    (input, weight, bias), dtype = single(input, weight, bias=bias)
    y = library.linear(input, weight, bias, formats, stream)
    note("linear", formats, input.numel() * weight.shape[0], y=y)
    return y.to(dtype)


def matmul(a: torch.Tensor, b: torch.Tensor, formats: FormatLike = "hbfp8", *,
           stream: Stream | None = None) -> torch.Tensor:
    """``a @ b`` of (..., M, K) and (..., K, N), or one (K, N); ``b`` takes the format of ``w``."""
    formats = Formats.of(formats)
    if nested.jagged(a) and not b.is_nested and b.dim() == 2:
        return nested.by_rows(lambda rows: matmul(rows, b, formats, stream=stream), a)
    (a, b, _), dtype = single(a, b)
    if b.dim() == 2 and a.dim() > 1 and a.shape[-1] == len(b):
        y = library.linear(a, b.mT, None, formats, stream)
    else:
        y = library.matmul(a, b, formats, stream)
    note("matmul", formats, a.numel() * b.shape[-1], y=y)
    return y.to(dtype)


def conv2d(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
           stride: int | tuple[int, int] = 1, padding: int | tuple[int, int] = 0, dilation: int | tuple[int, int] = 1,
           groups: int = 1, formats: FormatLike = "hbfp8", *, stream: Stream | None = None) -> torch.Tensor:
    """Convolution of input (N, C, H, W); zeros around. The law of its products: :mod:`golden.nn.conv_products`."""
    stride, padding, dilation = (pair(value, name) for value, name in
                                 ((stride, "stride"), (padding, "padding"), (dilation, "dilation")))
    formats = Formats.of(formats)
    (input, weight, bias), dtype = single(input, weight, bias=bias)
    y = library.conv2d(input, weight, formats, stream, stride=stride, padding=padding, dilation=dilation, groups=groups)
    note("conv2d", formats, y.numel() * weight[0].numel(), y=y)
    return (y if bias is None else y + bias[:, None, None]).to(dtype)


def pair(value: int | tuple[int, int], name: str) -> tuple[int, int]:
    """``value`` as two ints; ``name`` is for the error of anything else."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return value[0], value[1]
    raise ValueError(f"{name} must be an int or a pair, not {value!r}")


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 mask: torch.Tensor | None = None, dropout: float = 0.0,
                                 formats: FormatLike = "hbfp8", *, scale: float | None = None,
                                 stream: Stream | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """``softmax(q k^T / sqrt(d)) v`` and the softmax after dropout: shapes (..., L, d) and (..., L, S).

    q is (..., L, d), k and v (..., S, d), the mask added or boolean (True takes part). ``scale`` stands for
    ``1 / sqrt(d)``. A query that takes part in nothing gives zeros.
    """
    scores = matmul(query, key.transpose(-1, -2), formats, stream=stream)
    scores = scores / math.sqrt(query.shape[-1]) if scale is None else scores * scale
    weights = dropped(shares(scores, mask), dropout)
    return matmul(weights, value, formats, stream=stream), weights


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None,
              dropout: float = 0.0, formats: FormatLike = "hbfp8", *, is_causal: bool = False,
              scale: float | None = None, stream: Stream | None = None) -> torch.Tensor:
    """:func:`scaled_dot_product_attention` without its weights; ``is_causal`` stands for the mask :func:`causal`.

    On a GPU scores and weights then stay on the chip where one kernel serves: :mod:`golden.nn.attended`.
    """
    formats = Formats.of(formats)

    def by_products(q, k, v):
        own = causal(q.shape[-2], k.shape[-2], q) if is_causal else mask
        return scaled_dot_product_attention(q, k, v, own, dropout, formats, scale=scale, stream=stream)[0]
    if mask is not None or dropout or not attended.serves(query, key, value, formats, stream):
        return by_products(query, key, value)
    (query, key, value, _), dtype = single(query, key, value)
    for size in (query.shape[-1], value.shape[-1]):
        note("matmul", formats, query.shape[:-1].numel() * key.shape[-2] * size)
    return attended.attention(query, key, value, formats, stream, is_causal, scale, by_products).to(dtype)


def causal(length: int, keys: int, like: torch.Tensor) -> torch.Tensor:
    """The mask (length, keys) of queries that take part in what is before them, and in themselves."""
    return torch.ones(length, keys, dtype=torch.bool, device=like.device).tril()


def nested_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0,
                     formats: FormatLike = "hbfp8", *, is_causal: bool = False, scale: float | None = None,
                     stream: Stream | None = None) -> torch.Tensor:
    """:func:`scaled_dot_product_attention` of nested tensors (N, heads, \\*, d) of layout ``torch.jagged``."""
    def attend(q, k, v):
        return attention(q, k, v, None, dropout, formats, is_causal=is_causal, scale=scale, stream=stream)
    return nested.by_samples(attend, query, key, value)


def shares(scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Softmax of masked scores (..., L, S); zeros for a query that takes part in nothing."""
    if mask is None:
        return scores.softmax(-1)
    scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).masked_fill((scores == float("-inf")).all(-1, keepdim=True), 0.0)
