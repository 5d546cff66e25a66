"""How a matrix product lies on the core: passes, segments, rows, and the beats that carry them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hbfp.design import Design
from hbfp.lay import Lay

from .digits import beats_of_rows, columns_of_weights


@dataclass(frozen=True)
class Tiling:
    """The passes of ``terms`` along K on a design; docs/design/01-core.md, "Order of things".

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    terms : int
        Length of K, at least 1.
    sparse : bool
        Whether weights are sparse: K is compressed on the rows, its terms that are kept one after the other.
    """
    design: Design
    terms: int
    sparse: bool = False

    @cached_property
    def lay(self) -> Lay:
        """How blocks lie on the rows."""
        return self.design.lay(self.sparse)

    @property
    def _length(self):
        """Terms on the rows."""
        if not self.sparse:
            return self.terms
        kept, group = self.design.sparse
        return -(-self.terms // group) * kept

    @cached_property
    def index(self) -> np.ndarray:
        """Term on each row of each pass, of K as it is sent, -1 where there is none: (passes, rows)."""
        design, block, length = self.design, self.lay.block, self._length
        rows = []
        if self.lay.block_tiles > 1:
            for start in range(0, length, block):
                stop = min(start + block, length)
                rows += [(top, min(top + design.rows, stop)) for top in range(start, stop, design.rows)]
        else:
            step = self.lay.tile_rows
            rows = [(top, min(top + step, length)) for top in range(0, length, step)]
        index = np.full((len(rows), design.rows), -1)
        for line, (start, stop) in zip(index, rows, strict=True):
            line[:stop - start] = np.arange(start, stop)
        return index

    @property
    def passes(self) -> int:
        """Passes of a command, its field ``tiles``."""
        return len(self.index)

    @cached_property
    def block_index(self) -> np.ndarray:
        """Block along K of each segment of each pass, -1 where there is none: (passes, segments)."""
        first = self.index[:, ::self.lay.height][:, :self.lay.segments]
        return np.where(first < 0, -1, first // self.lay.block)

    @cached_property
    def places(self) -> np.ndarray:
        """Term of K at each place of a row of X in each pass, -1 where there is none: (passes, places)."""
        design = self.design
        if not self.sparse:
            rest = design.reach(design.rows) - design.rows
            return np.pad(self.index, ((0, 0), (0, rest)), constant_values=-1)
        kept, group = design.sparse
        first = self.index[:, ::kept, None] // kept * group
        terms = np.where(first < 0, -1, first + np.arange(group))
        return np.where(terms < self.terms, terms, -1).reshape(self.passes, -1)

    @cached_property
    def segment_rows(self) -> np.ndarray:
        """Last row of each segment, where a weight tile carries the segment's exponents."""
        return (np.arange(self.lay.segments) + 1) * self.lay.height - 1


def most_terms(design: Design, sparse: bool = False) -> int:
    """Most terms of K that a command's passes hold."""
    lay = design.lay(sparse)
    whole, rest = divmod(design.most_tiles(sparse), lay.block_tiles)
    rows = whole * lay.tile_rows if lay.block_tiles == 1 else whole * lay.block + rest * design.rows
    return design.reach(rows) if sparse else rows


def commands(design: Design, count: int) -> list[slice]:
    """Rows of X that each command streams: slices that cover ``count`` rows, at most ``depth`` each."""
    return [slice(top, min(top + design.depth, count)) for top in range(0, count, design.depth)]


def _gather(array, index, fill):
    """``array`` taken along its first axis, ``fill`` where the index is -1."""
    padded = np.concatenate([array, np.full((1, *array.shape[1:]), fill, array.dtype)])
    return padded[index]


def zero_exponent(design: Design) -> int:
    """Shared exponent of a block of zeros, which padding has: the lowest there is."""
    return max(-126, design.format.exponent_range[0])


