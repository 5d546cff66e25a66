"""What each node of a model's graph became: its products, its instructions, or the node that it goes with."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import fx
from torch.utils._pytree import tree_leaves

from hbfp.program import Product, Program

from .graph import kind, place
from .views import is_view

#: What is said of nodes without instructions, products and an owner.
LEFT = "as it lies"


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
    products: tuple[Product, ...] = ()
    view: bool = False

    def instructions(self, program: Program) -> dict[str, int]:
        """How many instructions of each kind it has in its program."""
        return dict(Counter(each.opcode.name.lower() for each in program.instructions[self.first:self.stop]))

    def text(self, program: Program) -> str:
        """What it became, in words."""
        counts = self.instructions(program)
        parts = [", ".join(f"{f'{each.count} times ' * (each.count > 1)}{each.rows}x{each.terms}x{each.columns}"
                           for each in self.products)] if self.products else []
        parts += [", ".join(f"{count} {name}" for name, count in counts.items())] if counts else []
        parts += [f"with {self.owner}"] if self.owner else []
        return "; ".join(parts) or ("view" if self.view else LEFT)


def became(node: fx.Node, name: str, names: Iterable[str], result: Any, owner: str = "", first: int = 0, stop: int = 0,
           products: tuple[Product, ...] = ()) -> Became:
    """What a node that gives ``result`` became; ``name`` is its own, and ``names`` are those of its operands."""
    shapes = tuple(tuple(each.shape) for each in tree_leaves(result) if hasattr(each, "shape"))
    return Became(name, place(node), kind(node), tuple(names), shapes, owner, first, stop, products,
                  is_view(node.target))
