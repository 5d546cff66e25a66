"""Nodes that a step's graph gets behind autograd."""

from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode


def inserted(before: fx.Node, target: Any, *args: Any, **options: Any) -> fx.Node:
    """A node that stands before another, and belongs to the same part and layer; with the tensors that it gives."""
    with before.graph.inserting_before(before):
        made = before.graph.call_function(target, args, options)
    given = fx.node.map_arg((args, options), lambda each: each.meta["val"])
    mode = detect_fake_mode([each.meta["val"] for each in before.graph.nodes if each.op == "placeholder"])
    assert mode is not None
    with mode, torch.no_grad():
        made.meta = {**before.meta, "val": target(*given[0], **given[1])}
    return made