def x_beats(tiling: Tiling, mantissa: np.ndarray, exponent: np.ndarray | None = None, invalid: np.ndarray | None = None,
            *, wide: bool = False, rng: np.random.Generator | None = None) -> dict[str, np.ndarray]:
    """Fields of `i_x` for one command.

    Parameters
    ----------
    tiling : Tiling
        Passes.
    mantissa : ndarray, (M, K)
        Rows of X.
    exponent, invalid : ndarray, (M, blocks), optional
        One per block.
    wide : bool
        Whether mantissas are wide: each row takes two beats, as if it were two.
    rng : numpy Generator, optional
        Fills with noise what the core must not read: what a dense command has less of than a sparse one.

    Returns
    -------
    dict of ndarray
        Field -> (passes * M, count).
    """
    design = tiling.design
    if wide:
        assert exponent is not None and invalid is not None
        mantissa = beats_of_rows(design, mantissa)
        exponent, invalid = exponent.repeat(2, 0), invalid.repeat(2, 0)
    lanes = _gather(mantissa.T, tiling.places, 0).swapaxes(1, 2)             # (pass, m, place)
    fields = {"mantissa": lanes.reshape(-1, lanes.shape[-1])}
    if exponent is not None and invalid is not None:
        for name, value, fill in (("exponent", exponent, zero_exponent(design)), ("invalid", invalid, False)):
            part = _gather(value.T, tiling.block_index, fill).swapaxes(1, 2)   # (pass, m, segment)
            part = part.reshape(-1, tiling.lay.segments)
            fields[name] = np.pad(part, ((0, 0), (0, design.segments - part.shape[1])))
    if rng is not None and not tiling.sparse:
        for name, used in (("mantissa", design.rows), ("exponent", tiling.lay.segments),
                           ("invalid", tiling.lay.segments)):
            if name in fields:
                rest = fields[name][:, used:]
                rest[:] = rng.integers(0, 2, rest.shape)
    return fields


def w_beats(tiling: Tiling, mantissa: np.ndarray, exponent: np.ndarray | None = None, invalid: np.ndarray | None = None,
            *, wide: bool = False, pairs: bool = False, index: np.ndarray | None = None,
            rng: np.random.Generator | None = None) -> dict[str, np.ndarray]:
    """Fields of `i_w` for all column tiles, one after the other; each is (tiles, passes * rows, columns).

    Parameters
    ----------
    tiling : Tiling
        Passes.
    mantissa : ndarray, (K, N)
        Weights; compressed along K, if sparse.
    exponent, invalid : ndarray, (blocks, N), optional
        One per block.
    wide, pairs : bool
        Whether mantissas are wide, and whether a weight has two columns, as it does if those of X or of W are.
    index : ndarray, shape of ``mantissa``, optional
        Indices of sparse weights.
    rng : numpy Generator, optional
        Fills with noise what the core must not read: exponents on rows that end no segment, indices of dense weights.

    Returns
    -------
    dict of ndarray
        Field -> (column tiles, passes * rows, columns).
    """
    design = tiling.design
    if pairs:
        assert exponent is not None and invalid is not None
        mantissa = columns_of_weights(design, mantissa, wide)
        exponent, invalid = exponent.repeat(2, 1), invalid.repeat(2, 1)
        index = None if index is None else index.repeat(2, 1)
    tiles = -(-mantissa.shape[1] // design.cols)

    def columns(array, fill):
        """Padded to whole tiles, the tile first: (tile, ..., column)."""
        short = tiles * design.cols - array.shape[-1]
        array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, short)], constant_values=fill)
        return np.moveaxis(array.reshape(*array.shape[:-1], tiles, design.cols), -2, 0)

    shape = (tiles, tiling.passes, design.rows, design.cols)
    fields = {"mantissa": columns(_gather(mantissa, tiling.index, 0), 0)}
    if exponent is not None and invalid is not None:
        low, high = design.format.exponent_range
        for name, value, fill, span in (("exponent", exponent, zero_exponent(design), (low, high + 1)),
                                        ("invalid", invalid, False, (0, 2))):
            spread = np.zeros(shape, np.int32) if rng is None else rng.integers(*span, shape, np.int32)
            spread[:, :, tiling.segment_rows] = columns(_gather(value, tiling.block_index, fill), fill)
            fields[name] = spread
    if design.takes_sparse:
        if index is not None:
            fields["index"] = columns(_gather(index, tiling.index, 0), 0)
        else:
            fields["index"] = np.zeros(shape, int) if rng is None else rng.integers(0, design.sparse[1], shape)
    return {name: value.reshape(tiles, -1, design.cols) for name, value in fields.items()}


def block_beats(design: Design, pieces: np.ndarray) -> np.ndarray:
    """Elements of blocks in the order of `i_q`: ``pieces`` (blocks, elements) to (beats, lanes)."""
    return pieces.reshape(-1, design.encode_lanes)
