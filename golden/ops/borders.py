"""Pooling whose windows hang over an edge, leave borders out, or differ in size: made of whole windows.

An average is the sum of a window, zeros of the border too, times the reciprocal of the number that torch divides by,
rounded to FP32.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import torch

from .operation import Unsupported, pair

aten = torch.ops.aten
Pair = tuple[int, int]
#: Most elements of a window, whose program is one of the vector unit's instructions.
LONGEST = 254


def long(size: Pair) -> bool:
    """Whether windows are taken row by row first; Unsupported if a row or a column is too long in itself."""
    if max(size) > LONGEST:
        raise Unsupported(f"windows of {size[0]} x {size[1]} elements are more than a vector instruction's; at most "
                          f"{LONGEST} a side would do")
    return size[0] * size[1] > LONGEST


def overhang(side: int, size: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How many elements behind the padded side the last window of ``ceil_mode=True`` reaches."""
    reach, padded = dilation * (size - 1) + 1, side + 2 * padding
    windows = -(-(padded - reach) // stride) + 1
    windows -= (windows - 1) * stride >= side + padding    # none begins in the border behind
    return max(0, (windows - 1) * stride + reach - padded)


def overhangs(x: torch.Tensor, size: Pair, stride: Pair, padding: Pair, dilation: Pair = (1, 1)) -> list[int]:
    """:func:`overhang` of the sides of images (..., H, W)."""
    return [overhang(*each) for each in zip(x.shape[-2:], size, stride, padding, dilation, strict=True)]


def bordered(x: torch.Tensor, padding: Pair, behind: Sequence[int], number: float) -> torch.Tensor:
    """Images with a border all around, and more of it behind."""
    (ph, pw), (eh, ew) = padding, behind
    around = [pw, pw + ew, ph, ph + eh]
    return aten.constant_pad_nd(x, around, number) if any(around) else x


def maximum(x: torch.Tensor, size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
            ) -> tuple[torch.Tensor, torch.Tensor]:
    """Max pooling with ``ceil_mode=True``, and where each maximum lies in its image."""
    size, padding, dilation = pair(size), pair(padding), pair(dilation)
    stride = pair(stride or size)
    around = bordered(x, padding, overhangs(x, size, stride, padding, dilation), float("-inf"))
    if long(size):
        rows = aten.max_pool2d_with_indices(around, [1, size[1]], [1, stride[1]], 0, [1, dilation[1]])[0]
        most = aten.max_pool2d_with_indices(rows, [size[0], 1], [stride[0], 1], 0, [dilation[0], 1])[0]
        return most, x.new_empty(0)
    most, places = aten.max_pool2d_with_indices(around, size, stride, 0, dilation)
    wide = around.shape[-1]
    rows, columns = places // wide - padding[0], places % wide - padding[1]
    return most, rows * x.shape[-1] + columns


def average(x: torch.Tensor, size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
            count_include_pad: bool = True, divisor_override: int | None = None) -> torch.Tensor:
    """Average pooling in which not every window has as many elements as the others."""
    size, padding = pair(size), pair(padding)
    stride = pair(stride or size)
    behind = overhangs(x, size, stride, padding) if ceil_mode else (0, 0)
    around = bordered(x, padding, behind, 0.0)
    if divisor_override is not None:
        return _over(around, size, stride, divisor_override)
    high, wide = (_counts(*each, count_include_pad) for each in
                  zip(x.shape[-2:], size, stride, padding, behind, strict=True))
    if len({*high}) == len({*wide}) == 1:
        return _over(around, size, stride, high[0] * wide[0])
    return _over(around, size, stride, 1) * _factors(x, high, wide)


def _over(x, size, stride, divisor):
    """The sums of windows over a number."""
    if long(size):
        x = aten.avg_pool2d(x, [1, size[1]], [1, stride[1]], 0, False, True, 1)
        size, stride = (size[0], 1), (stride[0], 1)
    return aten.avg_pool2d(x, size, stride, 0, False, True, divisor)


def _counts(side, size, stride, padding, behind, borders):
    """How many elements of a side torch counts in each window."""
    found = []
    for start in range(-padding, side + padding + behind - size + 1, stride):
        stop = min(start + size, side + padding)
        found.append(stop - start if borders else min(stop, side) - max(start, 0))
    return found


def _factors(x, high, wide):
    """Reciprocals of products, a row for each of one factor."""
    def row(count):
        return torch.cat([torch.full((1, len(list(some))), 1 / (count * each), dtype=x.dtype, device=x.device)
                          for each, some in groupby(wide)], 1)
    return torch.cat([row(count).expand(len(list(some)), -1) for count, some in groupby(high)], 0)


def adaptive(x: torch.Tensor, size: Any, pool: Callable[..., torch.Tensor] = aten.avg_pool2d) -> torch.Tensor:
    """Adaptive pooling to sides that do not divide: windows of one size that are equally far apart together."""
    sides = [side if each is None else each for side, each in zip(x.shape[-2:], _sides(size), strict=True)]
    if not all(sides):
        raise Unsupported(f"it gives {sides[0]} x {sides[1]} pixels; sides above 0 would do")
    rows, columns = (list(_alike(*each)) for each in zip(x.shape[-2:], sides, strict=True))
    return _pieces(rows, -2, lambda first, stop, high, down: _pieces(
        columns, -1, lambda left, right, width, across: pool(
            x[..., first:stop, left:right], (high, width), (down, across))))


def adaptive_maximum(x: torch.Tensor, size: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of maxima, and what torch keeps beside them for gradients, which are none here."""
    return adaptive(x, size, lambda *given: aten.max_pool2d_with_indices(*given)[0]), x.new_empty(0)


def _sides(size):
    return (size, size) if isinstance(size, int) else tuple(size) * (2 // len(size))


def _pieces(runs: Sequence[Any], dim: int, made: Callable[..., torch.Tensor]) -> torch.Tensor:
    parts = [made(*each) for each in runs]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def _alike(side, count):
    """(first element, behind the last, window, step) of runs of windows."""
    windows = [(place * side // count, -(-(place + 1) * side // count)) for place in range(count)]
    while windows:
        (first, stop), taken = windows[0], 1
        step = windows[1][0] - first if len(windows) > 1 else stop - first
        while step and taken < len(windows) and windows[taken] == (first + taken * step, stop + taken * step):
            taken += 1
        yield first, windows[taken - 1][1], stop - first, step or 1
        windows = windows[taken:]
