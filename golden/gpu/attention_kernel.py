"""Attention whose scores never leave the chip: softmax of one product, converted where it lies, into the next.

A program has a strip of queries (or of keys) and walks along the keys (or queries). It makes the scores anew wherever
they are needed, which costs less than to read them. Products are those of :mod:`golden.gpu.quick_kernel` on bfloat16
numbers; what is converted on the way, shares and gradients of scores, may be smaller than any normal number's block, so
it is kept times a power of two. Where an operand's exponents leave the range that this needs, the kernels compiled as
``EXACT`` do the work, with integer sums and float64.
"""

import triton
import triton.language as tl

from .convert_kernel import MAGIC, as_float, by_chance, nearest, power_of_last
from .exact_kernel import NORMAL, single
from .shared_kernel import in_range, real, store, within


@triton.jit
def _tile(source, line, lines, first, k, pitch, WIDTH: tl.constexpr):
    """(lines, ``WIDTH``) of lines of k terms, from a term on; zeros outside."""
    place = first + tl.arange(0, WIDTH)
    return tl.load(source + line.to(tl.int64)[:, None] * pitch + place[None, :],
                   mask=(line < lines)[:, None] & (place < k)[None, :], other=0.0)


@triton.jit
def _scale(scales, block, line, lines, grid):
    """A block's powers of two, of lines."""
    return tl.load(scales + block * grid + line, mask=line < lines, other=1.0)


@triton.jit
def _sums(p, q, WIDE: tl.constexpr):
    """Products (M, N) of a block (M, B) and (N, B)."""
    if WIDE:
        p, q = p.to(tl.float32), q.to(tl.float32)
    return tl.dot(p, q.T, out_dtype=tl.float32)


@triton.jit
def _exact_sums(p, p_scale, q, q_scale, WIDE: tl.constexpr):
    """The same of any exponents: sums of mantissas, times both powers of two in float64, rounded once."""
    p_wide, q_wide = p_scale.to(tl.float64)[:, None], q_scale.to(tl.float64)[:, None]
    p = (p.to(tl.float32).to(tl.float64) / p_wide).to(tl.float32).to(tl.bfloat16)
    q = (q.to(tl.float32).to(tl.float64) / q_wide).to(tl.float32).to(tl.bfloat16)
    return single(_sums(p, q, WIDE).to(tl.float64) * p_wide * tl.trans(q_wide), False)


@triton.jit
def _part(source, line, lines, part: tl.constexpr, k, pitch, TERMS: tl.constexpr, WIDTH: tl.constexpr,
          PARTS: tl.constexpr):
    """One of up to four blocks of a line; the first one again where there are not as many."""
    return _tile(source, line, lines, (part if part < PARTS else 0) * TERMS, k, pitch, WIDTH)


@triton.jit
def parts(source, line, lines, k, pitch, TERMS: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr):
    """All four."""
    return (_part(source, line, lines, 0, k, pitch, TERMS, WIDTH, PARTS),
            _part(source, line, lines, 1, k, pitch, TERMS, WIDTH, PARTS),
            _part(source, line, lines, 2, k, pitch, TERMS, WIDTH, PARTS),
            _part(source, line, lines, 3, k, pitch, TERMS, WIDTH, PARTS))


@triton.jit
def matrix(source, scales, stack, lines, pitch, grid, blocks):
    """Where the lines of one matrix of a stack begin, and their scales."""
    return source + stack * lines * pitch, scales + stack * grid * blocks


@triton.jit
def beside(y, stack, inner, y_outer, y_inner):
    """Where one matrix of a stack in two dimensions begins."""
    return y + stack // inner * y_outer + stack % inner * y_inner


