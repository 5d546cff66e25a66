"""Where the patches of a convolution lie in memory, and their conversion by the kernels."""

from collections.abc import Iterable
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

Pair = tuple[int, int]


def channels_last(x: torch.Tensor, padding: tuple[int, int, int, int]) -> torch.Tensor:
    """(N, C, H, W) -> (N, H + padding, W + padding, C), contiguous; padding (left, right, top, bottom)."""
    left, right, top, bottom = padding
    if not any(padding) and x.permute(0, 2, 3, 1).is_contiguous():
        return x.permute(0, 2, 3, 1)
    if x.device.type == "cpu" and kernels.library() is not None:
        size = x.shape[2] + top + bottom, x.shape[3] + left + right
        return torch.from_numpy(patches.laid(array(x), size, (top, left)))
    x = x.permute(0, 2, 3, 1)
    return (pad(x, (0, 0, *padding)) if any(padding) else x).contiguous()


def view(x: torch.Tensor, size: Pair, stride: Pair, dilation: Pair) -> torch.Tensor:
    """View (N, OH, OW, kh, kw, C) of padded channels-last ``x``."""
    n, h, w, c = x.shape
    (kh, kw), (sh, sw), (dh, dw) = size, stride, dilation
    oh, ow = (h - dh * (kh - 1) - 1) // sh + 1, (w - dw * (kw - 1) - 1) // sw + 1
    return x.as_strided((n, oh, ow, kh, kw, c), (h * w * c, sh * w * c, sw * c, dh * w * c, dw * c, 1))


@lru_cache(64)
def offsets(shape: tuple[int, ...], size: Pair, stride: Pair, dilation: Pair,
            side: int) -> tuple[np.ndarray, np.ndarray]:
    """Where patches' rows and blocks start in flat channels-last x of ``shape``."""
    every = view(torch.empty(shape, device="meta"), size, stride, dilation)
    steps, c = every.stride(), shape[-1]

    def starts(dimensions):
        total = np.zeros(1, np.int64)
        for d in dimensions:
            total = (total[:, None] + np.arange(every.shape[d], dtype=np.int64) * steps[d]).ravel()
        return total
    return starts((0, 1, 2)), (starts((3, 4))[:, None] + np.arange(0, c, side, dtype=np.int64)).ravel()


@lru_cache(64)
def runs(shape: tuple[int, ...], size: Pair, stride: Pair, dilation: Pair) -> tuple[np.ndarray, np.ndarray, int]:
    """Where patches start in flat channels-last x of ``shape``, where their runs start in them, and a run's length."""
    kw, c = size[1], shape[-1]
    rows, every = taps(shape, size, stride, dilation)
    return (rows, every[::kw].copy(), kw * c) if dilation[1] == 1 else (rows, every, c)


def patch_rows(x: torch.Tensor, size: Pair, stride: Pair, dilation: Pair) -> patches.Patches:
    """:class:`golden.fast.patches.Patches` of channels-last ``x``."""
    return patches.Patches(array(x), *runs(tuple(x.shape), size, stride, dilation))


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


def taps(shape: tuple[int, ...], size: Pair, stride: Pair, dilation: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Where patches and their taps start in flat channels-last x of ``shape``."""
    return offsets(shape, size, stride, dilation, shape[-1])


def weight_matrix(w: torch.Tensor) -> torch.Tensor:
    """``w`` (O, C, kh, kw) as the matrix (K, O) that patches are multiplied with."""
    return w.permute(2, 3, 1, 0).reshape(-1, w.shape[0]).contiguous()


def values(x: np.ndarray, fmt: HBFPFormat, stream: Generators | None) -> tuple[np.ndarray, HBFPFormat, kernels.Span]:
    """What :meth:`golden.fast.patches.Values.of` takes, of a matrix that is reduced over its rows."""
    found, span = encoded(x, fmt, stream, 0)
    return found, fmt, span


def within(g: torch.Tensor, phase: Phase) -> torch.Tensor:
    """``g`` (N, O, OH, OW) channels last, with the zeros around that a phase's patches reach, and without what they do
    not."""
    (top, left), (h, w) = phase.corner, phase.sides
    if g.device.type == "cpu" and kernels.library() is not None and ((top, left), (h, w)) != ((0, 0), g.shape[2:]):
        return torch.from_numpy(patches.laid(array(g), (h, w), (top, left)))
    return channels_last(g, (left, w - g.shape[3] - left, top, h - g.shape[2] - top))


def taps_matrix(w: torch.Tensor, phase: Phase) -> torch.Tensor:
    """``w`` (O, C, kh, kw) as the matrix (K, C) that a phase's patches of g are multiplied with: K over its taps and O.
    """
    return taps_of(w, phase).permute(2, 3, 0, 1).reshape(-1, w.shape[1]).contiguous()


def taps_of(w: torch.Tensor, phase: Phase) -> torch.Tensor:
    """The part of ``w`` (O, C, kh, kw) that a phase meets, from the last row and column on."""
    return w[:, :, list(phase.down.taps)][..., list(phase.across.taps)]
