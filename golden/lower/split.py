"""A model of which parts run on the host: programs, with the host's part behind each, in one DRAM.

What a program leaves in DRAM for the next stays there. The host reads what its parts take, and writes what they give
where the next program has it as an input.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import fx

from hbfp.checks import check_kind
from hbfp.golden.nn.side import Distance
from hbfp.program import Program
from hbfp.system import Accelerator

from . import became
from .became import Became
from .beneath import Beneath, with_or_without
from .builder import Builder
from .errors import LoweringError, layer
from .graph import Graph, named, place, traced
from .hosted import HOST, Call, call_of, on_host
from .lowering import Lowered, finished
from .memory import Value
from .network import DIFFERENT, Network, differ

#: Types of numbers of the host that a program can take, as FP32 numbers.
KINDS = (torch.float32, torch.int64, torch.int32, torch.bool)
#: Name of a node -> its numbers, as torch has them.
Numbers = dict[str, torch.Tensor]


@dataclass
class Hosted:
    """A part of the model on the host: its name, how it is called, of which nodes, and which nodes it gives.

    ``gives`` has the number of the result for each, ``became`` what tables say of it.
    """
    layer: str
    call: Call
    given: list[str]
    gives: dict[str, int]
    became: tuple[Became, ...]

    def run(self, there: Numbers) -> Numbers:
        """What it gives, of what is there on the host."""
        made = self.call.run([there[name] for name in self.given])
        return {name: made[number] for name, number in self.gives.items()}


@dataclass
class Part:
    """A program, or None, and what the host does around it.

    Attributes
    ----------
    lowered : Lowered or None
    takes, reads : dict of str to str
        Names of tensors that the host writes before the program runs, and reads behind it -> names of nodes.
    kinds : dict
        Names of these nodes -> torch's type of number.
    hosts : list of Hosted
        What runs on the host behind it.
    """
    lowered: Lowered | None
    takes: dict[str, str] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, torch.dtype] = field(default_factory=dict)
    hosts: list[Hosted] = field(default_factory=list)

    def laid(self, name: str, there: Numbers) -> np.ndarray:
        """The numbers of a tensor that it takes, as the program has them."""
        assert self.lowered is not None
        return there[self.takes[name]].float().permute(self.lowered.orders[name]).contiguous().numpy()

    def back(self, name: str, values: np.ndarray) -> Numbers:
        """The node whose tensor was read, and its numbers as torch has them."""
        assert self.lowered is not None
        values = np.ascontiguousarray(self.lowered.torch_order(name, values))
        return {self.reads[name]: torch.from_numpy(values).to(self.kinds[self.reads[name]])}

    def moved(self) -> tuple[int, int]:
        """Bytes of DRAM that the host writes before its program, and reads behind it."""
        if self.lowered is None:
            return 0, 0
        program = self.lowered.program
        written, read = (sum(program.tensors[name].bytes(program.accelerator) for name in names)
                         for names in (self.takes, self.reads))
        return written, read


@dataclass
class Split:
    """The programs of a model, with what runs on the host.

    Attributes
    ----------
    parts : list of Part
        In the order in which they run.
    known : dict
        What the host has before: inputs and constants that its parts take, by the node's name.
    expected : dict
        Results of the host that the model returns, as PyTorch has them.
    outputs, distances
        As of :class:`~golden.lower.lowering.Lowered`.
    """
    parts: list[Part]
    known: Numbers
    expected: Numbers
    outputs: list[str]
    distances: dict[str, Distance]

    @property
    def programs(self) -> list[Program]:
        """All programs, in order."""
        return [each.lowered.program for each in self.parts if each.lowered is not None]

    @property
    def hosts(self) -> list[str]:
        """The layers that run on the host, in order."""
        return [host.layer for part in self.parts for host in part.hosts]

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Name of each input of a program -> its shape, as torch has it; not what the host gives."""
        return {name: shape for part in self.parts if part.lowered is not None
                for name, shape in part.lowered.inputs.items() if name not in part.takes}

    @property
    def became(self) -> tuple[Became, ...]:
        """What each node became, in order."""
        return tuple(each for part in self.parts for each in (
            *(part.lowered.became if part.lowered is not None else ()),
            *(each for host in part.hosts for each in host.became)))


