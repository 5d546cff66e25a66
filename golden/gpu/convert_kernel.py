"""The conversion from FP32 to HBFP as one Triton kernel: docs/numerics.md, section 2.

A program has a tile of a matrix, which it reads once. It may convert it along the columns, along the rows, or both,
since training needs both; each result is written with K contiguous, as the products take it.
"""

import triton
import triton.language as tl

#: What spans count from, so that a buffer of zeros is the span of nothing.
ORIGIN = tl.constexpr(1 << 12)
#: Added to a number below 2^22, it leaves the nearest integer, ties to even, in the low bits.
MAGIC = tl.constexpr(1.5 * 2.0 ** 23)


@triton.jit
def power(exponent):
    """Two to an int32 within -126 to 127."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def power_of_last(exponent, MAGNITUDE: tl.constexpr):
    """Two to the power of the last bit of mantissas, which may be subnormal."""
    last = exponent - MAGNITUDE
    bits = tl.where(last >= -126, (last + 127) << 23, 1 << tl.maximum(last + 149, 0))
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _times(x, up, ONCE: tl.constexpr):
    """Numbers times 2^up; ``ONCE``: 2^up is a normal number."""
    if ONCE:
        y = x * power(up)
    else:
        first = tl.minimum(tl.maximum(up, -100), 100)
        y = x * power(first) * power(up - first)
    return y


@triton.jit
def nearest(x, up, MAGNITUDE: tl.constexpr, ONCE: tl.constexpr = False):
    """Mantissas of numbers, which are normal or 0, times 2^up, plus the magic number: in floats, of which no step but
    that sum rounds. ``ONCE``: 2^up is a normal number."""
    LIMIT: tl.constexpr = float((1 << MAGNITUDE) - 1)
    return tl.minimum(tl.maximum(_times(x, up, ONCE), -LIMIT), LIMIT) + MAGIC


@triton.jit
def by_chance(x, up, drawn, MAGNITUDE: tl.constexpr, NOISE_BITS: tl.constexpr, ONCE: tl.constexpr = False):
    """Mantissas of numbers, which are normal or 0, times 2^up, rounded by what is drawn: int32. Few enough bits that
    the magic number leaves them."""
    size = tl.minimum(tl.abs(_times(x, up + NOISE_BITS, ONCE)), float(1 << (MAGNITUDE + NOISE_BITS)))
    near = size + MAGIC
    floor = near.to(tl.int32, bitcast=True) - tl.where(near - MAGIC > size, 0x4B400001, 0x4B400000)
    whole = tl.minimum((floor + drawn) >> NOISE_BITS, (1 << MAGNITUDE) - 1)
    return tl.where(x < 0, -whole, whole)


@triton.jit
def as_float(whole):
    """int32 below 2^22 in magnitude as float32."""
    return (whole + 0x4B400000).to(tl.float32, bitcast=True) - MAGIC


@triton.jit
def integers(x, exponent, drawn, MAGNITUDE: tl.constexpr, ROUNDING: tl.constexpr, NOISE_BITS: tl.constexpr,
              GRADUAL: tl.constexpr):
    """Signed mantissas of elements whose blocks have these exponents: steps 2, 4 and 5."""
    bits = x.to(tl.int32, bitcast=True)
    field, fraction = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    if GRADUAL:
        significand = tl.where(field > 0, fraction | 0x800000, fraction)
    else:
        significand = tl.where(field > 0, fraction | 0x800000, 0)
    shift = exponent + 126 - tl.maximum(field, 1) + 24 - MAGNITUDE
    cut = tl.minimum(tl.maximum(shift, 0), 25)         # from 25 on nothing stays; below 0 the mantissa saturates
    whole = significand >> cut
    if ROUNDING == "rne":
        half = (1 << cut) >> 1
        whole = (significand + tl.where(cut > 0, half - 1 + (whole & 1), 0)) >> cut
    elif ROUNDING == "stochastic":
        rest = significand - (whole << cut)
        kept = tl.where(shift > NOISE_BITS, rest >> tl.minimum(tl.maximum(shift - NOISE_BITS, 0), 31),
                        rest << tl.maximum(NOISE_BITS - cut, 0))
        whole += (kept + drawn) >> NOISE_BITS
    whole = tl.minimum(whole, (1 << MAGNITUDE) - 1)
    return tl.where(bits < 0, -whole, whole)


@triton.jit
def _write(y, where, inside, x, drawn, exponent, scale, MAGNITUDE: tl.constexpr, ROUNDING: tl.constexpr,
           NOISE_BITS: tl.constexpr, GRADUAL: tl.constexpr, FORM: tl.constexpr):
    """Store elements in their form: the numbers themselves as bfloat16, which has every bit, or integers.

    Of an invalid block the numbers are NaN, and the integers 0.
    """
    if ROUNDING == "rne" and not GRADUAL:
        near = nearest(tl.where(tl.abs(x) >= 2.0 ** -126, x, 0.0), MAGNITUDE - exponent, MAGNITUDE)
        if FORM == "values":
            tl.store(y + where, ((near - MAGIC) * scale).to(tl.bfloat16), mask=inside)
        else:
            near = tl.where(scale == scale, near, MAGIC)
            tl.store(y + where, near.to(tl.int32, bitcast=True).to(y.dtype.element_ty), mask=inside)
    else:
        if ROUNDING == "stochastic" and not GRADUAL and MAGNITUDE + NOISE_BITS <= 20:
            mantissa = by_chance(tl.where(tl.abs(x) >= 2.0 ** -126, x, 0.0), MAGNITUDE - exponent, drawn, MAGNITUDE,
                                 NOISE_BITS)
        else:
            mantissa = integers(x, exponent, drawn, MAGNITUDE, ROUNDING, NOISE_BITS, GRADUAL)
        if FORM == "values":
            tl.store(y + where, (as_float(mantissa) * scale).to(tl.bfloat16), mask=inside)
        else:
            tl.store(y + where, tl.where(scale == scale, mantissa, 0).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _exponents(tops, span_low, span_high, span_top, MAGNITUDE: tl.constexpr, LOWEST: tl.constexpr,
               HIGHEST: tl.constexpr, GRADUAL: tl.constexpr):
    """Exponents of blocks from their largest numbers' bits, scales, and the span with them."""
    top = tops >> 23
    exponent = tl.minimum(tl.maximum(top - 126, LOWEST), HIGHEST)
    used = top < 255
    if not GRADUAL:
        used = used & (top > 0)
    scale = tl.where(top == 255, float("nan"), power_of_last(exponent, MAGNITUDE))
    low = tl.maximum(span_low, tl.where(used, MAGNITUDE - exponent + ORIGIN, 0))
    high = tl.maximum(span_high, tl.where(used, exponent + ORIGIN, 0))
    return exponent, scale, low, high, tl.maximum(span_top, top)


