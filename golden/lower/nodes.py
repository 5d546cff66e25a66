"""What the lowering of a node asks about the others: who uses it, and whether it is there."""

import operator
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import fx

from hbfp.program import Product
from hbfp.system import Accelerator

from .chains import Chain
from .graph import kind, place
from .memory import Value
from .tensors import Tensors


@dataclass
class Nodes(Tensors):
    """The nodes of a model, those of them that another has lowered already, and what a batch chooses.

    Attributes
    ----------
    done : set of torch.fx.Node
        Those that another has lowered.
    bordered : dict
        (node, padding) -> a copy of the node's images with zeros around, if there is one.
    batches : bool
        Whether inputs are written anew for each run, as torch has them.
    whole : set of torch.fx.Node
        Those that follow from whole numbers of a batch alone.
    choices : list of Choice
        Instructions (:class:`golden.lower.operations.tables.Choice`) that take rows by them.
    chains : dict
        Node -> its program, of those that are put off until their results are needed.
    """
    done: set[fx.Node] = field(default_factory=set)
    bordered: dict[tuple[fx.Node, tuple[int, ...]], Value] = field(default_factory=dict)
    batches: bool = False
    whole: AbstractSet[fx.Node] = frozenset()
    choices: list[Any] = field(default_factory=list)
    chains: dict[fx.Node, Chain] = field(default_factory=dict)

    def value(self, node: fx.Node) -> Value:
        """Where a node's result lies; what was put off is done first."""
        if node in self.chains and (run := self.chains.pop(node).run) is not None:
            schedule = self.build.schedule
            own, schedule.kind = schedule.kind, f"{place(node).partition(' ')[0]} {kind(node)}"
            run()
            schedule.kind = own
        return super().value(node)

    def take_up(self, node: fx.Node) -> Chain:
        """The program of a node that is put off, for one that reads its result; the last of these leaves none."""
        chain = self.chains[node]
        chain.readers -= 1
        if not chain.readers:
            del self.chains[node]
        return chain

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator that the model is lowered for."""
        return self.build.accelerator

    @cached_property
    def live(self) -> set[fx.Node]:
        """The nodes that the program computes."""
        return set(self.graph.nodes)

    def users(self, node: fx.Node) -> list[fx.Node]:
        """The nodes of the program that use a node's result; none if the model returns it."""
        return [user for user in node.users if user in self.live and node not in self.graph.outputs]

    def only_user(self, node: fx.Node) -> fx.Node | None:
        """The one node that uses a node's result; None if there are more, or the model returns it."""
        users = self.users(node)
        return users[0] if len(users) == 1 else None

    def readers(self, node: fx.Node) -> dict[int, list[fx.Node]]:
        """Number of each result of a node that the program needs -> the nodes that take it out; empty if there is one.
        """
        found: dict[int, list[fx.Node]] = {}
        for user in node.users:
            if user.target is operator.getitem and user in self.live:
                found.setdefault(user.args[1], []).append(user)
        return dict(sorted(found.items()))

    def follower(self, node: fx.Node, *targets: Any) -> fx.Node | None:
        """The one node that uses a node's result, if it is one of ``targets`` and takes it first; else None."""
        user = self.only_user(node)
        return user if user is not None and user.target in targets and user.args[0] is node else None

    def is_there(self, node: fx.Node) -> bool:
        """Whether a node's result can be loaded by what is lowered next."""
        return isinstance(self.values.get(node), Value) or node in self.graph.inputs or node in self.graph.constants

    def is_constant(self, node: Any) -> bool:
        """Whether an operand is a constant of the graph, or no node at all."""
        return not isinstance(node, fx.Node) or node in self.graph.constants


#: What lowers a node, and those behind it that go with it, gives: the last of them, and the products.
Made = tuple[fx.Node, tuple[Product, ...]]
Handler = Callable[[Nodes, Any], Made]
