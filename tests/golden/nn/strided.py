"""The patches of g, and the taps, of which docs/numerics.md makes the gradient of a convolution's images."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

#: More zeros around g than any kernel of a test reaches.
AROUND = 40


class Part(NamedTuple):
    """A phase of a stride that taps meet."""
    places: Any                                            # of its pixels in (..., H, W)
    rows: np.ndarray                                       # (pixels, K), K over kernel row, kernel column, channel
    taps: Any                                              # in (..., kh, kw), from the last row and column on
    around: np.ndarray                                     # (N, h, w, O), what patches are taken of
    geometry: Any                                          # size, stride and dilation of these patches

    def weights(self, w: Any) -> np.ndarray:
        """Weights (O, C, kh, kw) as the matrix (K, C) that the patches are multiplied with."""
        return np.ascontiguousarray(np.asarray(w)[self.taps].transpose(2, 3, 0, 1)).reshape(-1, w.shape[1])


def gradient(multiply: Any, g: Any, w: Any, sides: Any, *options: Any) -> np.ndarray:
    """(N, C, H, W), +0 where no tap meets a pixel; ``multiply`` takes a part and its matrix of weights."""
    gx = np.zeros((len(g), w.shape[1], *sides), np.float32)
    for part in parts(g, w.shape[2:], sides, *options):
        y = np.asarray(multiply(part, part.weights(w)))
        gx[part.places] = y.reshape(len(g), *gx[part.places].shape[2:], -1).transpose(0, 3, 1, 2)
    return gx


def parts(g: Any, size: Any, sides: Any, stride: Any, padding: Any, dilation: Any) -> Iterator[Part]:
    """Those of a convolution of images with these sides, line by line; ``g`` is (N, O, OH, OW)."""
    zeros = np.pad(np.asarray(g), ((0, 0), (0, 0), (AROUND, AROUND), (AROUND, AROUND)))
    for first in product(*map(range, stride)):
        meets, taps = [], []
        for axis, start in enumerate(first):
            pixels = np.arange(start, sides[axis], stride[axis])
            own = [tap for tap in reversed(range(size[axis]))
                   if (start + padding[axis] - dilation[axis] * tap) % stride[axis] == 0]
            places = pixels[:, None] + padding[axis] - dilation[axis] * np.array(own, int)
            meets.append(places // stride[axis] + AROUND)
            taps.append(own)
        if not meets[0].size or not meets[1].size:
            continue
        rows = zeros[:, :, meets[0][:, None, :, None], meets[1][None, :, None, :]]    # (N, O, h, w, kh, kw)
        around = zeros[:, :, meets[0].min():meets[0].max() + 1, meets[1].min():meets[1].max() + 1]
        yield Part((..., *(slice(start, None, step) for start, step in zip(first, stride, strict=True))),
                   rows.transpose(0, 2, 3, 4, 5, 1).reshape(-1, rows.shape[1] * len(taps[0]) * len(taps[1])),
                   (..., np.array(taps[0])[:, None], np.array(taps[1])),
                   np.ascontiguousarray(around.transpose(0, 2, 3, 1)),
                   ((len(taps[0]), len(taps[1])), (1, 1),
                    tuple(int(each[0, 1] - each[0, 0]) if each.shape[1] > 1 else 1 for each in meets)))
