"""Gradients of attention whose scores never leave the chip: :mod:`golden.gpu.attention_kernel` has the forward pass.

Scores, shares and their gradients are made anew wherever they are needed: for the sums of shares times gradients and
the gradients of queries in strips of queries, and, turned, for those of keys and values in strips of keys.
"""

import triton
import triton.language as tl

from .attention_kernel import added, beside, converted, matrix, parts, product, shares
from .shared_kernel import in_range, real, store, within


@triton.jit
def _drawn(noise, query, key, queries, keys, by_query, by_key, NOISE_BITS: tl.constexpr):
    """The numbers of a tile of scores; any where none are needed."""
    if NOISE_BITS > 0:
        y = tl.load(noise + query.to(tl.int64) * by_query + key.to(tl.int64) * by_key,
                    mask=(query < queries) & (key < keys), other=0).to(tl.int32)
    else:
        y = 0
    return y


@triton.jit
def _score_gradients(share, gradients, sums, factor, UP: tl.constexpr, SHARE_UP: tl.constexpr):
    """Gradients of the products below a softmax, times 2^UP, normal numbers or 0."""
    y = (gradients - sums) * (share * 2.0 ** (UP - SHARE_UP)) * factor
    return tl.where(tl.abs(y) < 2.0 ** (UP - 126), 0.0, y)


@triton.jit
def _note(beyond, highest, UP: tl.constexpr, EXACT: tl.constexpr):
    """Note numbers of which, times 2^UP, sums of products might not be finite; ``highest``: bits, without NaN."""
    if not EXACT:
        if tl.max(highest, 0) >= (127 + 20 + UP) << 23:
            tl.atomic_max(beyond, 1, sem="relaxed")


@triton.jit
def _idle(served, beyond, EXACT: tl.constexpr):
    """Whether the other of the two ways has the work."""
    if EXACT:
        y = served & (tl.load(beyond) == 0)
    else:
        y = served == 0
    return y


