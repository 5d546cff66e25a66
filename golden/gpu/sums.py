"""Sums in a fixed order on a GPU: the gradient of a bias."""

import torch
import triton
import triton.language as tl

from .runtime import INTERPRETED, on

#: Columns of a program, and rows that are on their way at the same time.
_COLUMNS, _ROWS = (32, 4) if INTERPRETED else (32, 64)


@triton.jit
def _row_sums(x, y, rows, columns, x_row, x_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    x += column.to(tl.int64) * x_column
    total = tl.zeros([COLUMNS], tl.float32)
    for first in range(0, rows, ROWS):
        for row in tl.static_range(ROWS):
            inside = (column < columns) & (first + row < rows)
            total += tl.load(x, mask=inside, other=0.0)
            x += x_row
    tl.store(y + column, total, mask=column < columns)


def row_sums(x: torch.Tensor) -> torch.Tensor:
    """Sums of (rows, columns) float32 over the rows, in ascending order from 0 on: (columns)."""
    rows, columns = x.shape
    y = torch.zeros(columns, device=x.device)
    if x.numel():
        with on(x):
            _row_sums[triton.cdiv(columns, _COLUMNS),](x, y, rows, columns, *x.stride(), ROWS=_ROWS, COLUMNS=_COLUMNS,
                                                       num_warps=1)
    return y