@triton.jit
def product(a0, a1, a2, a3, a, a_scales, a_line, a_lines, a_grid, b, b_scales, b_line, b_lines, b_grid, k, pitch, one,
             TERMS: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, EXACT: tl.constexpr, WIDE: tl.constexpr):
    """Sums over all blocks of lines (M, K), whose blocks are ``a0`` to ``a3``, and (N, K): (M, N)."""
    if EXACT:
        acc = tl.zeros([a0.shape[0], b_line.shape[0]], tl.float32)
        for j in range(PARTS):
            p, q = (_tile(a, a_line, a_lines, j * TERMS, k, pitch, WIDTH),
                    _tile(b, b_line, b_lines, j * TERMS, k, pitch, WIDTH))
            acc += _exact_sums(p, _scale(a_scales, j, a_line, a_lines, a_grid), q,
                               _scale(b_scales, j, b_line, b_lines, b_grid), WIDE)
            acc = tl.where(tl.abs(acc) < NORMAL, 0.0, acc)
    else:
        acc = _sums(a0, _tile(b, b_line, b_lines, 0, k, pitch, WIDTH), WIDE)
        factor = tl.zeros([a0.shape[0], b_line.shape[0]], tl.float32) + one    # as in the quick kernel
        if PARTS > 1:
            acc = tl.fma(_sums(a1, _tile(b, b_line, b_lines, TERMS, k, pitch, WIDTH), WIDE), factor, acc)
        if PARTS > 2:
            acc = tl.fma(_sums(a2, _tile(b, b_line, b_lines, 2 * TERMS, k, pitch, WIDTH), WIDE), factor, acc)
        if PARTS > 3:
            acc = tl.fma(_sums(a3, _tile(b, b_line, b_lines, 3 * TERMS, k, pitch, WIDTH), WIDE), factor, acc)
    return acc


@triton.jit
def converted(x, drawn, MAGNITUDE: tl.constexpr, LOWEST: tl.constexpr, HIGHEST: tl.constexpr, UP: tl.constexpr,
               NOISE_BITS: tl.constexpr):
    """A tile (M, B) of numbers times 2^UP, each row a block, in HBFP: values, scales, and the rows' largest bits.

    With ``NOISE_BITS`` it is rounded by the numbers ``drawn``, else to nearest.
    """
    tops = tl.max(x.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 1)
    top = tops >> 23
    exponent = tl.minimum(tl.maximum(tl.maximum(top - UP, 0) - 126, LOWEST), HIGHEST)
    scale = tl.where(top == 255, float("nan"), power_of_last(exponent + UP, MAGNITUDE))
    if NOISE_BITS > 0:
        whole = as_float(by_chance(x, (MAGNITUDE - UP - exponent)[:, None], drawn, MAGNITUDE, NOISE_BITS, UP > 0))
    else:
        whole = nearest(x, (MAGNITUDE - UP - exponent)[:, None], MAGNITUDE, UP > 0) - MAGIC
    return (whole * scale[:, None]).to(tl.bfloat16), scale, tops


@triton.jit
def added(acc, p, p_scale, source, scales, block, line, lines, k, pitch, grid, TERMS: tl.constexpr, UP: tl.constexpr,
          EXACT: tl.constexpr, WIDE: tl.constexpr):
    """``acc`` and the sums of a block of a converted tile, times 2^UP, and of lines (N, K)."""
    q = _tile(source, line, lines, block * TERMS, k, pitch, TERMS)
    if EXACT:
        total = _exact_sums(p, p_scale, q, _scale(scales, block, line, lines, grid), WIDE)
    else:
        total = _sums(p, q, WIDE)
        total = tl.where(tl.abs(total) < 2.0 ** (UP - 126), 0.0, total * 2.0 ** -UP)
    acc += total
    return tl.where(tl.abs(acc) < NORMAL, 0.0, acc)


@triton.jit
def _masked(scores, key, query, keys, CAUSAL: tl.constexpr, RAGGED: tl.constexpr):
    """Scores, -inf where a query does not take part; keys and queries lie along different axes."""
    if RAGGED:
        scores = tl.where(key < keys, scores, float("-inf"))
    if CAUSAL:
        scores = tl.where(key <= query, scores, float("-inf"))
    return scores