@triton.jit
def query_gradients(q, q_scales, q_span, k, k_scales, k_span, v, v_scales, v_span, g, g_scales, g_span, down,
                    down_scales, noise, gq, sums, stats, kept, beyond, queries, keys, size, wide, long, q_grid, k_grid,
                    down_grid, noise_stack, noise_query, noise_key, inner, y_outer, y_inner, y_line, factor, one,
                    NOISE_BITS: tl.constexpr, TERMS: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr,
                    SIZE: tl.constexpr, MAGNITUDE: tl.constexpr, LOWEST: tl.constexpr, HIGHEST: tl.constexpr,
                    CAUSAL: tl.constexpr, RAGGED: tl.constexpr, KEPT: tl.constexpr, EXACT: tl.constexpr,
                    UP: tl.constexpr, SHARE_UP: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr,
                    STRIP: tl.constexpr):
    """Gradients of queries, and ``sums`` of shares times their gradients.

    Lines q, g (queries, size), k, v (keys, size), and ``down``, those of k turned (size, keys). ``beyond`` becomes 1
    where a gradient of a score is too large for the quick sums. ``kept``: gradients of scores, if KEPT. ``noise``: of
    scores, for their conversion.
    """
    served = in_range(q_span, k_span, TERMS) & in_range(g_span, v_span, TERMS) & within(k_span, -58, 30)
    if _idle(served, beyond, EXACT):
        return
    stack = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    blocks, long_blocks = tl.cdiv(size, TERMS), tl.cdiv(keys, TERMS)
    q, q_scales = matrix(q, q_scales, stack, queries, wide, q_grid, blocks)
    g, g_scales = matrix(g, g_scales, stack, queries, wide, q_grid, blocks)
    k, k_scales = matrix(k, k_scales, stack, keys, wide, k_grid, blocks)
    v, v_scales = matrix(v, v_scales, stack, keys, wide, k_grid, blocks)
    down, down_scales = matrix(down, down_scales, stack, size, long, down_grid, long_blocks)
    noise += stack * noise_stack
    end = keys + 0
    if CAUSAL:
        skipping = real(q_span, k_span, v_span) & real(g_span, g_span, g_span)
        end = tl.where(skipping, tl.minimum(keys, (tl.program_id(0) + 1) * ROWS), keys)
    q0, q1, q2, q3 = parts(q, query, queries, size, wide, TERMS, WIDTH, PARTS)
    g0, g1, g2, g3 = parts(g, query, queries, size, wide, TERMS, WIDTH, PARTS)
    top = tl.load(stats + stack * queries + query, mask=query < queries, other=0.0)
    inverse = tl.load(stats + (tl.num_programs(1) + stack) * queries + query, mask=query < queries, other=0.0)
    inverse = inverse * 2.0 ** SHARE_UP
    along = tl.zeros([ROWS], tl.float32)
    for first in range(0, end, STRIP):
        key = first + tl.arange(0, STRIP)
        scores = factor * product(q0, q1, q2, q3, q, q_scales, query, queries, q_grid, k, k_scales, key, keys, k_grid,
                                  size, wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        share = shares(scores, key[None, :], query[:, None], keys, top[:, None], inverse[:, None], CAUSAL, RAGGED,
                       SHARE_UP)
        gradients = product(g0, g1, g2, g3, g, g_scales, query, queries, q_grid, v, v_scales, key, keys, k_grid, size,
                            wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        along += tl.sum(share * 2.0 ** -SHARE_UP * gradients, 1)
    tl.store(sums + stack * queries + query, along, mask=query < queries)
    place = tl.arange(0, SIZE)
    acc = tl.zeros([ROWS, SIZE], tl.float32)
    highest = tl.zeros([ROWS], tl.int32)
    for block in range(0, tl.cdiv(end, TERMS)):
        key = block * TERMS + tl.arange(0, TERMS)
        scores = factor * product(q0, q1, q2, q3, q, q_scales, query, queries, q_grid, k, k_scales, key, keys, k_grid,
                                  size, wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        share = shares(scores, key[None, :], query[:, None], keys, top[:, None], inverse[:, None], CAUSAL, RAGGED,
                       SHARE_UP)
        gradients = product(g0, g1, g2, g3, g, g_scales, query, queries, q_grid, v, v_scales, key, keys, k_grid, size,
                            wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        under = _score_gradients(share, gradients, along[:, None], factor, UP, SHARE_UP)
        if KEPT:
            tl.store(kept + (stack * queries + query)[:, None] * keys + key[None, :], under * 2.0 ** -UP,
                     mask=(query < queries)[:, None] & (key < keys)[None, :])
        drawn = _drawn(noise, query[:, None], key[None, :], queries, keys, noise_query, noise_key, NOISE_BITS)
        p, p_scale, tops = converted(under, drawn, MAGNITUDE, LOWEST, HIGHEST, UP, NOISE_BITS)
        highest = tl.maximum(highest, tl.where(tops <= 0x7F800000, tops, 0))
        acc = added(acc, p, p_scale, down, down_scales, block, place, size, keys, long, down_grid, TERMS, UP, EXACT,
                    WIDE)
    _note(beyond, highest, UP, EXACT)
    store(beside(gq, stack, inner, y_outer, y_inner), acc, query, place, queries, size, y_line)


@triton.jit
def key_gradients(q, q_scales, q_span, k, k_scales, k_span, v, v_scales, v_span, g, g_scales, g_span, q_down,
                  q_down_scales, g_down, g_down_scales, noise, gk, gv, sums, stats, beyond, queries, keys, size, wide,
                  long, q_grid, k_grid, down_grid, noise_stack, noise_query, noise_key, inner, y_outer, y_inner, y_line,
                  factor, one, NOISE_BITS: tl.constexpr, TERMS: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr,
                  SIZE: tl.constexpr, MAGNITUDE: tl.constexpr, LOWEST: tl.constexpr, HIGHEST: tl.constexpr,
                  SHARE_MAGNITUDE: tl.constexpr, SHARE_LOWEST: tl.constexpr, SHARE_HIGHEST: tl.constexpr,
                  CAUSAL: tl.constexpr, RAGGED: tl.constexpr, EXACT: tl.constexpr, UP: tl.constexpr,
                  SHARE_UP: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr):
    """Gradients of keys and values; lines as before, and those of q and g turned (size, queries).

    Scores are turned here: a row is a key's. Both gradients are products along the queries.
    """
    served = (in_range(q_span, k_span, TERMS) & in_range(g_span, v_span, TERMS) & within(q_span, -58, 30)
              & within(g_span, -74, 40))
    if _idle(served, beyond, EXACT):
        return
    stack = tl.program_id(1).to(tl.int64)
    key = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    blocks, long_blocks = tl.cdiv(size, TERMS), tl.cdiv(queries, TERMS)
    q, q_scales = matrix(q, q_scales, stack, queries, wide, q_grid, blocks)
    g, g_scales = matrix(g, g_scales, stack, queries, wide, q_grid, blocks)
    k, k_scales = matrix(k, k_scales, stack, keys, wide, k_grid, blocks)
    v, v_scales = matrix(v, v_scales, stack, keys, wide, k_grid, blocks)
    q_down, q_down_scales = matrix(q_down, q_down_scales, stack, size, long, down_grid, long_blocks)
    g_down, g_down_scales = matrix(g_down, g_down_scales, stack, size, long, down_grid, long_blocks)
    noise += stack * noise_stack
    start = long_blocks * 0
    if CAUSAL:
        skipping = real(q_span, k_span, v_span) & real(g_span, g_span, g_span)
        start = tl.where(skipping, tl.minimum(tl.program_id(0) * ROWS // TERMS, long_blocks), 0)
    k0, k1, k2, k3 = parts(k, key, keys, size, wide, TERMS, WIDTH, PARTS)
    v0, v1, v2, v3 = parts(v, key, keys, size, wide, TERMS, WIDTH, PARTS)
    stats += stack * queries
    sums += stack * queries
    place = tl.arange(0, SIZE)
    k_acc = tl.zeros([ROWS, SIZE], tl.float32)
    v_acc = tl.zeros([ROWS, SIZE], tl.float32)
    highest = tl.zeros([ROWS], tl.int32)
    for block in range(start, long_blocks):
        query = block * TERMS + tl.arange(0, TERMS)
        top = tl.load(stats + query, mask=query < queries, other=0.0)
        inverse = tl.load(stats + tl.num_programs(1).to(tl.int64) * queries + query, mask=query < queries, other=0.0)
        along = tl.load(sums + query, mask=query < queries, other=0.0)
        scores = factor * product(k0, k1, k2, k3, k, k_scales, key, keys, k_grid, q, q_scales, query, queries, q_grid,
                                  size, wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        share = shares(scores, key[:, None], query[None, :], keys, top[None, :],
                       (inverse * 2.0 ** SHARE_UP)[None, :], CAUSAL, RAGGED, SHARE_UP)
        p, p_scale, _ = converted(share, 0, SHARE_MAGNITUDE, SHARE_LOWEST, SHARE_HIGHEST, SHARE_UP, 0)
        v_acc = added(v_acc, p, p_scale, g_down, g_down_scales, block, place, size, queries, long, down_grid, TERMS,
                      SHARE_UP, EXACT, WIDE)
        gradients = product(v0, v1, v2, v3, v, v_scales, key, keys, k_grid, g, g_scales, query, queries, q_grid, size,
                            wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        under = _score_gradients(share, gradients, along[None, :], factor, UP, SHARE_UP)
        drawn = _drawn(noise, query[None, :], key[:, None], queries, keys, noise_query, noise_key, NOISE_BITS)
        p, p_scale, tops = converted(under, drawn, MAGNITUDE, LOWEST, HIGHEST, UP, NOISE_BITS)
        highest = tl.maximum(highest, tl.where(tops <= 0x7F800000, tops, 0))
        k_acc = added(k_acc, p, p_scale, q_down, q_down_scales, block, place, size, queries, long, down_grid, TERMS,
                      UP, EXACT, WIDE)
    _note(beyond, highest, UP, EXACT)
    store(beside(gk, stack, inner, y_outer, y_inner), k_acc, key, place, keys, size, y_line)
    store(beside(gv, stack, inner, y_outer, y_inner), v_acc, key, place, keys, size, y_line)
