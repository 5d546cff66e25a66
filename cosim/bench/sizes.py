"""Designs that are simulated in place of large ones."""

import math
from dataclasses import replace
from typing import Any

from hbfp.design import Design

#: Elements up to which the protocol benches run on the design itself; beyond, a smaller one stands for it.
PROTOCOL_LIMIT = 64
#: The same, and for all work, where multipliers are emitted bit by bit: a 32 x 32 array of those is 190 MB of C++.
RECODED_LIMIT = 16


def plain_where_large(design: Design) -> Design:
    """The design that full-size work runs on: the same, with ``plain`` multipliers (equal bits) where it is large."""
    if design.recoded and design.rows * design.cols > RECODED_LIMIT:
        return replace(design, multiplier="plain")
    return design


def smaller(design: Design, limit: int | None = None) -> Design:
    """A design of few elements with the same relation of block, rows and groups, for the protocol benches."""
    limit = limit or (RECODED_LIMIT if design.recoded else PROTOCOL_LIMIT)
    if design.rows * design.cols <= limit:
        return design
    side, (kept, whole) = math.isqrt(limit), design.sparse
    fmt, rows = design.format, min(design.rows, max(side // whole, 1) * whole)
    # Rounded up, to whole groups of sparse weights: no more segments, and as many passes of a block.
    terms = -(-fmt.terms * rows // design.rows // whole) * whole
    block = (terms, terms) if fmt.square else (1, terms)
    height = min(terms * kept // whole, rows)
    fits = all(not terms % of or not of % terms for of in (rows, design.reach(rows)))
    group: Any = None    # what fits
    pipeline = design.pipeline
    if pipeline and design.blocked and rows // height > 1:    # registers need as many cycles between segments
        group, pipeline = (kept, 2 if design.wide else 1), min(pipeline, height // kept)
    most = min(limit // rows, side)
    cols = min(design.cols, most)
    lanes = max(lanes for lanes in range(1, min(terms, rows) + 1) if terms % lanes == 0)
    return replace(design, format=replace(fmt, block=block), rows=rows, cols=cols, group=group,
                   depth=min(design.depth, 64), share=min(design.share, most),
                   ragged=design.ragged or design.blocked and not fits, pipeline=pipeline,
                   side_lanes=math.gcd(design.side_lanes, cols) if design.side_lanes else 0,
                   convert_lanes=math.gcd(design.convert_lanes, lanes) if design.convert_lanes else 0)
