"""Attention on a GPU, forward and backward, without scores in memory: what :mod:`golden.gpu.attention_kernel` needs."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton

from hbfp.format import HBFPFormat

from .attention_gradients_kernel import key_gradients, query_gradients
from .attention_kernel import attend
from .convert import Lines, converted
from .runtime import INTERPRETED

#: Both ways of a kernel, of which one returns at once, and the powers of two that gradients of scores and shares are
#: kept at there: see :mod:`golden.gpu.attention_kernel`.
_WAYS = {"EXACT": False, "UP": 64, "SHARE_UP": 80}, {"EXACT": True, "UP": 0, "SHARE_UP": 0}
#: Blocks of a head's features that the kernels keep, and features.
_PARTS, _FEATURES = 4, 128
#: Terms of a block -> queries, or keys, of a program, its warps, and strips on their way: forward, and backward.
_FORWARD = {16: (64, 4, 2), 32: (64, 4, 2), 64: (64, 4, 1), 128: (64, 4, 1)}
_BACKWARD = {16: (64, 4, 2), 32: (64, 4, 2), 64: (64, 4, 2), 128: (128, 8, 2)}


def takes(fmt: HBFPFormat, size: int) -> bool:
    """Whether the kernels take operands of a format, with so many features in a head; ``stochastic`` for gradients."""
    return (fmt.block[0] == 1 and fmt.terms in (16, 32, 64, 128) and fmt.mantissa <= 9 and fmt.rounding != "truncate"
            and fmt.subnormals == "flush" and fmt.terms * fmt.limit ** 2 < 1 << 23
            and 0 < size <= min(_FEATURES, _PARTS * fmt.terms))


@dataclass(frozen=True, eq=False)
class Noise:
    """Numbers that the conversions of gradients draw, integers: each along the columns, and along the rows.

    Attributes
    ----------
    outputs : tuple of Tensor
        (S, L, d): of the gradient of y.
    scores : tuple of Tensor
        (S, L, keys): of the gradient of ``q k^T``.
    """
    outputs: tuple[torch.Tensor, torch.Tensor]
    scores: tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Attended:
    """What the gradients of attention need.

    Attributes
    ----------
    stats : Tensor
        (2, S, L): each query's largest score, and one over its sum of exponentials.
    q, k, v : tuple of Lines
        Both directions of each.
    causal : bool
        Whether a query takes part in what is before it, and in itself, alone.
    factor : float
        What scores are multiplied by.
    """
    stats: torch.Tensor
    q: tuple[Any, Any]
    k: tuple[Any, Any]
    v: tuple[Any, Any]
    causal: bool
    factor: float

    def gradients(self, g: torch.Tensor, fmt: HBFPFormat, noise: Noise | None = None, *,
                  kept: bool = False) -> tuple[Any, ...]:
        """Gradients of q, k and v from that of y, converted as ``fmt``, and, if ``kept``, of the scores' products."""
        (q, q_down), (k, k_down), (v, _) = self.q, self.k, self.v
        *lead, queries, size = g.shape
        stacks = math.prod(lead)
        keys = k.data.shape[1]
        across, down = _both(g, fmt, *() if noise is None else noise.outputs)
        gq, gk, gv = (_like(g, n) for n in (queries, keys, keys))
        sums = torch.empty(stacks, queries, device=g.device)
        beyond = torch.zeros(2, dtype=torch.int32, device=g.device)
        under = torch.zeros(stacks if kept else 0, queries, keys, device=g.device)
        if not gq.numel() or not gk.numel():
            return gq.zero_(), gk.zero_(), gv.zero_(), under
        dice = (across.data, across.data) if noise is None else noise.scores
        operands = [each for lines in (q, k, v, across) for each in (lines.data, lines.scales, lines.span)]
        rows, program = _program(_BACKWARD, fmt.terms)
        more = program | _options(fmt, size, keys) | {
            "CAUSAL": self.causal, "MAGNITUDE": fmt.magnitude, "LOWEST": fmt.exponent_range[0],
            "HIGHEST": fmt.exponent_range[1], "NOISE_BITS": 0 if noise is None else fmt.noise_bits}
        grids = q.scales.stride(1), k.scales.stride(1)
        for way in _WAYS:
            query_gradients[triton.cdiv(queries, rows), stacks](
                *operands, k_down.data, k_down.scales, dice[0], gq, sums, self.stats, under, beyond, queries, keys,
                size, q.data.stride(1), k_down.data.stride(1), *grids, k_down.scales.stride(1), *dice[0].stride(),
                *_places(gq), self.factor, 1.0, KEPT=kept, ROWS=rows, STRIP=_strip(fmt.terms), **more, **way)
        shares = self.q[0].fmt
        for way in _WAYS:
            key_gradients[triton.cdiv(keys, rows), stacks](
                *operands, q_down.data, q_down.scales, down.data, down.scales, dice[1], gk, gv, sums, self.stats,
                beyond[1:], queries, keys, size, q.data.stride(1), q_down.data.stride(1), *grids,
                q_down.scales.stride(1), *dice[1].stride(), *_places(gk), self.factor, 1.0,
                SHARE_MAGNITUDE=shares.magnitude, SHARE_LOWEST=shares.exponent_range[0],
                SHARE_HIGHEST=shares.exponent_range[1], ROWS=rows, **more, **way)
        return gq, gk, gv, under


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, x_fmt: HBFPFormat, w_fmt: HBFPFormat, *, factor: float,
             causal: bool = False, weights: bool = False) -> tuple[torch.Tensor, Attended, torch.Tensor]:
    """``softmax(factor q k^T) v`` of (S, L, d), (S, keys, d) and (S, keys, d), S in one or two dimensions; FP32 sums.

    Queries and shares are converted as ``x_fmt``, keys and values as ``w_fmt``: formats that :func:`takes` accepts.
    Products have the law's bits; the softmax is FP32, and its own sums are of another order than torch's.

    Returns
    -------
    tuple
        (S, L, d) float32; what gradients need; and, if ``weights``, the softmax (S, L, keys).
    """
    *lead, queries, size = q.shape
    stacks, keys = math.prod(lead), k.shape[-2]
    q_both, k_both, v_both = (_both(t, fmt) for t, fmt in ((q, x_fmt), (k, w_fmt), (v, w_fmt)))
    y, stats = _like(q, queries), torch.empty(2, stacks, queries, device=q.device)
    shown = torch.zeros(stacks if weights else 0, queries, keys, device=q.device)
    found = Attended(stats, q_both, k_both, v_both, causal, factor)
    if not y.numel() or not keys:
        return y.zero_(), found, shown
    (q_lines, _), (k_lines, _), (_, v_lines) = q_both, k_both, v_both
    operands = [each for line in (q_lines, k_lines, v_lines) for each in (line.data, line.scales, line.span)]
    rows, program = _program(_FORWARD, x_fmt.terms)
    for way in _WAYS:
        attend[triton.cdiv(queries, rows), stacks](
            *operands, y, stats, shown, queries, keys, size, q_lines.data.stride(1), v_lines.data.stride(1),
            q_lines.scales.stride(1), k_lines.scales.stride(1), v_lines.scales.stride(1), *_places(y), factor, 1.0,
            MAGNITUDE=x_fmt.magnitude, LOWEST=x_fmt.exponent_range[0], HIGHEST=x_fmt.exponent_range[1], CAUSAL=causal,
            KEPT=weights, EXACT=way["EXACT"], UP=way["SHARE_UP"], ROWS=rows, STRIP=_strip(x_fmt.terms),
            **program, **_options(x_fmt, size, keys))
    return y, found, shown


