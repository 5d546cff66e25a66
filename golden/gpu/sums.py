"""Sums in a fixed order on a GPU: the gradient of a bias, and of what is multiplied block by block."""

import torch
import triton
import triton.language as tl

from .runtime import INTERPRETED, on, on_hopper

if not INTERPRETED:
    from .copies import copied
    from .sums_kernel import copied_row_sums

#: Columns of a program, and rows that are on their way at the same time. Behind the last, zeros are added: a sum is
#: never -0, for it begins at 0.
_COLUMNS, _ROWS = (32, 4) if INTERPRETED else (32, 64)
#: Rows of a copy, and copies on their way, where they run by themselves.
_COPIED, _COPIES = 128, 4


@triton.jit
def _row_sums(x, y, rows, columns, x_row, x_column, ON: tl.constexpr, WIDE: tl.constexpr,
              ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    x += column * x_column
    total = tl.zeros([COLUMNS], tl.float32)
    if ON:
        total = tl.load(y + column, mask=column < columns, other=0.0)
    if WIDE:                                           # steps that 32 bits do not hold
        x_row = x_row.to(tl.int64)
    whole = rows // ROWS
    for _ in range(whole):
        for row in tl.static_range(ROWS):
            total += tl.load(x + row * x_row, mask=column < columns, other=0.0)
        x += tl.full([1], ROWS, tl.int64) * x_row
    left = rows - whole * ROWS
    for row in tl.static_range(ROWS):
        total += tl.load(x + row * x_row, mask=(column < columns) & (row < left), other=0.0)
    canonical = tl.full([1], 0x7FC00000, tl.int32).to(tl.float32, bitcast=True)
    tl.store(y + column, tl.where(total == total, total, canonical), mask=column < columns)


def row_sums(x: torch.Tensor, onto: torch.Tensor | None = None) -> torch.Tensor:
    """Sums of (rows, columns) float32 over the rows, in ascending order from 0, or from ``onto``, on: (columns)."""
    rows, columns = x.shape
    y = torch.zeros(columns, device=x.device) if onto is None else onto
    if not x.numel():
        return y
    with on(x):
        grid = triton.cdiv(columns, _COLUMNS),
        if on_hopper(x.device) and _copyable(x):
            copied_row_sums[grid](copied(x[None], columns, [_COPIED, _COLUMNS], 0), y, rows, columns,
                                  ON=onto is not None, STAGES=_COPIES, ROWS=_COPIED, COLUMNS=_COLUMNS, num_warps=1)
        else:
            _row_sums[grid](x, y, rows, columns, *x.stride(), ON=onto is not None,
                            WIDE=_ROWS * x.stride(0) >= 1 << 31, ROWS=_ROWS, COLUMNS=_COLUMNS, num_warps=1)
    return y


def _copyable(x):
    """Whether the copy engine takes rows as they lie: one behind the other, each from a multiple of 16 bytes on."""
    return x.stride(1) == 1 and x.stride(0) >= x.shape[1] and x.stride(0) % 4 == 0 == x.data_ptr() % 16
