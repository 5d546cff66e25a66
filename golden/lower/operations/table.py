"""Which function lowers which of torch's operations."""

from typing import Any

import torch

from hbfp.golden import vector_programs as programs
from hbfp.golden.nn.side import FUNCTIONS

from ..nodes import Handler
from ..same import aten
from .elements import binary, divide, function, masked
from .moves import cat, embedding, pad, pad_mode, stack
from .products import conv2d, linear, matmul
from .rows import batch_norm, layer_norm, softmax
from .steps import NORMS
from .windows import adaptive, mean, pool, pool_1d

hbfp = torch.ops.hbfp
_add = binary(programs.add, programs.shift)

_HANDLERS: dict[Any, Handler] = {
    hbfp.linear.default: linear, hbfp.matmul.default: matmul, hbfp.conv2d.default: conv2d,
    hbfp.add_bias.default: _add, aten.add.Tensor: _add, aten.add_.Tensor: _add,
    aten.sub.Tensor: binary(programs.subtract, lambda b: programs.shift(-b)),
    aten.mul.Tensor: binary(programs.multiply, programs.scale), aten.div.Tensor: divide,
    aten.softmax.int: softmax, aten._softmax.default: softmax, aten.layer_norm.default: layer_norm,
    **dict.fromkeys(NORMS, batch_norm),
    aten.max_pool2d.default: pool(float("-inf"), programs.maximum),
    aten.max_pool1d.default: pool_1d(float("-inf"), programs.maximum),
    aten.avg_pool2d.default: pool(0.0, programs.average), aten.avg_pool1d.default: pool_1d(0.0, programs.average),
    aten.adaptive_avg_pool2d.default: adaptive, aten.mean.dim: mean, aten.constant_pad_nd.default: pad,
    aten.pad.default: pad_mode, aten.cat.default: cat, aten.stack.default: stack,
    aten.embedding.default: embedding, aten.masked_fill.Scalar: masked}


def handler_of(target: Any) -> Handler | None:
    """What lowers nodes of an operation of torch; None if nothing does."""
    found = _HANDLERS.get(target)
    if found is None and getattr(target, "overloadpacket", None) in FUNCTIONS:
        return function
    return found
