"""A matrix product as beats of the core's streams; docs/design/01-core.md, "Order of things"."""

import numpy as np

from golden.baselines import BASELINES
from golden.bfp import encode
from golden.matmul import matmul, matmul_int
from rtl.number.streams import operand_layout

from .drive import pack


def passes(design, terms):
    """Per pass, for each row of the array: (index along K or None, block along K)."""
    block = design.format.terms if design.blocked else design.rows
    tiles = []
    if design.block_tiles > 1:
        for top in range(0, terms, block):
            stop = min(top + block, terms)
            tiles += [[(k if k < stop else None, top // block) for k in range(left, left + design.rows)]
                      for left in range(top, stop, design.rows)]
        return tiles
    for top in range(0, terms, design.tile_rows):
        ks = range(top, top + design.rows)
        tiles.append([(k if k < min(terms, top + design.tile_rows) else None, k // block) for k in ks])
    return tiles


class Operands:
    """Both operands of one product, on a design.

    Attributes
    ----------
    x, w : ndarray
        What the core takes: mantissas, integers, or bits of floats.
    want : ndarray
        (M, N): integers for ``int``, else bits of FP32; from the golden model.
    """

    def __init__(self, design, x, w):
        self.design, fmt = design, design.format
        self.blocks = None
        match design.arithmetic:
            case "hbfp":
                self.blocks = encode(x, fmt), encode(w, fmt, axis=0)
                self.x, self.w = (b.mantissa for b in self.blocks)
                self.want = matmul(x, w, fmt, design.accumulate, guard=design.guard,
                                   growth=design.growth).view(np.uint32)
            case "int":
                self.x, self.w, self.want = x, w, matmul_int(x, w)
            case kind:
                baseline = BASELINES[kind]
                self.x, self.w = baseline.patterns(x), baseline.patterns(w)
                self.want = baseline.matmul(x, w, design.rows).view(np.uint32)
        self.terms = x.shape[1]
        self.tiles = passes(design, self.terms)
        self.column_tiles = [range(n, min(n + design.cols, w.shape[1])) for n in range(0, w.shape[1], design.cols)]

    def _scale(self, which, line, block):
        """Exponent and invalid flag of a row of x or a column of w; padding is as a block of zeros."""
        blocks, fmt = self.blocks[which], self.design.format
        line = line // fmt.terms if fmt.square else line
        index = (line, block) if which == 0 else (block, line)
        if block is None or block * fmt.terms >= self.terms:
            return max(-126, fmt.exponent_range[0]), 0
        return int(blocks.exponent[index]), int(blocks.invalid[index])

    def x_beats(self):
        """`i_x` for one command: rows of pass 0, of pass 1, ..."""
        design, layout = self.design, operand_layout(self.design, self.design.rows, self.design.segments)
        for tile in self.tiles:
            for row in range(len(self.x)):
                fields = {"mantissa": [0 if k is None else self.x[row, k] for k, _ in tile]}
                if self.blocks:
                    scales = [self._scale(0, row, tile[s * design.height][1]) for s in range(design.segments)]
                    fields |= {"exponent": [e for e, _ in scales], "invalid": [i for _, i in scales]}
                yield pack(layout, **fields)

    def w_beats(self):
        """`i_w` for all column tiles."""
        design, layout = self.design, operand_layout(self.design, self.design.cols, self.design.cols)
        for columns in self.column_tiles:
            columns = [*columns, *[None] * (design.cols - len(columns))]
            for tile in self.tiles:
                for k, block in tile:
                    fields = {"mantissa": [0 if k is None or n is None else self.w[k, n] for n in columns]}
                    if self.blocks:
                        scales = [self._scale(1, n or 0, None if n is None else block) for n in columns]
                        fields |= {"exponent": [e for e, _ in scales], "invalid": [i for _, i in scales]}
                    yield pack(layout, **fields)
