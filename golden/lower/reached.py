"""What of a graph follows from some of its nodes, or they from."""

from collections.abc import Iterable

from torch import fx


def reached(nodes: Iterable[fx.Node], onward: bool = False) -> set[fx.Node]:
    """Nodes, and all that they follow from; ``onward``: all that follows from them."""
    found, left = set[fx.Node](), list(nodes)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.users if onward else node.all_input_nodes
    return found
