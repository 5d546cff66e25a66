"""A matrix product as beats of the core's streams; docs/design/01-core.md, "Order of things"."""

from dataclasses import replace

import numpy as np

from golden.bfp import encode
from golden.core.baselines import BASELINES, matmul_int
from golden.matmul import matmul, matmul_blocks
from golden.sparsity import compress, expand, prune
from rtl.number.streams import activations_layout, weights_layout

from .drive import pack


def passes(design, terms, sparse=False):
    """Per pass, for each row of the array: (index along K or None, block along K), of K as it is sent."""
    lay = design.lay(sparse)
    block = lay.block
    tiles = []
    if lay.block_tiles > 1:
        for top in range(0, terms, block):
            stop = min(top + block, terms)
            tiles += [[(k if k < stop else None, top // block) for k in range(left, left + design.rows)]
                      for left in range(top, stop, design.rows)]
        return tiles
    for top in range(0, terms, lay.tile_rows):
        ks = range(top, top + design.rows)
        tiles.append([(k if k < min(terms, top + lay.tile_rows) else None, k // block) for k in ks])
    return tiles


class Operands:
    """Both operands of one product, on a design.

    Attributes
    ----------
    x, w : ndarray
        What the core takes: mantissas, integers, or bits of floats.
    index : ndarray or None
        Of sparse weights, beside ``w``, which is compressed then.
    want : ndarray
        (M, N): integers for ``int``, else bits of FP32; from the golden model.
    """

    def __init__(self, design, x, w, sparse=False, index=None):
        self.design, fmt = design, design.format
        self.blocks, self.sparse, self.index = None, sparse, None
        if sparse:
            w = prune(w, *design.sparse)
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
        if sparse:
            self.w, self.index = compress(self.w, *design.sparse)
        if index is not None:    # a number generator: any indices in place of the right ones
            self.index = index.integers(0, design.sparse[1], self.index.shape)
            self.want = self._meant(design).view(np.uint32)
        self.terms, self.rows = x.shape[1], len(self.w)
        self.lay = design.lay(sparse)
        self.tiles = passes(design, self.rows, sparse)
        self.column_tiles = [range(n, min(n + design.cols, w.shape[1])) for n in range(0, w.shape[1], design.cols)]

    def _meant(self, design):
        """The product of what weights with these indices mean."""
        dense = expand(self.w, self.index, *design.sparse)[:self.x.shape[1]]
        w = replace(self.blocks[1], mantissa=dense)
        return matmul_blocks(self.blocks[0], w, design.accumulate, guard=design.guard, growth=design.growth)

    def _scale(self, which, line, block):
        """Exponent and invalid flag of a row of x or a column of w; padding is as a block of zeros."""
        blocks, fmt = self.blocks[which], self.design.format
        line = line // fmt.terms if fmt.square else line
        index = (line, block) if which == 0 else (block, line)
        if block is None or block * fmt.terms >= self.terms:
            return max(-126, fmt.exponent_range[0]), 0
        return int(blocks.exponent[index]), int(blocks.invalid[index])

    def _lanes(self, tile):
        """Index along the dense K of each activation of a pass, or None."""
        if not self.sparse:
            return [k for k, _ in tile] + [None] * (self.design.reach(self.design.rows) - self.design.rows)
        kept, group = self.design.sparse
        lanes = []
        for k, _ in tile[::kept]:
            lanes += [None if k is None else dense for dense in range((k or 0) // kept * group,
                                                                     (k or 0) // kept * group + group)]
        return [None if k is None or k >= self.terms else k for k in lanes]

    def x_beats(self):
        """`i_x` for one command: rows of pass 0, of pass 1, ..."""
        design, layout = self.design, activations_layout(self.design)
        for tile in self.tiles:
            lanes = self._lanes(tile)
            for row in range(len(self.x)):
                fields = {"mantissa": [0 if k is None else self.x[row, k] for k in lanes]}
                if self.blocks:
                    scales = [self._scale(0, row, tile[s * self.lay.height][1]) for s in range(self.lay.segments)]
                    scales += [(77, 1)] * (design.segments - len(scales))    # not looked at
                    fields |= {"exponent": [e for e, _ in scales], "invalid": [i for _, i in scales]}
                yield pack(layout, **fields)

    def w_beats(self):
        """`i_w` for all column tiles."""
        design, layout = self.design, weights_layout(self.design)
        ends = [(s + 1) * self.lay.height - 1 for s in range(self.lay.segments)]
        for columns in self.column_tiles:
            columns = [*columns, *[None] * (design.cols - len(columns))]
            for tile in self.tiles:
                for row, (k, block) in enumerate(tile):
                    fields = {"mantissa": [0 if k is None or n is None else self.w[k, n] for n in columns]}
                    if self.blocks:
                        scales = [self._scale(1, n or 0, None if n is None else block) if row in ends else (99, 1)
                                  for n in columns]
                        fields |= {"exponent": [e for e, _ in scales], "invalid": [i for _, i in scales]}
                    if design.takes_sparse:
                        fields["index"] = [design.sparse[1] - 1 - row % 2 if not self.sparse else
                                           0 if k is None or n is None else self.index[k, n] for n in columns]
                    yield pack(layout, **fields)
