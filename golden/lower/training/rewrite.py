"""What of a step's graph is written in other operations, with the same bits, before it is lowered."""

import operator
from collections.abc import Mapping

import torch
from torch import fx

from ..errors import LoweringError
from ..views import is_view
from .inserted import inserted
from .masks import by_gates

#: N and M.
Sparsity = tuple[int, int]
aten, hbfp = torch.ops.aten, torch.ops.hbfp


def rewrite(module: fx.GraphModule, known: Mapping[fx.Node, torch.Tensor], anew: Sparsity | None = None
            ) -> None:
    """Write operations that the accelerator does better, or alone, in place of those that autograd calls.

    A gradient of layer norm takes eps in place of the mean and the root that the forward pass has kept: a program reads
    three tensors at most. For masks, which ``known`` placeholders may be: :func:`~.masks.by_gates`. Those of sparse
    weights are gates, or, where they are made ``anew`` in each step, what pruning leaves to N of M.
    """
    for node in list(module.graph.nodes):
        _keep_operand(node)
        if node.target == aten.native_layer_norm_backward.default:
            _layer_norm(node)
        elif node.target == hbfp.sparse_weight.default:
            _sparse(node, anew)
    by_gates(module, known)


def _sparse(node, anew):
    """What a mask leaves of a weight by a gate, since a mantissa of -0 is that of +0; or by pruning it."""
    weight, mask, _, formats = node.args
    if anew is not None:
        if weight.meta["val"].dim() != 2:
            raise LoweringError("The masks of a convolution's weights cannot be made anew in each step; masks that "
                                "stay would do")
        node.replace_all_uses_with(inserted(node, hbfp.pruned.default, weight, *anew))
        return
    if formats:
        raise LoweringError("A sparse weight that is quantised before it is pruned cannot be trained; order "
                            "'sparsify-quantise' would do")
    gate = inserted(node, aten._to_copy.default, mask, dtype=torch.float32)
    node.replace_all_uses_with(inserted(node, hbfp.kept.default, gate, weight))


def _keep_operand(node):
    """Let an operation that changes its operand, which nothing else reads, give another tensor in its place."""
    packet = getattr(node.target, "overloadpacket", None)
    own = getattr(aten, packet.__name__.removesuffix("_"), None) if packet else None
    if own is None or own is packet or not node.target._schema.is_mutable or not node.args[0].args:
        return
    alone = set(node.args[0].users) == {node} and not is_view(node.args[0].target)
    if alone and node.target._overloadname in own.overloads():
        node.target = getattr(own, node.target._overloadname)


def _layer_norm(node):
    gradient, x, shape, mean, _, weight, *_ = node.args
    while mean.target is not operator.getitem:             # group norm's are views
        mean = mean.args[0]
    node.replace_all_uses_with(inserted(node, hbfp.layer_norm_backward.default, gradient, x, shape,
                                        mean.args[0].args[4], weight))
