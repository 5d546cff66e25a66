"""Dropout: a pass of the vector unit that draws what it drops by the places of elements, forward and backward alike."""

from typing import Any

from hbfp.golden.position import factor, pitch, threshold
from hbfp.golden.vector import programs

from .. import vectors
from ..errors import LoweringError
from ..memory import Value
from ..nodes import Made, Nodes


def dropout(net: Nodes, node: Any) -> Made:
    """Lower a dropout by position; LoweringError if the accelerator draws no numbers."""
    x, p, key, _ = node.args
    accelerator = net.accelerator
    if not accelerator.stochastic:
        raise LoweringError("it drops elements at random, and the accelerator draws no numbers; --rounding stochastic "
                            "would do")
    value, dims = net.value(x), net.graph.results[node].dim()
    output = net.fresh(node, list(range(dims)))
    if not dims:
        value, output = (Value(each.where[None], each.home) for each in (value, output))
    columns, words, dims = value.shape[-1], accelerator.row_words, list(range(len(value.shape)))
    row = pitch(columns) // accelerator.unit_lanes
    for first in range(0, -(-columns // net.build.lanes), words):
        def program(number, first=first * accelerator.turns):
            return [programs.dropping(key, threshold(p)), programs.place(number * row + first, row),
                    *programs.dropped(float(factor(p)))]
        part, own = (each.words(dims[-1], first, words, net.build.lanes) for each in (value, output))
        vectors.by_rows(net.build, program, [part], dims, [own])
    return node, ()