def lower_split(model: torch.nn.Module, inputs: tuple[Any, ...], accelerator: Accelerator, exclude: Iterable[str]
                ) -> Split:
    """The programs of a model in evaluation, of which the parts that ``exclude`` names run on the host.

    Parameters
    ----------
    model, inputs, accelerator
        As of :func:`~golden.lower.lowering.lower`.
    exclude : sequence of str
        Qualified names of parts, with wildcards.

    Raises
    ------
    LoweringError
        As :func:`~golden.lower.lowering.lower` does.
    ValueError
        If a name means no part of the model, or all of it.
    """
    check_kind("accelerator", accelerator, Accelerator)
    check_kind("model", model, torch.nn.Module)
    apart = on_host(model, exclude)                        # which is to be there as long as its graph is used
    graph = traced(apart, inputs, accelerator)
    if len(graph.outputs) != len(graph.wanted) or any(
            differ(graph.results[node], wanted) for node, wanted in zip(graph.outputs, graph.wanted, strict=True)):
        raise LoweringError(DIFFERENT)
    stages = _stages(graph)
    return with_or_without(partial(_split, graph, stages, accelerator))


def _stages(graph: Graph) -> dict[fx.Node, int]:
    """Node -> how many programs end before it can be computed; calls on the host count to the program before them."""
    stages: dict[fx.Node, int] = {}
    for node in graph.nodes:
        stages[node] = max((stages[each] + (each.target == HOST) for each in node.all_input_nodes if each in stages),
                           default=0)
    return stages


def _split(graph, stages, accelerator, beneath):
    """The programs, stage by stage; ``beneath``: whether softmax may stand beneath products."""
    calls = [node for node in graph.nodes if node.target == HOST]
    back = {node for call in calls for node in call.users if node in stages}      # what the host gives
    taken = {node for call in calls for node in call.all_input_nodes}
    made = Split([], {named(node): graph.results[node] for node in taken if node not in stages},
                 {named(node): graph.results[node] for node in graph.outputs if node in back},
                 [named(node) for node in graph.outputs], graph.distances)
    values, end = dict[fx.Node, Any](), 0
    for stage in range(max(stages.values(), default=0) + 1):
        own = [node for node in graph.nodes if stages[node] == stage and node not in back and node not in calls]
        part = Part(None, hosts=[_hosted(graph, node, stages) for node in calls if stages[node] == stage])
        if own:
            net = Network(_of(graph, own, back, stages), Builder(accelerator), values=values)
            net.build.dram.end = end
            net.beneath = Beneath(net) if beneath else None
            part.lowered = finished(net.build, [net])
            values = {node: each for node, each in net.values.items() if isinstance(each, Value)}
            end = net.build.dram.end
            part.takes = {named(node): named(node) for node in net.graph.inputs
                          if node in back and named(node) in net.tensors}
            part.reads = {name: named(node) for node, name in zip(net.graph.outputs, net.outputs, strict=True)
                          if node in taken}
            part.kinds = {named(node): graph.results[node].dtype for node in net.graph.outputs}
        if own or part.hosts:
            made.parts.append(part)
    return made


def _of(graph, own, back, stages):
    """The graph of some nodes, in order, that takes what others give, and gives what others, or the model, take."""
    inside = set(own)
    outputs = [node for node in own if node in graph.outputs or any(
        user in stages and user not in inside for user in node.users)]
    inputs = graph.inputs | {each: named(each) for node in own for each in node.all_input_nodes if each in back}
    return Graph(own, graph.results, graph.constants, inputs, outputs, [graph.results[node] for node in outputs], {})


def _hosted(graph, call, stages):
    """A call on the host; LoweringError if it gives what the accelerator cannot take."""
    gives = {user: user.args[1] for user in call.users if user in stages}
    for user in gives:
        kind = graph.results[user].dtype
        if kind not in KINDS and any(each in stages for each in user.users):
            raise LoweringError(f"{layer(place(call))} on the host gives {str(kind).removeprefix('torch.')}, which the "
                                "accelerator cannot take; the layer that takes it, too, would do")
    given, first = tuple(map(named, call.args[1])), named(next(iter(gives), call))
    shown = tuple(Became(named(user), place(call), became.HOST, given, (tuple(graph.results[user].shape),),
                         "" if named(user) == first else first) for user in gives)
    return Hosted(place(call), call_of(call), list(given), {named(user): number for user, number in gives.items()},
                  shown)
