"""Convolutions with accumulation ``aligned``, without patches that are stored: docs/numerics.md, section 5."""

import numpy as np
import torch

from hbfp.format import HBFPFormat

from ..fast import aligned
from ..matmul import check_aligned
from . import unfold
from .formats import Formats
from .memory import array
from .unfold import Sides


def over_channels(x: torch.Tensor, w: torch.Tensor, fmt: HBFPFormat, w_fmt: HBFPFormat, formats: Formats, size: Sides,
                  stride: Sides, dilation: Sides) -> torch.Tensor | None:
    """Patches of channels-last ``x``, whose channels blocks divide, times ``w`` (K, O): (pixels, O).

    None if a number is Inf or NaN.
    """
    c, side = x.shape[-1], fmt.terms
    rows, blocks = unfold.offsets(tuple(x.shape), size, stride, dilation, side)
    check_aligned(fmt, w_fmt, len(blocks), formats.guard, formats.growth)
    a = aligned.Operand.encoded(array(x.reshape(-1, c)), fmt, -1)
    b = aligned.Operand.encoded(array(w), w_fmt, -2)
    if a is None or b is None:
        return None
    places = aligned.Places(rows, blocks, 1, rows // side, blocks // side)
    return torch.from_numpy(aligned.multiply(a, aligned.Panels.of(b, fmt, formats.guard), places=places))


def over_pixels(x: torch.Tensor, g: torch.Tensor, formats: Formats, size: Sides, stride: Sides,
                dilation: Sides) -> torch.Tensor | None:
    """Patches of channels-last ``x``, turned, times ``g`` (pixels, O), tap by tap: (taps * C, O).

    None if a number is Inf or NaN.
    """
    c, fmt, g_fmt = x.shape[-1], formats.x, formats.g
    check_aligned(fmt, g_fmt, -(-len(g) // fmt.terms), formats.guard, formats.growth)
    b = aligned.Operand.encoded(array(g), g_fmt, -2)
    if b is None:
        return None
    panels = aligned.Panels.of(b, fmt, formats.guard)
    rows, taps = unfold.taps(tuple(x.shape), size, stride, dilation)
    y = np.empty((len(taps), c, g.shape[1]), np.float32)
    for i, tap in enumerate(taps):
        a = aligned.Operand.gathered(array(x), rows + tap, c, fmt)
        if a is None:
            return None
        y[i] = aligned.multiply(a, panels, turned=True)
    return torch.from_numpy(y).view(-1, g.shape[1])
