"""The dense product that a command's beats stand for, sparse weights expanded: what is multiplied by what."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hbfp.design import Design
from hbfp.golden.sparsity import expand


@dataclass(frozen=True)
class DenseBeats:
    """Operands of one command by pass and place, without what the core does not look at.

    Attributes
    ----------
    x, w : ndarray
        (passes, M, terms) and (passes, terms, columns): as many terms as a pass covers, idle rows included.
    height, segments, block_tiles : int
        Terms of a segment, segments, and passes of a block.
    x_scales, w_scales : dict of ndarray
        ``exponent`` and ``invalid``: (passes, M, segments) and (passes, segments, columns); empty without blocks.
    """
    x: np.ndarray
    w: np.ndarray
    height: int
    segments: int
    block_tiles: int
    x_scales: dict[str, np.ndarray]
    w_scales: dict[str, np.ndarray]

    @property
    def used(self) -> int:
        """Terms of a pass that lie in segments."""
        return self.segments * self.height


def dense_beats(design: Design, command: Mapping[str, int], x: Mapping[str, np.ndarray],
                w: Mapping[str, np.ndarray]) -> DenseBeats:
    """The :class:`DenseBeats` of a command.

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    command : dict
        Fields of `i_cmd`.
    x, w : dict
        Fields of its beats of `i_x` and of `i_w`.
    """
    passes, sparse = command["tiles"], bool(command.get("sparse"))
    lay, terms = design.lay(sparse), design.reach(design.rows) if sparse else design.rows
    lanes = x["mantissa"].reshape(passes, -1, design.reach(design.rows))[:, :, :terms]
    tile = w["mantissa"].reshape(passes, design.rows, design.cols)
    if sparse:
        tile = expand(tile.astype(np.int64), w["index"].reshape(tile.shape), *design.sparse, axis=1)
    x_scales, w_scales = {}, {}
    ends = (np.arange(lay.segments) + 1) * lay.height - 1
    for name in ("exponent", "invalid") if design.blocked else ():
        x_scales[name] = x[name].astype(np.int64).reshape(passes, -1, design.segments)[:, :, :lay.segments]
        w_scales[name] = w[name].astype(np.int64).reshape(passes, design.rows, design.cols)[:, ends]
    height = design.reach(lay.height) if sparse else lay.height
    return DenseBeats(lanes, tile, height, lay.segments, lay.block_tiles, x_scales, w_scales)
