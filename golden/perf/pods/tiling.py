"""Products cut into tile operations: p rows of X against r x c of W.

Row tiles of a product are numbered ``i * groups + group``, and its operations ``(row tile * k tiles + k) * column tiles
+ j``; tiles of X follow the row tiles, tiles of W are numbered ``(group * k tiles + k) * column tiles + j``. Which row
tiles of earlier products a tile of X needs is worked out from the reaches of :mod:`golden.perf.pods.graph`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .graph import Gemm, together


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
    need_of : ndarray
        Of each tile of X the number of its need: tiles along K that wait for the same share one.
    need_first, need_last, need_at : ndarray
        Need s is of the row tiles ``need_first[q] .. need_last[q]`` for ``need_at[s] <= q < need_at[s + 1]``.
    """
    gemms: tuple[Gemm, ...]
    partition: np.ndarray
    shape: np.ndarray
    first_row: np.ndarray
    first_op: np.ndarray
    first_x: np.ndarray
    first_w: np.ndarray
    need_of: np.ndarray
    need_at: np.ndarray
    need_first: np.ndarray
    need_last: np.ndarray

    @property
    def operations(self) -> int:
        """Tile operations of all products."""
        return int(self.first_op[-1])


def _starts(counts, multiple=1):
    return np.concatenate(([0], np.cumsum(-(-counts // multiple) * multiple))).astype(np.int64)


def cut(gemms: Sequence[Gemm], partition: Sequence[int], rows: int, columns: int, waits: str = "rows",
        multiple: int = 1) -> Tiles:
    """Cut products into tiles.

    Parameters
    ----------
    gemms : sequence of Gemm
    partition : sequence of int
        Rows of X in an operation, of each product.
    rows, columns : int
        Of a pod's array.
    waits : str
        One of :data:`golden.perf.pods.catalogue.WAITS`.
    multiple : int
        First tiles of X and of W of each product have a multiple of this as their number: with the pods, bank 0.
    """
    shape = np.array([(each.groups, -(-each.m // p), -(-each.k // rows), -(-each.n // columns))
                      for each, p in zip(gemms, partition, strict=True)], np.int64)
    groups, m, k, n = shape.T
    first_row = _starts(groups * m)
    need_of, at, first, last = [], [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    needs = 0
    first_x, first_w = _starts(groups * m * k, multiple), _starts(groups * k * n, multiple)
    for number, each in enumerate(gemms):
        tiles, steps = int(groups[number] * m[number]), int(k[number])
        kinds = _kinds(each, int(groups[number]), steps, rows) if waits == "channels" else [[each.sources] * steps]
        distinct = {id(sources): sources for group in kinds for sources in group}
        place = {}
        for key, sources in distinct.items():
            place[key] = needs
            pairs = [(first_row[source], *_needed(gemms, partition, shape, number, source,
                                                  _used(reach, waits)))
                     for source, reach in sources.items()]
            width = sum(low.shape[1] for _, low, _ in pairs)
            at.append(at[-1][-1] + width * np.arange(1, tiles + 1))
            if pairs:
                first.append(np.concatenate([base + low for base, low, _ in pairs], 1).ravel())
                last.append(np.concatenate([base + high for base, _, high in pairs], 1).ravel())
            needs += tiles
        table = np.array([[place[id(sources)] for sources in group] for group in kinds])
        group = np.arange(tiles) % groups[number] if len(kinds) > 1 else np.zeros(tiles, np.int64)
        need_of += [(table[group] + np.arange(tiles)[:, None]).ravel(),
                    np.zeros(first_x[number + 1] - first_x[number] - tiles * steps, np.int64)]
    return Tiles(tuple(gemms), np.array(partition, np.int64), shape, first_row, _starts(groups * m * k * n),
                 first_x, first_w, np.concatenate(need_of), np.concatenate(at), np.concatenate(first),
                 np.concatenate(last))


def _used(reach, waits):
    """What is made of a reach: heads are told apart where channels are."""
    return None if reach is None or waits == "layer" or reach.heads and waits != "channels" else reach


def _kinds(gemm, groups, steps, rows):
    """The sources of every tile along K, of each group; equal ones are one object. K is (place, channel)."""
    channels = gemm.channels or gemm.k
    ends = np.cumsum([count for count, _ in gemm.parts])
    if not gemm.parts or ends[-1] != groups * channels:
        return [[gemm.sources] * steps]
    known: dict[tuple, dict] = {}

    def sources(group, step):
        inner = np.arange(step * rows, min((step + 1) * rows, gemm.k)) % channels + group * channels
        parts = tuple(np.unique(np.searchsorted(ends, inner, "right")).tolist())
        return known.setdefault(parts, together([gemm.parts[part][1] for part in parts]))
    return [[sources(group, step) for step in range(steps)] for group in range(groups)]


def _needed(gemms, partition, shape, number, source, reach):
    """First and last row tile of ``source`` that each row tile of ``number`` needs: two arrays (row tiles, 1)."""
    each, other = gemms[number], gemms[source]
    groups, tiles = (int(count) for count in shape[number, :2])
    copies, p = int(shape[source, 0]), int(partition[source])
    start = np.repeat(np.arange(tiles) * partition[number], groups)
    stop = np.minimum(start + partition[number], each.m) - 1
    head = np.tile(np.arange(groups), tiles)
    if reach is not None and reach.heads and not each.stacked and other.stacked and each.flat == other.m:
        first, last = start // p * copies, stop // p * copies + copies - 1
    elif reach is None or reach.heads or (each.images, each.stacked) != (other.images, other.stacked):
        first = np.zeros(groups * tiles, np.int64)
        last = first + copies * shape[source, 1] - 1
    elif each.stacked:
        if each.m != other.m or not reach.pixel:
            return _needed(gemms, partition, shape, number, source, None)
        first, last = start // p * copies + head, stop // p * copies + head
    else:
        low, high = _window(each, other, reach, start, stop)
        first, last = low // p * copies, high // p * copies + copies - 1
    return first[:, None], last[:, None]


def _window(each, other, reach, start, stop):
    """First and last row of ``other`` that rows ``start`` to ``stop`` of ``each`` need."""
    if reach.pixel and (each.height, each.width) == (other.height, other.width):
        return start, stop
    picture = each.height * each.width

    def row(flat, step):    # of the other image, counted through all images
        y = np.clip(flat % picture // each.width * reach.stride + step, 0, other.height - 1)
        return flat // picture * other.height + y
    return row(start, reach.low) * other.width, row(stop, reach.high) * other.width + other.width - 1
