"""Where the patches of a convolution lie in memory, and their conversion by the kernels.

Convolutions are of images (N, C, H, W) or of volumes (N, C, D, H, W), whose taps of depth come behind those of columns.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from hbfp.format import HBFPFormat

from ..fast import kernels, lanes, patches
from ..fast.lanes import Generators
from .formats import Formats
from .memory import array
from .phases import Phase
from .placed import Given
from .portable import on_host
from .record import watcher

#: A number for each dimension of images or volumes.
Sides = tuple[int, ...]
#: Dimensions of images and volumes -> the order of a kernel's in K.
ORDER = {2: (0, 1), 3: (1, 2, 0)}


def channels_last(x: torch.Tensor, padding: Sequence[int]) -> torch.Tensor:
    """(N, C, H, W) -> (N, H + padding, W + padding, C), contiguous; padding (left, right, top, bottom).

    Volumes have depth in front of H, and its padding behind the others.
    """
    last = x.permute(0, *range(2, x.dim()), 1)
    if not any(padding) and last.is_contiguous():
        return last
    if x.device.type == "cpu" and kernels.library() is not None:
        before, after = padding[-2::-2], padding[::-2]
        sides = [sum(each) for each in zip(x.shape[2:], before, after, strict=True)]
        return torch.from_numpy(patches.laid(array(x), sides, before))
    return (pad(last, (0, 0, *padding)) if any(padding) else last).contiguous()


def around(padding: Sequence[int]) -> list[int]:
    """Equal padding on both sides of each dimension, as :func:`channels_last` takes it."""
    return [each for each in reversed(padding) for _ in range(2)]


def output_shape(x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides) -> list[int]:
    """Of a convolution of ``x`` (N, C, H, W) with ``w`` (O, C / groups, kh, kw): N, O, OH, OW; or with depth."""
    sides = zip(x.shape[2:], w.shape[2:], stride, padding, dilation, strict=True)
    return [x.shape[0], w.shape[0], *((side + 2 * pad - d * (k - 1) - 1) // s + 1 for side, k, s, pad, d in sides)]


def view(x: torch.Tensor, size: Sides, stride: Sides, dilation: Sides) -> torch.Tensor:
    """View (N, OH, OW, kh, kw, C) of padded channels-last ``x``; of volumes (N, OD, OH, OW, kh, kw, kd, C)."""
    return x.as_strided(*_laid_out(tuple(x.shape), size, stride, dilation))


@lru_cache(256)
def _laid_out(shape, size, stride, dilation):
    """Sides and strides of :func:`view`."""
    n, *sides, c = shape
    steps = [math.prod(sides[i + 1:]) * c for i in range(len(sides))]
    out = [(side - d * (k - 1) - 1) // s + 1 for side, k, s, d in zip(sides, size, stride, dilation, strict=True)]
    order = ORDER[len(sides)]
    return ((n, *out, *(size[i] for i in order), c),
            (math.prod(sides) * c, *(s * step for s, step in zip(stride, steps, strict=True)),
             *(dilation[i] * steps[i] for i in order), 1))


@lru_cache(64)
def offsets(shape: tuple[int, ...], size: Sides, stride: Sides, dilation: Sides,
            side: int) -> tuple[np.ndarray, np.ndarray]:
    """Where patches' rows and blocks start in flat channels-last x of ``shape``."""
    every = view(torch.empty(shape, device="meta"), size, stride, dilation)
    steps, c, dims = every.stride(), shape[-1], len(shape) - 1

    places = starts(every.shape[dims:-1], steps[dims:-1])
    return starts(every.shape[:dims], steps[:dims]), (places[:, None] + np.arange(0, c, side, dtype=np.int64)).ravel()


