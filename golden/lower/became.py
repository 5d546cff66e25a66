"""What each node of a model's graph became: its products, its instructions, or the node that it goes with."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import fx
from torch.utils._pytree import tree_leaves

from hbfp.isa.instructions import Instruction
from hbfp.program import Product

from .graph import kind, place
from .views import is_view

#: What is said of nodes without instructions, products and an owner, and the operation of what runs on the host.
LEFT, HOST = "as it lies", "host"


@dataclass(frozen=True)
class Became:
    """A node and what it became.

    Attributes
    ----------
    node, layer, operation : str
        Its name, the module's part that it belongs to, and what it does.
    operands : tuple of str
        Names of the nodes whose results it takes.
    shapes : tuple of tuple of int
        Of its result, or results.
    owner : str
        The node among whose instructions its own stand; empty if these are ``first`` to ``stop`` - 1.
    first, stop : int
    counts : dict
        How many instructions of each kind these are.
    products : tuple of Product
        What of it the array multiplies.
    view : bool
        Whether it is a view of its operand.
    """
    node: str
    layer: str
    operation: str
    operands: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    owner: str = ""
    first: int = 0
    stop: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    products: tuple[Product, ...] = ()
    view: bool = False

    def counted(self, instructions: Sequence[Instruction]) -> "Became":
        """The same with ``counts`` of the instructions of its program."""
        found = Counter(each.opcode.name.lower() for each in instructions[self.first:self.stop])
        return replace(self, counts=dict(found))

    @property
    def text(self) -> str:
        """What it became, in words."""
        parts = [", ".join(f"{f'{each.count} times ' * (each.count > 1)}{each.rows}x{each.terms}x{each.columns}"
                           for each in self.products)] if self.products else []
        parts += [", ".join(f"{count} {name}" for name, count in self.counts.items())] if self.counts else []
        parts += [f"with {self.owner}"] if self.owner else []
        return "; ".join(parts) or (
            "view" if self.view else HOST if self.operation == HOST else LEFT)


def became(node: fx.Node, name: str, names: Iterable[str], result: Any, owner: str = "", first: int = 0, stop: int = 0,
           products: tuple[Product, ...] = ()) -> Became:
    """What a node that gives ``result`` became; ``name`` is its own, and ``names`` are those of its operands."""
    shapes = tuple(tuple(each.shape) for each in tree_leaves(result) if hasattr(each, "shape"))
    return Became(name, place(node), kind(node), tuple(names), shapes, owner, first, stop, {}, products,
                  is_view(node.target))
