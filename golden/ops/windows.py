"""Operations on windows: pooling, and means over pixels."""

from dataclasses import replace
from math import prod

import torch

from ..vector import programs
from .operation import Operation, Rows, Shape, Unsupported, Windows, calls, pair
from .results import Result

aten = torch.ops.aten
#: Why windows of ``ceil_mode=True`` have no program.
HANGS = "ceil_mode=True has windows that hang over the edge; ceil_mode=False would do"


def _max_pool(x, size, stride=(), padding=0, dilation=1, ceil_mode=False):
    if ceil_mode:
        raise Unsupported(HANGS)
    size = pair(size)
    return Windows(programs.maximum(prod(size)), (x,), size, pair(stride or size), pair(padding), pair(dilation),
                   float("-inf"))


def _indices(*given):
    return (aten.max_pool2d_with_indices(*given)[1],)


def _average_pool(x, size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    if ceil_mode:
        raise Unsupported(HANGS)
    if divisor_override is not None or not count_include_pad and any(pair(padding)):
        raise Unsupported("it divides by another number than the window's elements; count_include_pad=True without "
                          "divisor_override would do")
    size = pair(size)
    return Windows(programs.average(prod(size)), (x,), size, pair(stride or size), pair(padding))


def _adaptive_pool(x, size):
    (h, w), (oh, ow) = x.shape[-2:], pair(size)
    if not oh or not ow or h % oh or w % ow:
        raise Unsupported(f"{h} x {w} pixels are no multiple of {oh} x {ow}; sides that divide would do")
    return _average_pool(x, (h // oh, w // ow))


def _line(form):
    """The form of windows over (..., L), of that over images of one row."""
    def of_one(x, size, stride=(), padding=0, *rest):
        def wide(one, value):
            return (one, value if isinstance(value, int) else value[0])
        given = form(x, wide(1, size), wide(1, stride or size), wide(0, padding), *rest)
        return replace(given, line=True)
    return of_one


def _dilated(x, size, stride, padding, dilation=1, ceil_mode=False):
    return _max_pool(x, size, stride, padding, (1, dilation if isinstance(dilation, int) else dilation[0]), ceil_mode)


def _mean_parts(x, dim=None, keepdim=False, dtype=None):
    if dtype not in (None, torch.float32):
        raise Unsupported(f"it gives {dtype}; numbers of float32 would do".replace("torch.", ""))
    return torch.sum(x, dim or list(range(x.dim())), keepdim) * (1 / prod(x.shape[d] for d in dim or range(x.dim())))


def _mean(x, dim=None, keepdim=False, dtype=None):
    over = tuple(sorted(d % x.dim() for d in (range(x.dim()) if dim is None else dim)))
    if dtype not in (None, torch.float32):
        raise Unsupported(f"it gives {dtype}; numbers of float32 would do".replace("torch.", ""))
    if over == (x.dim() - 1,):
        return Rows(programs.row_mean(x.shape[-1]), (x,), results=(Result(True, keep=keepdim),))
    if not over or x.dim() - 1 in over and (x.dim() < 4 or 1 in over):
        raise Unsupported(f"it is a mean over dimensions {list(over)} of {x.dim()}, a sum and a product")
    sizes = [x.shape[d] for d in over]
    window = (sizes[0], 1) if len(over) == 1 else (prod(sizes[:-1]), sizes[-1])
    return Windows(programs.average(prod(window)), (x,), window, window, over=over, keep=keepdim)


OPERATIONS = (
    Operation("max_pool2d", calls("max_pool2d_with_indices"), Shape.WINDOW, _max_pool, kept=_indices),
    Operation("max_pool1d", calls("max_pool1d"), Shape.WINDOW, _line(_dilated)),
    Operation("avg_pool1d", calls("avg_pool1d"), Shape.WINDOW, _line(_average_pool)),
    Operation("avg_pool2d", calls("avg_pool2d"), Shape.WINDOW, _average_pool),
    Operation("adaptive_avg_pool2d", calls("_adaptive_avg_pool2d"), Shape.WINDOW, _adaptive_pool),
    Operation("mean", calls("mean"), Shape.WINDOW, _mean, _mean_parts))
