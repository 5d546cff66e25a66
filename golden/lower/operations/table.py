"""What lowers which of torch's operations: those of the vector unit by their forms, products and moves by their own."""

from typing import Any

import torch

from hbfp.golden.ops.operation import Shape
from hbfp.golden.ops.table import operation_of

from ..nodes import Handler
from ..transposed import conv_transpose, input_gradient
from .convolutions import conv2d, weight_gradient, weights_gradient
from .dropout import dropout
from .image_gradients import images_gradient
from .moved import moved
from .moves import MOVES
from .products import add_bias, linear, matmul, pruned
from .tables import bags, rows_gradient
from .vector import vector

hbfp = torch.ops.hbfp
PRODUCTS: dict[Any, Handler] = {
    hbfp.linear.default: linear, hbfp.matmul.default: matmul, hbfp.conv2d.default: conv2d,
    hbfp.add_bias.default: add_bias, torch.ops.aten.embedding_dense_backward.default: rows_gradient,
    torch.ops.aten._embedding_bag_forward_only.default: bags, torch.ops.aten._embedding_bag.default: bags,
    hbfp.dropout.default: dropout, hbfp.pruned.default: pruned,
    input_gradient: images_gradient, conv_transpose: images_gradient, weight_gradient: weights_gradient}


def handler_of(target: Any) -> Handler | None:
    """What lowers nodes of an operation of torch; None if nothing does."""
    operation = operation_of(target)
    if operation is None or operation.shape == Shape.PARTS:
        return PRODUCTS.get(target)
    return MOVES.get(target, moved) if operation.shape == Shape.MOVE else vector
