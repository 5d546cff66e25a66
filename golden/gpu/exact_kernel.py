"""Products of HBFP operands for every width, block, exponent and accumulation: docs/numerics.md, sections 3 to 5.

Block sums are exact integers of 64 bits, of digits whose products the tensor cores add exactly. They become floats by
way of float64, which holds what the law rounds once.
"""

import triton
import triton.language as tl

from .shared_kernel import in_range, store

#: Sums of a chunk's products of digits, each at most 2^16, are exact in float32.
DIGIT = tl.constexpr(8)
#: Largest double that rounds (24 bits, exponent unbounded) below 2^-126.
FLUSHED_BELOW = tl.constexpr(2.0 ** -126 - 2.0 ** -151)
NORMAL = tl.constexpr(2.0 ** -126)


@triton.jit
def _power64(exponent):
    """Two to an int32 within -1022 to 1023, float64."""
    return ((exponent.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def _exponent(scale):
    """The exponent of a power of two, which float64 has as a normal number."""
    return ((scale.to(tl.float64).to(tl.int64, bitcast=True) >> 52) - 1023).to(tl.int32)


@triton.jit
def _integers(tile, last, VALUES: tl.constexpr):
    """Mantissas of a tile, int32; ``last`` is the exponent of each line's last bit."""
    if VALUES:
        value = tile.to(tl.float32).to(tl.float64) * _power64(-last)[:, None]
        y = tl.where(value == value, value, 0.0).to(tl.int32)
    else:
        y = tile.to(tl.int32)
    return y


@triton.jit
def _upper(mantissa):
    return (mantissa + 128) >> DIGIT


@triton.jit
def _half_up(value, shift):
    """Shift right by at least 0, rounding half up."""
    by = tl.minimum(tl.maximum(shift, 0), 63).to(tl.int64)
    below = (value >> tl.maximum(by - 1, 0)) & 1
    return (value >> by) + tl.where(by > 0, below, 0)


@triton.jit
def single(wide, GRADUAL: tl.constexpr):
    """float64 rounded once to float32."""
    y = wide.to(tl.float32)
    if not GRADUAL:
        y = tl.where(tl.abs(wide) < FLUSHED_BELOW, 0.0, y)
    return y


@triton.jit
def _narrow(wide, FRACTION: tl.constexpr, GRADUAL: tl.constexpr):
    """float64 rounded once to a float of FP32's exponent and ``FRACTION`` bits, to nearest even, as float64."""
    CUT: tl.constexpr = 52 - FRACTION
    bits = wide.to(tl.int64, bitcast=True)
    bits = (bits + ((1 << (CUT - 1)) - 1) + ((bits >> CUT) & 1)) & (-(1 << CUT))
    finite = tl.abs(wide) < float("inf")
    y = tl.where(finite, bits.to(tl.float64, bitcast=True), wide)
    if GRADUAL:                                        # below the normal numbers the last place is the same for all
        magic = tl.full([1], 1.5 * 2.0 ** (52 - 126 - FRACTION), tl.float64)
        y = tl.where(tl.abs(wide) < NORMAL, (wide + magic) - magic, y)
    else:
        y = tl.where(tl.abs(y) < NORMAL, 0.0, y)
    infinite = tl.where(y > 0, float("inf"), float("-inf")).to(tl.float64)
    return tl.where(tl.abs(y) >= 2.0 ** 128, infinite, y)


@triton.jit
def exact(a, a_scales, a_span, b, b_scales, b_span, y, stacks, m, n, k, a_stack, a_line, a_grid, b_stack, b_line,
          b_grid, y_stack, y_line, GUARD, TERMS: tl.constexpr, A_SIDE: tl.constexpr, B_SIDE: tl.constexpr,
          A_MAGNITUDE: tl.constexpr, B_MAGNITUDE: tl.constexpr, A_VALUES: tl.constexpr, B_VALUES: tl.constexpr,
          ACCUMULATE: tl.constexpr, GRADUAL: tl.constexpr, ONLY_IF_NEEDED: tl.constexpr, CHUNK: tl.constexpr,
          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """``y = a b^T`` of lines (S, M, K) and (S, N, K). ``ONLY_IF_NEEDED``: not where the quick kernel has served."""
    if ONLY_IF_NEEDED:
        if in_range(a_span, b_span, TERMS):
            return
    blocks, high, wide = tl.cdiv(k, TERMS), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in range(tl.program_id(0), stacks * high * wide, tl.num_programs(0)):
        stack = (tile // (high * wide)).to(tl.int64)
        rows = tile // wide % high * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile % wide * BLOCK_N + tl.arange(0, BLOCK_N)
        a_rows = a + stack * a_stack + rows.to(tl.int64)[:, None] * a_line
        b_rows = b + stack * b_stack + columns.to(tl.int64)[:, None] * b_line
        a_from = a_scales + stack * a_grid * blocks + rows // A_SIDE
        b_from = b_scales + stack * b_grid * blocks + columns // B_SIDE
        bad_row, bad_column = rows < 0, columns < 0
        last = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
        if ACCUMULATE == "aligned":
            acc = tl.zeros([BLOCK_M, BLOCK_N], tl.int64)
        elif ACCUMULATE == "fp32":
            acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        else:
            acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float64)
        for j in range(blocks):
            a_scale = tl.load(a_from, mask=rows < m, other=1.0)
            b_scale = tl.load(b_from, mask=columns < n, other=1.0)
            a_from, b_from = a_from + a_grid, b_from + b_grid
            a_bad, b_bad = a_scale != a_scale, b_scale != b_scale
            bad_row, bad_column = bad_row | a_bad, bad_column | b_bad
            a_last, b_last = _exponent(tl.where(a_bad, 1.0, a_scale)), _exponent(tl.where(b_bad, 1.0, b_scale))
            total = tl.zeros([BLOCK_M, BLOCK_N], tl.int64)
            for c in range(0, TERMS, CHUNK):
                term = c + tl.arange(0, CHUNK)
                place = j * TERMS + term
                real = (term < TERMS) & (place < k)
                p = _integers(tl.load(a_rows + place[None, :], mask=(rows < m)[:, None] & real[None, :], other=0.0),
                              a_last, A_VALUES)
                q = _integers(tl.load(b_rows + place[None, :], mask=(columns < n)[:, None] & real[None, :], other=0.0),
                              b_last, B_VALUES)
                p_high, q_high = _upper(p), _upper(q)
                p_low, q_low = (p - (p_high << DIGIT)).to(tl.float16), tl.trans((q - (q_high << DIGIT)).to(tl.float16))
                total += tl.dot(p_low, q_low).to(tl.int64)
                if A_MAGNITUDE >= DIGIT:
                    upper = p_high.to(tl.float16)
                    total += tl.dot(upper, q_low).to(tl.int64) << DIGIT
                    if B_MAGNITUDE >= DIGIT:
                        total += tl.dot(upper, tl.trans(q_high.to(tl.float16))).to(tl.int64) << (2 * DIGIT)
                if B_MAGNITUDE >= DIGIT:
                    total += tl.dot(p_low, tl.trans(q_high.to(tl.float16))).to(tl.int64) << DIGIT
            step = a_last[:, None] + b_last[None, :]
            if ACCUMULATE == "aligned":
                total = total << GUARD
                ahead = tl.where(j > 0, step - last, 0)
                acc = _half_up(acc, ahead) + _half_up(total, -ahead)
                last = tl.where(j > 0, tl.maximum(last, step), step)
            else:
                part = total.to(tl.float64) * _power64(step)
                if ACCUMULATE == "fp32":
                    acc += single(part, GRADUAL)
                    if not GRADUAL:
                        acc = tl.where(tl.abs(acc) < NORMAL, 0.0, acc)
                elif ACCUMULATE == "fp24":
                    acc = _narrow(acc + _narrow(part, 15, GRADUAL), 15, GRADUAL)
                else:
                    acc = _narrow(acc + _narrow(part, 7, GRADUAL), 7, GRADUAL)
        if ACCUMULATE == "aligned":                    # more bits than float64 has: what lies below is one sticky bit
            sticky = ((acc >> 9) << 9) | tl.where((acc & 511) != 0, 512, 0)
            near = tl.where(tl.abs(acc) < (1 << 53), acc, sticky)
            found = single(near.to(tl.float64) * _power64(last - GUARD), GRADUAL)
        else:
            found = acc.to(tl.float32)
        found = tl.where(bad_row[:, None] | bad_column[None, :], float("nan"), found)
        store(y + stack * y_stack, found, rows, columns, m, n, y_line)
