"""Operations on windows: pooling, and means over pixels."""

from dataclasses import replace
from itertools import pairwise
from math import prod

import torch

from ..vector import programs
from .borders import LONGEST, adaptive, adaptive_maximum, average, long, maximum, overhangs
from .operation import Operation, Rows, Shape, Unsupported, Windows, calls, dims_of, pair
from .results import Result

aten = torch.ops.aten
#: Why windows of ``ceil_mode=True`` have no program.
HANGS = "ceil_mode=True has windows that hang over the edge; ceil_mode=False would do"


def _hang(ceil_mode, x, size, stride, padding, dilation=(1, 1)):
    if ceil_mode and any(overhangs(x, size, stride, padding, dilation)):
        raise Unsupported(HANGS)
    if long(size):
        raise Unsupported(f"windows of {prod(size)} elements are taken row by row first")


def _max_pool(x, size, stride=(), padding=0, dilation=1, ceil_mode=False):
    size, padding, dilation = pair(size), pair(padding), pair(dilation)
    stride = pair(stride or size)
    _hang(ceil_mode, x, size, stride, padding, dilation)
    return Windows(programs.maximum(prod(size)), (x,), size, stride, padding, dilation, float("-inf"))


def _indices(*given):
    return (aten.max_pool2d_with_indices(*given)[1],)


def _average_pool(x, size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    size, padding = pair(size), pair(padding)
    stride = pair(stride or size)
    _hang(ceil_mode, x, size, stride, padding)
    if not count_include_pad and any(padding) and divisor_override is None:
        raise Unsupported("it divides by the elements that are no border")
    return Windows(programs.average(prod(size), divisor_override), (x,), size, stride, padding)


def _divided(x, size):
    """The window that makes so many pixels of images, whose sides it divides."""
    (h, w), (oh, ow) = x.shape[-2:], pair(size)
    if not oh or not ow or h % oh or w % ow:
        raise Unsupported(f"{h} x {w} pixels are no multiple of {oh} x {ow}; sides that divide would do")
    return h // oh, w // ow


def _adaptive_pool(x, size):
    return _average_pool(x, _divided(x, size))


def _adaptive_max(x, size):
    return _max_pool(x, _divided(x, size))


def _adaptive_places(x, size):
    return (aten.adaptive_max_pool2d(x, size)[1],)


def _across(down, value):
    """A size of images of one row, of that of a line, which torch also takes as a list of one number."""
    return (down, value if isinstance(value, int) else value[0])


def _line(form):
    """The form of windows over (..., L), of that over images of one row."""
    def of_one(x, size, stride=(), padding=0, *rest):
        given = form(x, _across(1, size), _across(1, stride or size), _across(0, padding), *rest)
        return replace(given, line=True)
    return of_one


def _average_line(x, size, stride=(), padding=0, *rest):
    return average(x.unsqueeze(-2), _across(1, size), _across(1, stride or size), _across(0, padding),
                   *rest).squeeze(-2)


def _max_line(x, size, stride=(), padding=0, dilation=1, *rest):
    return maximum(x.unsqueeze(-2), _across(1, size), _across(1, stride or size), _across(0, padding),
                   _across(1, dilation), *rest)[0].squeeze(-2)


def _dilated(x, size, stride, padding, dilation=1, ceil_mode=False):
    return _max_pool(x, size, stride, padding, _across(1, dilation), ceil_mode)


def _mean_parts(x, dim=None, keepdim=False, dtype=None):
    if dtype not in (None, torch.float32):
        raise Unsupported(f"it gives {dtype}; numbers of float32 would do".replace("torch.", ""))
    return torch.sum(x, dim or list(range(x.dim())), keepdim) * (1 / prod(x.shape[d] for d in dim or range(x.dim())))


def pixels(x: torch.Tensor, over: tuple[int, ...]) -> tuple[int, int] | None:
    """The window that dimensions of a tensor are, seen as pixels; None where they cannot be, or are too many.

    What is left must be images and channels: dimensions that follow each other, and the last of those that are left.
    """
    lead = [d for d in range(x.dim()) if d not in over][:-1]
    apart = any(second != first + 1 for first, second in pairwise(lead))
    if not over or apart or x.dim() - 1 in over and (x.dim() < 4 or 1 in over):
        return None
    sizes = [x.shape[d] for d in over]
    window = (sizes[0], 1) if len(over) == 1 else (prod(sizes[:-1]), sizes[-1])
    return window if prod(window) <= LONGEST else None


def _mean(x, dim=None, keepdim=False, dtype=None):
    over = dims_of(x, dim)
    if dtype not in (None, torch.float32):
        raise Unsupported(f"it gives {dtype}; numbers of float32 would do".replace("torch.", ""))
    if over == (x.dim() - 1,):
        return Rows(programs.row_mean(x.shape[-1]), (x,), results=(Result(True, keep=keepdim),))
    window = pixels(x, over)
    if window is None:
        raise Unsupported(f"it is a mean over dimensions {list(over)} of {x.dim()}, a sum and a product")
    return Windows(programs.average(prod(window)), (x,), window, window, over=over, keep=keepdim)


OPERATIONS = (
    Operation("max_pool2d", calls("max_pool2d_with_indices"), Shape.WINDOW, _max_pool, maximum, kept=_indices),
    Operation("max_pool1d", calls("max_pool1d"), Shape.WINDOW, _line(_dilated), _max_line),
    Operation("avg_pool1d", calls("avg_pool1d"), Shape.WINDOW, _line(_average_pool), _average_line),
    Operation("avg_pool2d", calls("avg_pool2d"), Shape.WINDOW, _average_pool, average),
    Operation("adaptive_avg_pool2d", calls("_adaptive_avg_pool2d"), Shape.WINDOW, _adaptive_pool, adaptive),
    Operation("adaptive_max_pool2d", calls("adaptive_max_pool2d"), Shape.WINDOW, _adaptive_max,
              adaptive_maximum, kept=_adaptive_places),
    Operation("mean", calls("mean"), Shape.WINDOW, _mean, _mean_parts))
