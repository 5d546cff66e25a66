"""Patches of images as rows of a matrix that lies nowhere in DRAM: the second operand of a convolution's gw."""

from collections.abc import Sequence

from ..boxes import boxes, joint
from ..builder import Builder, inward
from ..memory import Value


class Patches:
    """Patches (N OH OW, kh kw C) of images, image by image, row by row, pixel by pixel.

    Parameters
    ----------
    value : Value
        Images (N, C, H, W) with the borders that patches reach, channels innermost.
    size, stride, dilation : (int, int)
        Of the kernel.
    pixels : (int, int)
        Patches down and across an image.
    """

    def __init__(self, value: Value, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int],
                 pixels: Sequence[int]) -> None:
        self.value, self.channels = value, value.shape[1]
        (n, image), _, (_, line), (_, pixel) = value.dims()
        (self.rows,) = joint([[(n, image), (pixels[0], stride[0] * line), (pixels[1], stride[1] * pixel)]])
        taps = [(y * dilation[0] * line + x * dilation[1] * pixel) for y in range(size[0]) for x in range(size[1])]
        beside = size[1] if pixel == self.channels and dilation[1] == 1 else 1    # whose channels follow each other
        self.run, self.starts = beside * self.channels, taps[::beside]
        self.terms, self.columns = n * pixels[0] * pixels[1], len(taps) * self.channels

    def load(self, build: Builder, row: int, rows: int, word: int, words: int, target: int) -> None:
        """Load words ``word`` on, ``words`` of them, of ``rows`` patches from ``row`` on to V, from ``target`` on."""
        lanes = build.lanes
        first, last = word * lanes, min((word + words) * lanes, self.columns)
        if last < (word + words) * lanes:
            build.fill(target, rows * words)
        whole = self.value.whole_words(1, lanes) and self.channels % lanes == 0
        for done, (skip,), (lines,) in boxes([self.rows], row, rows):
            at = target + done * words
            loops = inward(lines, words)
            for number in range(first // self.run, -(-last // self.run)):
                begin, end = max(first, number * self.run), min(last, (number + 1) * self.run)
                address = self.value.address + skip + self.starts[number] + begin - number * self.run
                if whole:
                    build.words(address, (end - begin) // lanes, loops, at + (begin - first) // lanes)
                else:
                    build.gather(address, end - begin, [(count, step, own * lanes) for count, step, own in loops],
                                 at * lanes + begin - first)
