"""Operations of the vector unit on rows: softmax, and norms that rows of numbers belong to."""

from typing import Any

import numpy as np

from hbfp.golden import vector_programs as programs

from .. import vectors
from ..errors import LoweringError
from ..nodes import Made, Nodes
from .steps import learned, norm_rows


def _rows(net, node, program, value, dim):
    """A program for each row along a dimension."""
    dims = len(value.shape)
    order = [d for d in range(dims) if d != dim % dims] + [dim % dims]
    output = net.fresh(node, order)
    _row_fits(net, value.shape[dim])
    vectors.by_rows(net.build, program, [value], order, output)
    return node, ()


def _row_fits(net, length):
    longest = net.accelerator.row_words * net.build.lanes
    if length > longest:
        words = -(-length // net.build.lanes)
        raise LoweringError(f"rows of {length} numbers are longer than the vector unit's {longest}; --row-words "
                            f"{words} would do")


def softmax(net: Nodes, node: Any) -> Made:
    """Along any dimension."""
    return _rows(net, node, programs.softmax(), net.value(node.args[0]), node.args[1])


def layer_norm(net: Nodes, node: Any) -> Made:
    """Over the last dimension."""
    x, shape, weight, bias = (*node.args, None, None)[:4]
    eps = node.args[4] if len(node.args) > 4 else 1e-5
    if len(shape) != 1:
        raise LoweringError(f"it normalises over {len(shape)} dimensions; over the last alone would do")
    n = shape[0]
    _row_fits(net, n)
    value = net.value(x)
    if weight is None and bias is None:
        return _rows(net, node, programs.layer_norm_plain(n, eps), value, -1)
    gamma = np.ones(n, np.float32) if weight is None else net.constant(weight).numpy()
    beta = np.zeros(n, np.float32) if bias is None else net.constant(bias).numpy()
    vectors.constant_rows(net.build, (gamma, beta))
    return _rows(net, node, programs.layer_norm(n, eps, 1, 2), value, -1)


def batch_norm(net: Nodes, node: Any) -> Made:
    """With statistics of its own, behind no product."""
    if not learned(node):
        raise LoweringError("it takes its statistics from the batch; track_running_stats=True would do")
    factors, value = norm_rows(net, node), net.value(node.args[0])
    dims = len(value.shape)
    order = [d for d in range(dims) if d != 1] + [1]
    _row_fits(net, value.shape[1])
    vectors.constant_rows(net.build, [row.view(np.float32) for row in factors])
    output = net.fresh(node, order)
    vectors.by_rows(net.build, programs.scale_shift(1, 2), [value], order, output)
    return node, ()