@lru_cache(64)
def places(shape: tuple[int, ...], size: Sides, stride: Sides, dilation: Sides,
           device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """:func:`offsets` of single elements, on a device."""
    rows, columns = offsets(shape, size, stride, dilation, 1)
    return torch.from_numpy(rows).to(device), torch.from_numpy(columns).to(device)


def starts(sides: Sequence[int], steps: Sequence[int]) -> np.ndarray:
    """Where elements of an array lie that has these sides, and so many numbers from one to the next along each."""
    total = np.zeros(1, np.int64)
    for side, step in zip(sides, steps, strict=True):
        total = (total[:, None] + np.arange(side, dtype=np.int64) * step).ravel()
    return total


@lru_cache(64)
def runs(shape: tuple[int, ...], size: Sides, stride: Sides, dilation: Sides) -> tuple[np.ndarray, np.ndarray, int]:
    """Where patches start in flat channels-last x of ``shape``, where their runs start in them, and a run's length."""
    kw, c = size[-1], shape[-1]
    rows, every = taps(shape, size, stride, dilation)
    joined = dilation[-1] == 1 and (len(size) == 2 or size[0] == 1)
    return (rows, every[::kw].copy(), kw * c) if joined else (rows, every, c)


def patch_rows(x: torch.Tensor, size: Sides, stride: Sides, dilation: Sides) -> patches.Patches:
    """:class:`golden.fast.patches.Patches` of channels-last ``x``."""
    return patches.Patches(array(x), *runs(tuple(x.shape), size, stride, dilation))


@lru_cache(64)
def _columns(shape, size, stride, dilation):
    """Where patches of channels-last ``shape`` start in planes, and where the elements of K do within a patch."""
    n, *sides, c = shape
    pixels, taps = offsets((n, *sides, 1), size, stride, dilation, 1)          # as of images of one channel
    image, plane = len(pixels) // n, math.prod(sides)
    return (pixels + np.repeat(np.arange(n) * plane * (c - 1), image),
            (taps[:, None] + np.arange(c) * plane).ravel())


def plane_columns(x: torch.Tensor, size: Sides, stride: Sides, dilation: Sides) -> patches.Patches:
    """:func:`patch_rows` of planes, one for each channel, in which an element of all patches lies in lines."""
    planes = patches.planes(array(x.movedim(-1, 1)), tuple(x.shape[1:-1]), (0,) * len(size))
    rows, columns = _columns(tuple(x.shape), size, stride, dilation)
    return patches.Patches(planes, rows, columns, 1)


def draws(fmt: HBFPFormat, stream: Generators | None) -> Any:
    """``stream`` if the format draws noise from it, else None."""
    return stream if fmt.rounding == "stochastic" else None


def compiled(x: torch.Tensor, pair: Iterable[HBFPFormat], formats: Formats, stream: Generators | None) -> bool:
    """Whether the compiled ways serve: they are in hardware order, and quicker than patches with BLAS, so that order
    ``quick`` takes them too."""
    adds = kernels.adds(formats.accumulate, pair) and (formats.order == "block" or formats.accumulate == "fp32")
    return (on_host(x) and kernels.library() is not None and adds and x.numel() > 0
            and formats.mode == "hbfp" and watcher() is None and all(
                (drawn := draws(fmt, stream)) is None or not isinstance(drawn, Given) and lanes.fits(drawn, fmt.terms)
                for fmt in pair))


def integers(x: torch.Tensor, pair: Iterable[HBFPFormat], formats: Formats) -> bool:
    """Whether :mod:`golden.nn.integers` serves: ``aligned`` sums in hardware order, and no noise."""
    return (on_host(x) and kernels.library() is not None and x.numel() > 0 and watcher() is None
            and (formats.accumulate, formats.order) == ("aligned", "block")
            and not any(fmt.square or fmt.rounding == "stochastic" for fmt in pair))


def encoded(x: np.ndarray, fmt: HBFPFormat, stream: Generators | None,
            axis: int = -1) -> tuple[np.ndarray, kernels.Span]:
    """Compiled conversion of a matrix with contiguous rows, with noise from ``stream`` if the format takes any."""
    drawn = draws(fmt, stream)
    return kernels.encoded(x, fmt, axis=axis) if drawn is None else lanes.encoded(x, fmt, drawn, axis=axis)


def taps(shape: tuple[int, ...], size: Sides, stride: Sides, dilation: Sides) -> tuple[np.ndarray, np.ndarray]:
    """Where patches and their taps start in flat channels-last x of ``shape``."""
    return offsets(shape, size, stride, dilation, shape[-1])


def weight_matrix(w: torch.Tensor) -> torch.Tensor:
    """``w`` (O, C, kh, kw) as the matrix (K, O) that patches are multiplied with."""
    return w.permute(*(2 + i for i in ORDER[w.dim() - 2]), 1, 0).reshape(-1, w.shape[0]).contiguous()


def weights(matrix: torch.Tensor, size: Sides) -> torch.Tensor:
    """The way back: (K, O), or any shape of as many numbers, as (O, C, size ...)."""
    order = ORDER[len(size)]
    taps = matrix.reshape(*(size[i] for i in order), -1, matrix.shape[-1])
    return taps.permute(-1, -2, *(order.index(i) for i in range(len(size))))


def values(x: np.ndarray, fmt: HBFPFormat, stream: Generators | None) -> tuple[np.ndarray, HBFPFormat, kernels.Span]:
    """What :meth:`golden.fast.patches.Values.of` takes, of a matrix that is reduced over its rows."""
    found, span = encoded(x, fmt, stream, 0)
    return found, fmt, span


def within(g: torch.Tensor, phase: Phase) -> torch.Tensor:
    """``g`` (N, O, OH, OW) channels last, with the zeros around that a phase's patches reach, and without what they do
    not."""
    sides = list(zip(phase.corner, phase.sides, g.shape[2:], strict=True))
    return channels_last(g, [each for corner, side, own in reversed(sides) for each in (corner, side - own - corner)])


def taps_matrix(w: torch.Tensor, phase: Phase) -> torch.Tensor:
    """``w`` (O, C, kh, kw) as the matrix (K, C) that a phase's patches of g are multiplied with: K over its taps and O.
    """
    return taps_matrices(w)(phase)


def taps_matrices(w: torch.Tensor) -> Callable[[Phase], torch.Tensor]:
    """:func:`taps_matrix` of the phases of one ``w``."""
    matrix = weight_matrix(w.transpose(0, 1)).view(-1, len(w), w.shape[1])
    return lambda phase: matrix[_rows(phase, w.shape[2:])].flatten(0, 1)


@lru_cache(256)
def _rows(phase, size):
    """The numbers of a phase's taps among those of a kernel, both in the order of K."""
    order = ORDER[len(size)]
    numbers = np.arange(math.prod(size)).reshape([size[dim] for dim in order])
    return torch.from_numpy(numbers[np.ix_(*(phase.lines[dim].taps for dim in order))].ravel())


def taps_of(w: torch.Tensor, phase: Phase) -> torch.Tensor:
    """The part of ``w`` (O, C, kh, kw) that a phase meets, from the last row and column on."""
    dims = range(2, w.dim())
    for dim, line in zip(dims, phase.lines, strict=True):
        step = line.taps[0] - line.taps[1] if len(line.taps) > 1 else 1
        w = w[(slice(None),) * dim + (slice(line.taps[-1], line.taps[0] + 1, step),)]
    return w.flip(*dims)
