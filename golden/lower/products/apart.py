"""Patches whose words of channels lie apart: the second operand of a gw that comes one column tile at a time.

Of images with their channels innermost each word of a column tile is a burst of its own, since its neighbours belong to
other tiles, and comes once for each tap. A copy has one word of the channels of all pixels of a line that a tap meets
side by side.
"""

from collections.abc import Sequence

import torch

from ..apart import set_apart
from ..boxes import boxes, joint
from ..builder import Builder, inward
from ..memory import Value, located


class Apart:
    """Patches (N OH OW, kh kw C) of images, image by image, row by row, pixel by pixel; a copy of the images is made.

    Parameters
    ----------
    build : Builder
    value : Value
        Images (N, C, H, W) whose channels are whole words.
    padding, size, stride, dilation : (int, int)
        Of the convolution.
    pixels : (int, int)
        Patches down and across an image.
    """

    def __init__(self, build: Builder, value: Value, padding: Sequence[int], size: Sequence[int],
                 stride: Sequence[int], dilation: Sequence[int], pixels: Sequence[int]) -> None:
        n, channels, h, w = value.shape
        (ph, pw), sw, lanes = padding, stride[1], build.lanes
        tall, wide = h + 2 * ph, -(-(w + 2 * pw) // sw)    # pixels of a line that are a stride apart
        shape = channels // lanes, sw, n, tall, wide, lanes
        home = build.dram.home(n * tall * wide * channels // lanes * sw, lanes, lanes)
        build.dram.zeros(home)
        self.where = located(shape, torch.empty(shape, device="meta").stride(), home.address)

        def place(word, first):                            # the pixels of the image from ``first`` on
            behind, phase = divmod(first + pw, sw)
            pixels = -(-(w - first) // sw)
            return Value(self.where[word, phase, :, ph:ph + h, behind:behind + pixels], home)
        set_apart(build, value, sw, place)
        _, _, image, line, pixel, _ = self.where.stride()
        self.rows, = joint([[(n, image), (pixels[0], stride[0] * line), (pixels[1], pixel)]])
        self.home, self.size, self.dilation = home, size, dilation
        self.terms, self.columns = n * pixels[0] * pixels[1], size[0] * size[1] * channels

    def load(self, build: Builder, row: int, rows: int, word: int, words: int, target: int) -> None:
        """Load words ``word`` on, ``words`` of them, of ``rows`` patches from ``row`` on to V, from ``target`` on."""
        every, sw = self.where.shape[:2]
        for number in range(word, word + words):
            tap, own = divmod(number, every)
            down, across = (place * step for place, step in zip(divmod(tap, self.size[1]), self.dilation, strict=True))
            address = self.where[own, across % sw, 0, down, across // sw].storage_offset()
            for done, (skip,), (lines,) in boxes([self.rows], row, rows):
                build.words(address + skip, 1, inward(lines, words), target + done * words + number - word)
