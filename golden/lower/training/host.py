"""What a host does for each batch of a training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import fx

from hbfp.isa.instructions import Instruction
from hbfp.program import Program

from ..errors import LoweringError
from ..operations.tables import Choice
from .capture import Batch, Capture
from .evaluated import called


@dataclass
class Host:
    """What a host does for a batch: the numbers of a step's inputs, of which classes become rows of zeros and a one.

    Attributes
    ----------
    capture : Capture
    moved : dict
        Node -> what the program calls it, of inputs that follow from whole numbers of the batch.
    orders : mapping
        Name of a tensor of the program -> the order in which it has the dimensions.
    program : Program
        The program, as it is for the first batch.
    choices : sequence of Choice
        Its instructions that take rows by whole numbers of a batch.
    leaves : dict
        Name of an input -> its type and shape.
    """
    capture: Capture
    moved: dict[fx.Node, str]
    orders: Mapping[str, Sequence[int]]
    program: Program
    choices: Sequence[Choice] = ()
    leaves: dict[str, Any] = field(default_factory=dict)

    def writes(self, batch: Batch) -> dict[str, np.ndarray]:
        """Name of a tensor of the program -> its numbers for a batch; LoweringError if the batch is another kind."""
        given = self._given(batch)
        found = {name: leaf for name, leaf in given.items() if leaf.is_floating_point()}
        found |= dict(zip(self.moved.values(), self._results(given, self.moved), strict=True))
        return {name: each.detach().float().permute(self.orders[name]).contiguous().numpy()
                for name, each in found.items() if name in self.orders}

    def instructions(self, batch: Batch) -> dict[int, Instruction]:
        """Number -> instruction, of those that take rows of tables, for a batch; LoweringError if there is no such row.
        """
        given, program = self._given(batch), self.program
        nodes = list(dict.fromkeys(each.index for each in self.choices))
        numbers = {node: found.reshape(-1).tolist()
                   for node, found in zip(nodes, self._results(given, nodes), strict=True)}
        for choice in self.choices:
            number = numbers[choice.index][choice.place]
            if not 0 <= number < choice.of:
                raise LoweringError(f"The whole numbers of a batch do not fit the step: {number} is no row of a table "
                                    f"of {choice.of}")
        return {each.instruction: each.written(program.instructions[each.instruction], numbers[each.index][each.place])
                for each in self.choices}

    def _given(self, batch):
        """Name -> tensor of a batch; LoweringError if it is another kind than the first."""
        given = self.capture.leaves(batch)
        for name, leaf in given.items():
            own = getattr(leaf, "dtype", type(leaf)), tuple(getattr(leaf, "shape", ()))
            wanted = self.leaves.setdefault(name, own)
            if own != wanted:
                raise LoweringError(f"Tensor {name} of a batch must be {wanted[0]} of {wanted[1]} as in the first, not "
                                    f"{own[0]} of {own[1]}; batches of one size (drop_last=True) would do"
                                    .replace("torch.", ""))
        return given

    def _results(self, given, nodes):
        """What nodes give that follow from whole numbers."""
        results: dict[fx.Node, Any] = {}

        def result(node):
            if node not in results:
                args, options = fx.node.map_arg((node.args, node.kwargs), result)
                results[node] = (given.get(self.capture.names[node.name], self.capture.given[node.name])
                                 if node.op == "placeholder" else
                                 getattr(self.capture.graph, node.target) if node.op == "get_attr" else
                                 called(node, args, options))
            return results[node]
        return [result(node) for node in nodes]
