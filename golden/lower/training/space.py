"""Space in DRAM that a step of training gives out again once nothing reads what lies there.

Steps of large networks have more tensors than 4 GiB hold at a time. A program of which all fit keeps them, so that
each can be looked at behind the step.
"""

from collections.abc import Iterator

from ..memory import Home, Value
from ..network import Network
from ..tensors import first_of
from ..views import is_view

#: Bytes of tensors from which on a step gives space back: half of what addresses reach, as tensors are copied, too.
CROWDED = 1 << 31


def crowded(net: Network) -> bool:
    """Whether the results of a step need so much space that it is given out again."""
    sizes = (first_of(net.graph.results[node]).numel() for node in net.graph.nodes if not is_view(node.target))
    return 4 * sum(sizes) > CROWDED


class Space:
    """What of a network's space is still to be read.

    Parameters
    ----------
    net : Network
    """

    def __init__(self, net: Network) -> None:
        self.net = net
        place = {node: number for number, node in enumerate(net.graph.nodes)}
        self.last = {node: max((place[user] for user in node.users if user in place), default=number)
                     for node, number in place.items()}
        self.last |= {node: len(place) for node in net.graph.outputs}
        self.place = place
        self.lowered = -1

    def give_back(self, emitted: bool) -> None:
        """Give back what nothing reads behind the node that has been lowered, which is the next in order.

        Unless all of them are ``emitted``: what is not yet in the program may be read behind what comes next.
        """
        net, dram = self.net, self.net.build.dram
        self.lowered += 1
        if not emitted:
            return
        waiting = {node for chain in net.chains.values() for node in chain.operands} | set(net.chains)
        used: set[int] = set()
        for node, value in net.values.items():
            if self.last.get(node, len(self.place)) > self.lowered or node in waiting:
                used |= {id(home) for home in homes(value)}
        for (node, _), value in net.bordered.items():
            if self.last.get(node, len(self.place)) > self.lowered:
                used.add(id(value.home))
        gone = [home for home in dram.pieces if id(home) not in used]
        for home in gone:
            dram.free(home)
        if gone:
            self._forget({id(home) for home in gone})

    def _forget(self, gone):
        """Nodes whose results are gone have no value, and no name by which to look at it."""
        net = self.net
        for node in [node for node, value in net.values.items() if any(id(home) in gone for home in homes(value))]:
            del net.values[node]
            name = net.name(node)
            if node not in net.graph.inputs and name in net.tensors and net.tensors[name].role == "inner":
                for known in (net.tensors, net.expected, net.orders):
                    known.pop(name, None)


def homes(value: object) -> Iterator[Home]:
    """The pieces of a node's value, or values."""
    if isinstance(value, Value):
        yield value.home
    elif isinstance(value, dict):
        yield from (each.home for each in value.values())
    elif isinstance(value, (list, tuple)):
        yield from (each.home for each in value)