@triton.jit
def shares(scores, key, query, keys, top, inverse, CAUSAL: tl.constexpr, RAGGED: tl.constexpr, UP: tl.constexpr):
    """Shares times 2^UP of scores, normal numbers or 0; NaN in all of a row of NaN."""
    share = tl.exp(_masked(scores, key, query, keys, CAUSAL, RAGGED) - top) * inverse
    return tl.where(share < 2.0 ** (UP - 126), 0.0, share)


@triton.jit
def attend(q, q_scales, q_span, k, k_scales, k_span, v, v_scales, v_span, y, stats, weights, queries, keys, size, wide,
           long, q_grid, k_grid, v_grid, inner, y_outer, y_inner, y_line, factor, one, TERMS: tl.constexpr,
           WIDTH: tl.constexpr, PARTS: tl.constexpr, SIZE: tl.constexpr, MAGNITUDE: tl.constexpr, LOWEST: tl.constexpr,
           HIGHEST: tl.constexpr, CAUSAL: tl.constexpr, RAGGED: tl.constexpr, KEPT: tl.constexpr, EXACT: tl.constexpr,
           UP: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, STRIP: tl.constexpr):
    """``y = softmax(factor q k^T) v`` of lines q (queries, size), k (keys, size) and v (size, keys).

    ``inner`` matrices of y lie evenly apart, and so do sets of them. ``stats``: each query's largest score, and one
    over the sum of its exponentials. ``weights``: the softmax, if KEPT.
    """
    served = in_range(q_span, k_span, TERMS) & within(v_span, -58, 40)
    if EXACT:
        if served:
            return
    else:
        if not served:
            return
    stack = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    blocks, long_blocks = tl.cdiv(size, TERMS), tl.cdiv(keys, TERMS)
    q, q_scales = matrix(q, q_scales, stack, queries, wide, q_grid, blocks)
    k, k_scales = matrix(k, k_scales, stack, keys, wide, k_grid, blocks)
    v, v_scales = matrix(v, v_scales, stack, size, long, v_grid, long_blocks)
    stats += stack * queries
    end = keys + 0
    if CAUSAL:
        end = tl.where(real(q_span, k_span, v_span), tl.minimum(keys, (tl.program_id(0) + 1) * ROWS), keys)
    q0, q1, q2, q3 = parts(q, query, queries, size, wide, TERMS, WIDTH, PARTS)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    for first in range(0, end, STRIP):
        key = first + tl.arange(0, STRIP)
        scores = factor * product(q0, q1, q2, q3, q, q_scales, query, queries, q_grid, k, k_scales, key, keys, k_grid,
                                  size, wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        scores = _masked(scores, key[None, :], query[:, None], keys, CAUSAL, RAGGED)
        higher = tl.maximum(top, tl.max(scores, 1))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(scores - higher[:, None]), 1)
        top = higher
    inverse = 1.0 / total
    tl.store(stats + query, top, mask=query < queries)
    tl.store(stats + tl.num_programs(1).to(tl.int64) * queries + query, inverse, mask=query < queries)
    inverse = inverse * 2.0 ** UP
    place = tl.arange(0, SIZE)
    acc = tl.zeros([ROWS, SIZE], tl.float32)
    for block in range(0, tl.cdiv(end, TERMS)):
        key = block * TERMS + tl.arange(0, TERMS)
        scores = factor * product(q0, q1, q2, q3, q, q_scales, query, queries, q_grid, k, k_scales, key, keys, k_grid,
                                  size, wide, one, TERMS, WIDTH, PARTS, EXACT, WIDE)
        share = shares(scores, key[None, :], query[:, None], keys, top[:, None], inverse[:, None], CAUSAL, RAGGED, UP)
        if KEPT:
            tl.store(weights + (stack * queries + query)[:, None] * keys + key[None, :], share * 2.0 ** -UP,
                     mask=(query < queries)[:, None] & (key < keys)[None, :])
        p, p_scale, _ = converted(share, 0, MAGNITUDE, LOWEST, HIGHEST, UP, 0)
        acc = added(acc, p, p_scale, v, v_scales, block, place, size, keys, long, v_grid, TERMS, UP, EXACT, WIDE)
    store(beside(y, stack, inner, y_outer, y_inner), acc, query, place, queries, size, y_line)
