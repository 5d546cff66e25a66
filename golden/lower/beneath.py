"""A softmax beneath a product: the vector unit works on one while the array multiplies for the other.

A queue holds a few instructions, so that units run ahead of each other by these, not by a layer. So a softmax comes
behind a product that it does not need, such as that of attention's values, and the instructions of both stand among
each other, each with a part of V.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import torch
from torch import fx

from hbfp.golden.ops.table import operation_of
from hbfp.isa.instructions import Opcode
from hbfp.program import Product

from .among import followed
from .errors import LoweringError
from .reached import reached
from .schedule import Emission

hbfp = torch.ops.hbfp
#: Of how many equal parts of V the softmax has one; the product has the rest.
PARTS = 4
_PRODUCTS = (hbfp.linear.default, hbfp.conv2d.default)
Made = TypeVar("Made")


def with_or_without(make: Callable[[bool], Made]) -> Made:
    """What ``make`` gives where softmax may stand beneath products, or, if a part of V is too small for that, not."""
    with suppress(LoweringError):
        return make(True)
    return make(False)


class Beneath:
    """What of a network is to stand among each other; its nodes are put in order for that.

    Parameters
    ----------
    net : Network
    """

    def __init__(self, net: Any) -> None:
        self.net, self.build = net, net.build
        self.split = net.accelerator.v_words * (PARTS - 1) // PARTS    # the first word of V that the softmax has
        self.partner: dict[fx.Node, fx.Node] = {}          # of both of a pair
        for node in list(net.graph.nodes):
            found = operation_of(node.target)
            if found is not None and found.name == "softmax":
                self._pair(node)
        self.tapes: list[list[Emission]] = []
        self.made: tuple[Product, ...] = ()

    def _pair(self, node):
        """Put the last product that a softmax does not need in front of it, and what follows from that behind it."""
        nodes = self.net.graph.nodes
        place, needed = nodes.index(node), reached(node.all_input_nodes)
        fitting = [each for each in nodes[:place] if each.target in _PRODUCTS and each not in needed]
        if not fitting or fitting[-1] in self.partner:
            return
        product = fitting[-1]
        self.partner |= {product: node, node: product}
        follows = reached(product.users, onward=True)
        late = [each for each in nodes[:place] if each in follows]
        kept = [each for each in nodes[:place] if each is not product and each not in follows]
        nodes[:place + 1] = [*kept, product, node, *late]

    def before(self, node: fx.Node) -> None:
        """A node is to be lowered: where its instructions go."""
        if node in self.partner and not self.tapes:
            self.tapes = [[], []]
            self._go_to(0, 0, self.split)

    def behind(self, node: fx.Node, made: tuple[Product, ...]) -> tuple[fx.Node, tuple[Product, ...]]:
        """It was lowered to these products; whose layer its instructions are, and the products of that.

        Those of a pair are the product's.
        """
        if node not in self.partner:
            return node, made
        if self.build.schedule.tape is self.tapes[0]:
            self.made = made
            self._go_to(1, self.split, self.net.accelerator.v_words)
            return node, made
        self.build.schedule.tape = None
        self.build.confine(0, self.net.accelerator.v_words)
        product, softmax = self.tapes
        apart = any(each.opcode == Opcode.VECTOR for each in product)    # registers stay from one to the next
        self.build.schedule.replay([*product, *softmax] if apart else followed(product, softmax))
        self.tapes = []
        return self.partner[node], self.made

    def _go_to(self, tape, first, stop):
        self.build.schedule.tape = self.tapes[tape]
        self.build.confine(first, stop)