@triton.jit
def _line(first, STEP: tl.constexpr, PLACES: tl.constexpr, BLOCKS: tl.constexpr):
    """Rows or columns of ``BLOCKS`` steps of ``STEP``, which lie in ``PLACES`` each, and which of these hold one."""
    i = tl.arange(0, BLOCKS * PLACES)
    if PLACES == STEP:
        line, some = first * STEP + i, i >= 0
    else:
        line, some = (first + i // PLACES) * STEP + i % PLACES, i % PLACES < STEP
    return line, some


@triton.jit
def _largest(size, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROW_BLOCKS: tl.constexpr, COLUMN_BLOCKS: tl.constexpr,
             ALONG: tl.constexpr, DOWN: tl.constexpr):
    """The largest of each block of a tile: (rows, blocks), (blocks, columns) or, of square ones, (blocks, blocks)."""
    if ALONG:
        size = tl.max(tl.reshape(size, [ROW_BLOCKS * ROWS, COLUMN_BLOCKS, COLUMNS]), 2)
    if DOWN:
        size = tl.max(tl.reshape(size, [ROW_BLOCKS, ROWS, COLUMN_BLOCKS if ALONG else COLUMN_BLOCKS * COLUMNS]), 1)
    return size


@triton.jit
def _for_all(y, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROW_BLOCKS: tl.constexpr, COLUMN_BLOCKS: tl.constexpr,
             ALONG: tl.constexpr, DOWN: tl.constexpr):
    """A number for each block, for all of its elements: what :func:`_largest` made of a tile, as wide as the tile."""
    if DOWN:
        wide: tl.constexpr = COLUMN_BLOCKS if ALONG else COLUMN_BLOCKS * COLUMNS
        y = tl.reshape(tl.broadcast_to(y[:, None, :], [ROW_BLOCKS, ROWS, wide]), [ROW_BLOCKS * ROWS, wide])
    if ALONG:
        y = tl.reshape(tl.broadcast_to(y[:, :, None], [ROW_BLOCKS * ROWS, COLUMN_BLOCKS, COLUMNS]),
                       [ROW_BLOCKS * ROWS, COLUMN_BLOCKS * COLUMNS])
    return y


@triton.jit
def convert(x, row_places, column_places, inner, x_outer, noise, across, across_scales, down, down_scales, span, rows,
            columns, x_stack, x_row, x_column, noise_stack, noise_row, noise_column, across_stack, across_line,
            across_grid, across_k, down_stack, down_line, down_grid, down_k, ROW_STEP: tl.constexpr,
            COLUMN_STEP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROW_BLOCKS: tl.constexpr,
            COLUMN_BLOCKS: tl.constexpr, REPEAT: tl.constexpr, SQUARE: tl.constexpr,
            ACROSS: tl.constexpr, DOWN: tl.constexpr, MAGNITUDE: tl.constexpr, LOWEST: tl.constexpr,
            HIGHEST: tl.constexpr, ROUNDING: tl.constexpr, NOISE_BITS: tl.constexpr, GRADUAL: tl.constexpr,
            FORM: tl.constexpr, GATHERED: tl.constexpr):
    """Convert tiles of ``ROW_BLOCKS`` by ``COLUMN_BLOCKS`` steps of ``ROW_STEP`` by ``COLUMN_STEP`` elements, which lie
    in ``ROWS`` by ``COLUMNS``, powers of two.

    A step is as wide as a block if it is converted ``ACROSS``, with K along the columns, and as high as a block if
    ``DOWN``. Scales lie (blocks along K, lines), or in the grid of the tiles, of which ``down`` has the transpose.
    K is filled up with zeros as far as ``across_k`` and ``down_k`` say. ``span`` becomes the least and the largest
    exponents in use, and the largest exponent field of all numbers. ``GATHERED``: an element lies where the places of
    its row and its column say together; else ``inner`` matrices lie evenly apart, and so do sets of them.
    """
    stack = tl.program_id(2).to(tl.int64)
    x += stack // inner * x_outer + stack % inner * x_stack
    noise += stack * noise_stack
    across += stack * across_stack
    down += stack * down_stack
    across_scales += stack * across_grid * tl.cdiv(columns, COLUMN_STEP)
    down_scales += stack * down_grid * tl.cdiv(rows, ROW_STEP)
    block_row = tl.program_id(1) * ROW_BLOCKS
    grid_row = block_row + tl.arange(0, ROW_BLOCKS)
    in_high = grid_row * ROW_STEP < rows
    row, some_rows = _line(block_row, ROW_STEP, ROWS, ROW_BLOCKS)
    real_row, filled_row = some_rows & (row < rows), some_rows & (row < down_k)
    wide_row = row.to(tl.int64)[:, None]
    down_low = tl.zeros([ROW_BLOCKS, COLUMN_BLOCKS * COLUMNS], tl.int32)
    if SQUARE:
        low = tl.zeros([ROW_BLOCKS, COLUMN_BLOCKS], tl.int32)
    elif ACROSS:
        low = tl.zeros([ROW_BLOCKS * ROWS, COLUMN_BLOCKS], tl.int32)
    else:
        low = down_low
    high, most = low, low
    for turn in range(REPEAT):
        block_column = (tl.program_id(0) * REPEAT + turn) * COLUMN_BLOCKS
        column, some_columns = _line(block_column, COLUMN_STEP, COLUMNS, COLUMN_BLOCKS)
        real_column, filled_column = some_columns & (column < columns), some_columns & (column < across_k)
        wide_column = column.to(tl.int64)[None, :]
        grid_column = block_column + tl.arange(0, COLUMN_BLOCKS)
        in_wide = grid_column * COLUMN_STEP < columns
        inside = real_row[:, None] & real_column[None, :]
        if GATHERED:
            place = (tl.load(row_places + row, mask=real_row, other=0)[:, None]
                     + tl.load(column_places + column, mask=real_column, other=0)[None, :])
        else:
            place = wide_row * x_row + wide_column * x_column
        number = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        size = number.to(tl.int32, bitcast=True) & 0x7FFFFFFF
        if ROUNDING == "stochastic":
            drawn = tl.load(noise + wide_row * noise_row + wide_column * noise_column, mask=inside, other=0)
            drawn = drawn.to(tl.int32)
        else:
            drawn = 0
        if ACROSS or SQUARE:
            tops = _largest(size, ROWS, COLUMNS, ROW_BLOCKS, COLUMN_BLOCKS, True, SQUARE)
            exponent, scale, low, high, most = _exponents(tops, low, high, most, MAGNITUDE, LOWEST, HIGHEST, GRADUAL)
            if SQUARE:
                line, there = grid_row, in_high[:, None] & in_wide[None, :]
            else:
                line, there = row, real_row[:, None] & in_wide[None, :]
            if ACROSS:
                tl.store(across_scales + grid_column[None, :] * across_grid + line[:, None], scale, mask=there)
            if SQUARE and DOWN:
                tl.store(down_scales + line[:, None] * down_grid + grid_column[None, :], scale, mask=there)
            exponent = _for_all(exponent, ROWS, COLUMNS, ROW_BLOCKS, COLUMN_BLOCKS, True, SQUARE)
            scale = _for_all(scale, ROWS, COLUMNS, ROW_BLOCKS, COLUMN_BLOCKS, True, SQUARE)
        if ACROSS:
            _write(across, wide_row * across_line + wide_column, real_row[:, None] & filled_column[None, :], number,
                   drawn, exponent, scale, MAGNITUDE, ROUNDING, NOISE_BITS, GRADUAL, FORM)
        if DOWN and not SQUARE:
            tops = _largest(size, ROWS, COLUMNS, ROW_BLOCKS, COLUMN_BLOCKS, False, True)
            if ACROSS:
                exponent, scale, down_low, _, _ = _exponents(tops, down_low, down_low, down_low, MAGNITUDE, LOWEST,
                                                             HIGHEST, GRADUAL)
            else:
                exponent, scale, low, high, most = _exponents(tops, low, high, most, MAGNITUDE, LOWEST, HIGHEST,
                                                              GRADUAL)
            tl.store(down_scales + grid_row[:, None] * down_grid + column[None, :], scale,
                     mask=in_high[:, None] & real_column[None, :])
            exponent = _for_all(exponent, ROWS, COLUMNS, ROW_BLOCKS, COLUMN_BLOCKS, False, True)
            scale = _for_all(scale, ROWS, COLUMNS, ROW_BLOCKS, COLUMN_BLOCKS, False, True)
        if DOWN:
            _write(down, wide_column * down_line + wide_row, filled_row[:, None] & real_column[None, :], number, drawn,
                   exponent, scale, MAGNITUDE, ROUNDING, NOISE_BITS, GRADUAL, FORM)
    lowest = tl.max(low)
    if DOWN and not SQUARE:
        lowest = tl.maximum(lowest, tl.max(down_low))
    tl.atomic_max(span, lowest, sem="relaxed")
    tl.atomic_max(span + 1, tl.max(high), sem="relaxed")
    tl.atomic_max(span + 2, tl.max(most), sem="relaxed")
