"""What every layer of a step gives: torch's graph of it, run with the numbers of any step."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from hbfp.golden.nn.placed import at_step
from hbfp.golden.nn.side import sided

from ..operations.convolutions import weight_gradient
from ..tensors import first_of
from ..transposed import input_gradient
from .capture import Batch, Capture
from .reference import Reference


class _Keeping(fx.Interpreter):
    """Runs a graph with the noise of a step, and keeps what these nodes give; all else goes when nobody needs it."""

    def __init__(self, graph: fx.GraphModule, wanted: Mapping[fx.Node, str], key: int) -> None:
        super().__init__(graph)
        self.wanted, self.key, self.found = wanted, key, dict[str, torch.Tensor]()

    def run_node(self, node: fx.Node) -> Any:
        """What a node gives."""
        result = super().run_node(node)
        if node in self.wanted:
            self.found[self.wanted[node]] = first_of(result)
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What an operation gives; texts of formats, and dropouts, are told the step: the graph has the first's."""
        if target is torch.ops.hbfp.dropout.default:
            args = (*args[:-1], self.key)
        elif target in (input_gradient, weight_gradient) or getattr(target, "namespace", None) == "hbfp":
            args = tuple(at_step(each, self.key) if isinstance(each, str) else each for each in args)
        return super().call_function(target, args, kwargs)


def layers(capture: Capture, reference: Reference, wanted: Mapping[fx.Node, str], batch: Batch
           ) -> dict[str, torch.Tensor]:
    """What nodes of a captured step give in the reference's next one, which stays before it.

    Parameters
    ----------
    capture : Capture
    reference : Reference
        Its parameters and buffers are those of the step.
    wanted : mapping
        Node -> name.
    batch : Batch
        The step's.

    Returns
    -------
    dict
        Name -> tensor.
    """
    given = capture.leaves(batch) | dict(reference.model.named_buffers()) | dict(reference.model.named_parameters())
    keeping = _Keeping(capture.graph, wanted, reference.key)
    with torch.no_grad(), sided(reference.side):
        keeping.run(*(given[name].detach() for name in capture.names.values()))
    return keeping.found
