"""Transposed convolutions: what the gradient of a convolution's images is, and lowered as that.

Images of two dimensions, and lines, come as volumes of depth 1 (:mod:`golden.nn.volume`).
"""

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

hbfp, aten = torch.ops.hbfp, torch.ops.aten


def input_gradient(g: torch.Tensor, w: torch.Tensor, sides: Sequence[int], *options: Any) -> torch.Tensor:
    """The gradient of a convolution's images (N, C, H, W), of which ``sides`` are H and W: a node of a step."""
    *_, groups, _ = options
    x = torch.zeros(g.shape[0], w.shape[1] * groups, *sides)
    return hbfp.conv2d_backward(g, x, w, *options, [True, False])[0]


def conv_transpose(x: torch.Tensor, w: torch.Tensor, sides: Sequence[int], *options: Any) -> torch.Tensor:
    """A transposed convolution of images: :func:`input_gradient` under its own name."""
    return input_gradient(x, w, sides, *options)


def as_gradients(graph: fx.Graph) -> None:
    """Put :func:`conv_transpose` where a graph has transposed convolutions of depth 1; of others nothing changes."""
    for node in list(graph.nodes):
        if node.target == hbfp.conv_transpose3d.default and all(
                each.meta["val"].shape[2] == 1 for each in (*node.args[:2], node)):
            _write(graph, node)


def _write(graph, node):
    x, w, stride, padding, _, groups, dilation, text = node.args
    result = node.meta["val"]
    formats = json.loads(text)
    text = json.dumps(formats | {"g": formats["x"]})       # its x has the place of g
    with graph.inserting_before(node):
        flat = []
        for each in (x, w):
            flat.append(graph.call_function(aten.squeeze.dim, (each, 2)))
            flat[-1].meta = {**node.meta, "val": each.meta["val"].squeeze(2)}
        made = graph.create_node("call_function", conv_transpose, (*flat, list(result.shape[3:]), list(stride[1:]),
                                                                   list(padding[1:]), list(dilation[1:]), groups, text),
                                 name="conv_transpose")
        made.meta = {**node.meta, "val": result.squeeze(2)}
        back = graph.call_function(aten.unsqueeze.default, (made, 2))
        back.meta = dict(node.meta)
    node.replace_all_uses_with(back)
    graph.erase_node(node)
