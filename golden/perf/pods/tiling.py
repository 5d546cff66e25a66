"""Products cut into tile operations: p rows of X against r x c of W.

Operations of a product are numbered ``((group * row tiles + i) * k tiles + k) * column tiles + j``. What row tiles
of earlier products a row tile needs is worked out from the reaches of :mod:`golden.perf.pods.graph`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .graph import Gemm


@dataclass(frozen=True)
class Tiles:
    """Tiles of several products, numbered through.

    Attributes
    ----------
    gemms : tuple of Gemm
    partition : ndarray
        Rows of X in an operation, of each product.
    shape : ndarray (products, 4)
        Groups, row tiles, tiles along K, column tiles.
    first_row, first_op, first_x, first_w : ndarray (products + 1,)
        Number of a product's first row tile (of all groups), operation, tile of X, tile of W.
    need_first, need_last, need_at : ndarray
        Row tile t needs the row tiles ``need_first[q] .. need_last[q]`` for q in ``need_at[t] .. need_at[t + 1]``.
    """
    gemms: tuple[Gemm, ...]
    partition: np.ndarray
    shape: np.ndarray
    first_row: np.ndarray
    first_op: np.ndarray
    first_x: np.ndarray
    first_w: np.ndarray
    need_at: np.ndarray
    need_first: np.ndarray
    need_last: np.ndarray

    @property
    def operations(self) -> int:
        """Tile operations of all products."""
        return int(self.first_op[-1])


def _starts(counts):
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def cut(gemms: Sequence[Gemm], partition: Sequence[int], rows: int, columns: int, by_layer: bool = False) -> Tiles:
    """Cut products into tiles.

    Parameters
    ----------
    gemms : sequence of Gemm
    partition : sequence of int
        Rows of X in an operation, of each product.
    rows, columns : int
        Of a pod's array.
    by_layer : bool
        Whether a product waits for all of what it reads, whatever rows it needs.
    """
    shape = np.array([(each.groups, -(-each.m // p), -(-each.k // rows), -(-each.n // columns))
                      for each, p in zip(gemms, partition, strict=True)], np.int64)
    groups, m, k, n = shape.T
    first_row = _starts(groups * m)
    at, first, last = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, each in enumerate(gemms):
        low, high, needed = [], [], 0
        for source, reach in each.sources.items():
            begin, end = _needed(gemms, partition, shape, number, source, None if by_layer else reach)
            low.append(first_row[source] + begin)
            high.append(first_row[source] + end)
            needed += begin.shape[1]
        count = shape[number, 0] * shape[number, 1]
        at.append(at[-1][-1] + needed * np.arange(1, count + 1))
        if low:
            first.append(np.concatenate(low, 1).ravel())
            last.append(np.concatenate(high, 1).ravel())
    return Tiles(tuple(gemms), np.array(partition, np.int64), shape, first_row, _starts(groups * m * k * n),
                 _starts(groups * m * k), _starts(groups * k * n), np.concatenate(at), np.concatenate(first),
                 np.concatenate(last))


def _needed(gemms, partition, shape, number, source, reach):
    """First and last row tile of ``source`` that each row tile of ``number`` needs: two arrays (row tiles, ranges)."""
    each, other = gemms[number], gemms[source]
    groups, tiles = shape[number, :2]
    if reach is None or each.images != other.images:
        whole = np.zeros((groups * tiles, 1), np.int64)
        return whole, whole + shape[source, 0] * shape[source, 1] - 1
    start = np.arange(tiles) * partition[number]
    stop = np.minimum(start + partition[number], each.m) - 1
    if each.stacked:
        shift = np.repeat(np.arange(groups) * each.m, tiles)
        start, stop = np.tile(start, groups) + shift, np.tile(stop, groups) + shift
    else:
        start, stop = np.tile(start, groups), np.tile(stop, groups)
    picture = each.height * each.width

    def row(flat, step):    # the row of the other image, counted through all images
        y = np.clip(flat % picture // each.width * reach.stride + step, 0, other.height - 1)
        return flat // picture * other.height + y
    p = partition[source]
    if reach.pixel and (each.height, each.width) == (other.height, other.width):
        low, high = start, stop
    else:
        low, high = row(start, reach.low) * other.width, row(stop, reach.high) * other.width + other.width - 1
    if other.stacked:
        def tile(flat):
            return flat // other.m * shape[source, 1] + flat % other.m // p
        return tile(low)[:, None], tile(high)[:, None]
    copies = np.arange(shape[source, 0]) * shape[source, 1]
    return (low // p)[:, None] + copies, (high // p)[:, None] + copies
