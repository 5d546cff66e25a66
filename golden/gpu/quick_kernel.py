"""Products whose block sums the tensor cores give: ``acc = acc + p``, block after block, in FP32.

``values``: operands are bfloat16 numbers, which hold mantissas of up to nine bits with their exponents. A block's
products and sums are integers below 2^23 times one power of two, which tensor cores add exactly, so the sum that they
give is the law's p. ``integers``: int8 mantissas; p is their exact int32 sum times a power of two.

Both serve where no p can be subnormal or infinite, which the operands' spans say; else the program returns at once, and
:mod:`golden.gpu.exact_kernel` has the product.
"""

import triton
import triton.language as tl

from .shared_kernel import in_range, store, tile


@triton.jit
def _product(p, q, total, WIDE: tl.constexpr):
    """Tiles (M, K) and (N, K) multiplied; ``WIDE``: as float32, where the interpreter has no bfloat16."""
    if WIDE:
        p, q = p.to(tl.float32), q.to(tl.float32)
    return tl.dot(p, q.T, total, out_dtype=total.dtype)


@triton.jit
def _operand(source, at, line, lines, k, stack, first, term, BY_DESCRIPTOR: tl.constexpr, LINES: tl.constexpr,
             CHUNK: tl.constexpr, EVEN: tl.constexpr):
    """A tile (LINES, CHUNK) of an operand, from a line and a term on."""
    if BY_DESCRIPTOR:
        y = source.load([stack, first, term]).reshape([LINES, CHUNK])
    else:
        place = term + tl.arange(0, CHUNK)
        inside = (line < lines)[:, None]
        if not EVEN:
            inside = inside & (place < k)[None, :]
        y = tl.load(at + place[None, :], mask=inside, other=0.0)
    return y


@triton.jit
def _within(p, c, TERMS: tl.constexpr, CHUNK: tl.constexpr):
    """A tile with zeros from the end of its block on."""
    return tl.where((c + tl.arange(0, CHUNK) < TERMS)[None, :], p, 0.0).to(p.dtype)


@triton.jit
def quick(a, a_scales, a_span, b, b_scales, b_span, y, m, n, k, one, a_stack, a_line, a_grid, b_stack, b_line, b_grid,
          y_stack, y_line, TERMS: tl.constexpr, CHUNK: tl.constexpr, A_SIDE: tl.constexpr, B_SIDE: tl.constexpr,
          VALUES: tl.constexpr, BY_DESCRIPTOR: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr,
          STAGES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """``y = a b^T`` of lines (M, K) and (N, K); ``one`` is 1.0, and unknown to the compiler.

    The sum of a block must not begin at what came before: the tensor cores would round another way. A fused multiply-
    add with a factor of one, in which nothing but the sum is rounded, is what the compiler cannot take for their sum.
    """
    if not in_range(a_span, b_span, TERMS):
        return
    tile_row, tile_column = tile(m, n, BLOCK_M, BLOCK_N, GROUP)
    stack = tl.program_id(1)
    wide_stack = stack.to(tl.int64)
    row, column = tile_row * BLOCK_M, tile_column * BLOCK_N
    rows, columns = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
    if BY_DESCRIPTOR:
        a_at, b_at = rows, columns
    else:
        a_at = a + wide_stack * a_stack + rows.to(tl.int64)[:, None] * a_line
        b_at = b + wide_stack * b_stack + columns.to(tl.int64)[:, None] * b_line
    blocks = tl.cdiv(k, TERMS)
    a_scales += wide_stack * a_grid * blocks + rows // A_SIDE
    b_scales += wide_stack * b_grid * blocks + columns // B_SIDE
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    factor = tl.zeros([BLOCK_M, BLOCK_N], tl.float32) + one
    for j in tl.range(0, blocks, num_stages=STAGES):
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32 if VALUES else tl.int32)
        for c in tl.static_range(0, TERMS, CHUNK):
            term = j * TERMS + c
            p = _operand(a, a_at, rows, m, k, stack, row, term, BY_DESCRIPTOR, BLOCK_M, CHUNK, EVEN)
            q = _operand(b, b_at, columns, n, k, stack, column, term, BY_DESCRIPTOR, BLOCK_N, CHUNK, EVEN)
            if c + CHUNK > TERMS:
                p, q = _within(p, c, TERMS, CHUNK), _within(q, c, TERMS, CHUNK)
            total = _product(p, q, total, WIDE)
        if VALUES:
            acc = tl.fma(total, factor, acc)
        else:
            a_scale = tl.load(a_scales + j * a_grid, mask=rows < m, other=0.0)
            b_scale = tl.load(b_scales + j * b_grid, mask=columns < n, other=0.0)
            acc = tl.fma(total.to(tl.float32), a_scale[:, None] * b_scale[None, :], acc)
    store(y + wide_stack * y_stack, acc, rows, columns, m, n, y_line)
