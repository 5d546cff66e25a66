"""A frozen convolution of images of one shape: what follows from shapes and formats alone is found once.

For one image Python's own work takes as long as the product; the steps, and so the bits, are those of
:func:`golden.nn.conv_products.over_channels` where elements are converted once.
"""

from typing import Any

import torch

from ..fast import kernels, patches, products, scratch
from . import unfold
from .formats import Formats
from .unfold import Sides


class Images:
    """What is known of a convolution before its numbers.

    Parameters
    ----------
    x : Tensor
        (N, C, H, W) float32 on the CPU, not empty; others are to have its shape and strides.
    weight : tuple of int
        Shape of the weights (O, C, kh, kw).
    stride, padding, dilation : tuple of int
        As of ``torch.nn.Conv2d``.
    formats : Formats
        FP32 sums in hardware order, no noise.

    Attributes
    ----------
    known : tuple
        What all of it follows from, but for the formats.
    """

    def __init__(self, x: torch.Tensor, weight: Sides, stride: Sides, padding: Sides, dilation: Sides,
                 formats: Formats) -> None:
        self.known, self.formats = Images.of(x, weight, stride, padding, dilation), formats
        (n, c, *sides), fmt, size = x.shape, formats.x, tuple(weight[2:])
        self.serves = c % fmt.terms == 0 and not fmt.square and not formats.w.square
        if self.serves:
            shape = n, *(side + 2 * pad for side, pad in zip(sides, padding, strict=True)), c
            self._rows, self._blocks = unfold.offsets(shape, size, stride, dilation, fmt.terms)
            self._out = unfold.view(torch.empty(shape, device="meta"), size, stride, dilation).shape[:3]
            self._pixels = shape[0] * shape[1] * shape[2], c
            numbers = scratch.empty(shape).transpose(0, 3, 1, 2)
            self._places = patches.places(x.shape, x.stride(), numbers, padding)

    @staticmethod
    def of(x: torch.Tensor, *options: Sides) -> tuple[Any, ...]:
        """What :attr:`known` is for a call."""
        return x.shape, x.stride(), *options

    def product(self, x: torch.Tensor, kept: Any) -> torch.Tensor:
        """(N, O, OH, OW), channels last in memory; ``kept``: :func:`golden.nn.unfold.weight_matrix`, converted."""
        last, formats = scratch.empty(self._pixels), self.formats
        kernels.loaded().hbfp_lay(x.data_ptr(), self._places.ctypes.data, last.ctypes.data)
        values, span = kernels.encoded(last, formats.x, out=last)
        w, w_span = kept
        y = products.multiply(values, w, formats.x, formats.w, span, w_span, rows=self._rows, blocks=self._blocks)
        return torch.from_numpy(y.reshape(*self._out, -1).transpose(0, 3, 1, 2))
