"""Dropout whose mask follows from the places of elements: docs/numerics.md, section 6.

``hbfp::dropout`` stands for torch's dropout where a model draws by position. Key and share say all: the gradient is the
same operation, and nothing is kept for it.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .. import position
from .operation import Operation, Shape, Unsupported

torch.library.define("hbfp::dropout", "(Tensor x, float p, int key, int step) -> Tensor")


def _product(x, p, key, step):
    """x times what its elements are multiplied by."""
    return x * torch.from_numpy(position.dropout(key ^ step, tuple(x.shape), p)).to(x)


def _parts(x, p, key, step):
    if isinstance(x, FakeTensor):
        raise Unsupported("its numbers are not known while it is traced; it stays whole")
    return _product(x, p, key, step)


torch.library.impl("hbfp::dropout", "CompositeExplicitAutograd", _product)
torch.library.register_fake("hbfp::dropout", lambda x, p, key, step: torch.empty_like(
    x, memory_format=torch.contiguous_format))
torch.library.register_autograd(
    "hbfp::dropout", lambda ctx, g: (torch.ops.hbfp.dropout(g, *ctx.rest), None, None, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "rest", inputs[1:]))

OPERATIONS = (Operation("dropout", (torch.ops.hbfp.dropout,), Shape.PARTS, parts=_parts),)
