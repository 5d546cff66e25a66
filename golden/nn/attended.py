"""Attention in one kernel on a GPU: the law's products around torch's FP32 softmax, without scores in memory."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..gpu import runtime
from . import again, converted
from .formats import Formats
from .memory import plain
from .once import TWICE
from .placed import Placed, by_role
from .record import watcher
from .side import here


def serves(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, formats: Formats, stream: Any = None) -> bool:
    """Whether :func:`attention` takes operands (..., L, d), (..., keys, d) and (..., keys, d) in a format."""
    if torch.compiler.is_compiling() or isinstance(q, FakeTensor) or not runtime.serves(q):
        return False
    if again.transformed(q, k, v) or here() or watcher() is not None:
        return False
    alike = q.shape[:-2] == k.shape[:-2] == v.shape[:-2] and q.shape[-1] == k.shape[-1] == v.shape[-1]
    if not alike or k.shape[-2] != v.shape[-2]:
        return False
    if (formats.mode, formats.order, formats.accumulate) != ("hbfp", "block", "fp32"):
        return False
    if "stochastic" in (formats.x.rounding, formats.w.rounding) or formats.stochastic and not (
            isinstance(stream, Placed) or converted.draws(formats, (stream, stream, stream), q.device)):
        return False
    from ..gpu.attention import takes
    return all(takes(fmt, q.shape[-1]) for fmt in formats.roles)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, formats: Formats, stream: Any, causal: bool,
              scale: float | None, by_products: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Attention as of :func:`golden.nn.functional.attention` of float32 operands that :func:`serves` accepts.

    ``by_products(q, k, v)`` is the same by two products, of which gradients of gradients come.
    """
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    streams = [by_role(stream)[2] for _ in ("scores", "outputs")]      # in the order of the products
    if q.dim() in (3, 4):                              # as they lie
        return _Attention.apply(q, k, v, formats, streams, causal, factor, by_products)
    y = _Attention.apply(*(t.reshape(-1, *t.shape[-2:]) for t in (q, k, v)), formats, streams, causal, factor,
                         by_products)
    return y.view(q.shape)


class _Attention(torch.autograd.Function):
    """Of (S, L, d), (S, keys, d) and (S, keys, d), S in one or two dimensions."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, formats: Formats, streams: list[Any],
                causal: bool, factor: float, by_products: Callable[..., torch.Tensor]) -> torch.Tensor:
        from ..gpu.attention import attended
        ctx.save_for_backward(q, k, v)
        ctx.formats, ctx.streams, ctx.by_products = formats, streams, by_products
        with runtime.on(q):
            y, ctx.found, _ = attended(plain(q), plain(k), plain(v), formats.x, formats.w, factor=factor, causal=causal)
        return y.view(q.shape)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q, k, v = ctx.saved_tensors
        formats = ctx.formats
        if torch.is_grad_enabled():                    # gradients of gradients: of the products, one by one
            if formats.stochastic:
                raise NotImplementedError(TWICE)
            needed = [t for t in (q, k, v) if t.requires_grad]
            made = iter(torch.autograd.grad(ctx.by_products(q, k, v), needed, g, create_graph=True))
            return *(next(made) if t.requires_grad else None for t in (q, k, v)), *[None] * 5
        with runtime.on(g):
            noise = _noise(ctx.streams, formats.g, g, k) if formats.stochastic else None
            gq, gk, gv, _ = ctx.found.gradients(plain(g), formats.g, noise)
        return gq.view(q.shape), gk.view(k.shape), gv.view(v.shape), *[None] * 5


def _noise(streams, fmt, g, k):
    """What the two backward passes draw, that of the second product first, each along the columns and the rows."""
    from ..gpu.attention import Noise
    pairs, (queries, size), keys = g.shape[:-2].numel(), g.shape[-2:], k.shape[-2]
    drawn = [converted.drawn_pairs(pairs, [((queries, wide), fmt, stream, axis) for axis in (-1, 0)], g.device)
             for stream, wide in zip(reversed(streams), (size, keys), strict=True)]
    return Noise(*(tuple(each) for each in drawn))

