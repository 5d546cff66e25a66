"""What the kernels of products share: when which of them serves, where their tiles lie, and how results are written."""

import triton
import triton.language as tl

from .convert_kernel import ORIGIN


@triton.jit
def in_range(a_span, b_span, TERMS: tl.constexpr):
    """Whether no sum of a block lies below 2^-126 or above 2^127, from the spans of both operands, and no step on the
    way to it does."""
    a_low, b_low = -tl.load(a_span) + ORIGIN, -tl.load(b_span) + ORIGIN
    a_high, b_high = tl.load(a_span + 1) - ORIGIN, tl.load(b_span + 1) - ORIGIN
    reach = a_high + b_high
    LENGTH: tl.constexpr = TERMS.bit_length()
    least = tl.minimum(a_low + b_low, tl.minimum(a_low, b_low))
    return (least >= -126) & (reach + LENGTH <= 127) & (tl.maximum(a_high, b_high) <= 100)


@triton.jit
def within(span, LOW: tl.constexpr, HIGH: tl.constexpr):
    """Whether last bits of mantissas are at least 2^LOW, and exponents at most HIGH."""
    return (-tl.load(span) + ORIGIN >= LOW) & (tl.load(span + 1) - ORIGIN <= HIGH)


@triton.jit
def real(first, second, third):
    """Whether three operands have no invalid block, from their spans."""
    return tl.maximum(tl.maximum(tl.load(first + 2), tl.load(second + 2)), tl.load(third + 2)) < 255


@triton.jit
def tile(m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a program's tile: groups of rows share their columns in the cache."""
    program = tl.program_id(0)
    down, right = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    in_group = GROUP * right
    first = program // in_group * GROUP
    size = tl.minimum(down - first, GROUP)
    return first + program % in_group % size, program % in_group // size


@triton.jit
def store(y, acc, rows, columns, m, n, y_line):
    """Write a tile of results (M, N), with one NaN."""
    canonical = tl.full([1, 1], 0x7FC00000, tl.int32).to(tl.float32, bitcast=True)
    tl.store(y + rows.to(tl.int64)[:, None] * y_line + columns[None, :], tl.where(acc == acc, acc, canonical),
             mask=(rows < m)[:, None] & (columns < n)[None, :])