def _both(x, fmt, noise=None, down_noise=None) -> tuple[Lines, Lines]:
    if noise is down_noise:
        across, down = converted(x, fmt, across=True, down=True, kind="values", noise=noise)
    else:
        across = converted(x, fmt, across=True, kind="values", noise=noise)[0]
        down = converted(x, fmt, down=True, kind="values", noise=down_noise)[1]
    assert across is not None and down is not None
    return across, down


def _like(x, rows):
    """An empty (..., rows, d) that lies as ``x`` does: heads beside each other in a row, or one after the other."""
    *lead, _, size = x.shape
    if len(lead) == 2 and x.stride(1) < x.stride(2):
        return torch.empty(lead[0], rows, lead[1], size, device=x.device).transpose(1, 2)
    return torch.empty(*lead, rows, size, device=x.device)


def _places(y):
    """Matrices that lie evenly apart, and steps: from one set of them to the next, in a set, and between rows."""
    outer, inner, line, _ = (0, *y.stride())[-4:]
    return y.shape[-3], outer, inner, line


def _program(table, terms):
    """Queries, or keys, of a program, and what it is compiled with."""
    rows, warps, stages = table[terms]
    return 16 if INTERPRETED else rows, {"num_warps": warps, "num_stages": stages}


def _strip(terms):
    """Keys that are looked at together where they are not converted."""
    return max(16, terms) if INTERPRETED else 64


def _options(fmt, size, keys):
    width = max(16, triton.next_power_of_2(size))
    return {"TERMS": fmt.terms, "WIDTH": min(fmt.terms, width), "PARTS": triton.cdiv(size, fmt.terms), "SIZE": width,
            "RAGGED": keys % max(fmt.terms, 64) > 0, "WIDE": INTERPRETED,
            "enable_fp_fusion": False}
