"""Products of a step that others do not wait for, and what the vector unit and the DMA do meanwhile.

Nothing of the backward pass reads the gradient of a weight but its update. So such a product is held back, and its
instructions stand among those of the layers behind it, up to the next product, and of updates whose gradients are
there: these are for the vector unit and for DRAM, and the array multiplies meanwhile. Each side has a part of V.
A program that must give way often has some products apart: what the vector unit keeps for the others would hold YIELDs
off for as long as they take.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from hbfp.isa.instructions import Opcode
from hbfp.program import Layer, Product

from ..among import among, cost
from ..graph import named, place
from ..operations.convolutions import weight_gradient
from ..operations.tables import BY_NUMBER
from ..schedule import Emission, Span
from ..transposed import input_gradient
from .space import homes

#: Words of V from which on a quarter of it holds pieces that are long enough.
BESIDE = 2048
#: Quarters of V that the product has: with less, what it brings waits for words.
SHARE = 3
hbfp = torch.ops.hbfp
_PRODUCTS = (hbfp.linear.default, hbfp.matmul.default, hbfp.conv2d.default, input_gradient, weight_gradient)


class Beside:
    """The product of a network that is held back, and what is to stand beside it.

    Parameters
    ----------
    net : Network
        A step of training.
    """

    def __init__(self, net: Any) -> None:
        self.net, self.build = net, net.build
        self.split = net.accelerator.v_words * SHARE // 4  # the first word of V that the others have
        self.product: list[Emission] = []
        self.others: list[Emission] = []
        self.held: tuple[str, fx.Node, fx.Node, tuple[Product, ...]] | None = None
        place_of = {node: number for number, node in enumerate(net.graph.nodes)}
        nodes, self.ready, self.number = net.nodes, {}, -1
        for name in net.updates:                           # when nothing of the step reads a parameter any more
            users = [place_of[user] for user in nodes[name].users if user in place_of]
            own = nodes[f"{name} gradient"]
            self.ready[name] = max([place_of.get(own, len(place_of)), *users])

    def before(self, node: fx.Node) -> Iterator[Layer]:
        """Let what is held go if a node is a product or reads it; say where the node's instructions go."""
        self.number += 1
        product = node.target in _PRODUCTS
        if self.held and (product or node.target in BY_NUMBER or self._reads(node)):
            if product:
                for operand in node.all_input_nodes:       # what was put off until now
                    if operand in self.net.chains:
                        self.net.value(operand)
            yield from self._go()
        if self.held:
            return
        if product and node not in self.net.done and (name := place(node)).startswith("gw ") \
                and name not in self.net.apart:
            self.build.schedule.tape = self.product
            self.build.confine(0, self.split)

    def behind(self, node: fx.Node, last: fx.Node, made: tuple[Product, ...]) -> None:
        """What a node that was lowered has become: held back, if it went to the product's tape."""
        if self.held is None and self.build.schedule.tape is self.product:
            self.held = place(node), node, last, made
            self.build.schedule.tape = self.others
            self.build.confine(self.split, self.build.accelerator.v_words)

    def rest(self) -> Iterator[Layer]:
        """Let go what is held behind the last node."""
        self.number = len(self.net.graph.nodes) + 1
        if self.held:
            yield from self._go()

    def _reads(self, node):
        """Whether a node reads what the product gives."""
        own = {id(home) for home in homes(self.net.values.get(self.held[2]))}
        left, found = list(node.all_input_nodes), set()
        while left:
            each = left.pop()
            if each in self.net.chains:
                left += self.net.chains[each].operands
            else:
                found |= {id(home) for home in homes(self.net.values.get(each))}
        return bool(own & found) or self.held[2] in node.all_input_nodes

    def _go(self):
        """Emit the product among the others."""
        net, schedule = self.net, self.build.schedule
        name, node, last, made = self.held
        left = cost(self.product) - cost(self.others)
        for own, ready in self.ready.items():
            if left <= 0:
                break
            if own not in net.updated and ready < self.number and net.nodes[f"{own} gradient"] is not last \
                    and not self._reads(net.nodes[f"{own} gradient"]):
                before = len(self.others)
                net.update(own)
                left -= cost(self.others[before:])
        schedule.tape = None
        self.build.confine(0, self.build.accelerator.v_words)
        first = len(schedule.instructions)
        copies = max((place for place, each in enumerate(self.product, 1) if each.opcode == Opcode.VECTOR), default=0)
        schedule.replay(self.product[:copies])             # which set the vector unit's length, as the others do
        product = self.product[copies:]
        schedule.replay([*product, *self.others] if touch(product, self.others) else among(product, self.others))
        self.product, self.others, self.held = [], [], None
        used = {layer.name for layer in net.layers}
        net.layers.append(Layer(name if name not in used else f"{name} {named(last)}", first,
                                len(schedule.instructions), sum(each.macs for each in made), made))
        yield net.layers[-1]


def touch(one: Sequence[Emission], other: Sequence[Emission]) -> bool:
    """Whether one of two lists writes what the other reads or writes."""
    def spans(emissions, writes):
        found: dict[str, list[Span]] = {}
        for each in emissions:
            for span in each.writes if writes else (*each.reads, *each.writes):
                found.setdefault(span.memory, []).append(span)
        return found
    return any(_overlap(written.get(memory, []), used)
               for a, b in ((one, other), (other, one)) for written in [spans(a, True)]
               for memory, used in spans(b, False).items())


def _overlap(one, other):
    """Whether a span of one list shares an address with one of the other."""
    ends = sorted([(span.start, span.stop, side) for side, spans in enumerate((one, other)) for span in spans])
    reach = [0, 0]
    for start, stop, side in ends:
        if start < reach[1 - side]:
            return True
        reach[side] = max(reach[side], stop)
    return False
