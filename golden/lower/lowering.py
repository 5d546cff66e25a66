"""From a model to a program of the accelerator, layer by layer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from hbfp.checks import check_kind
from hbfp.golden.nn.side import Distance
from hbfp.golden.number.arrays import listed
from hbfp.program import Layer, Program
from hbfp.system import Accelerator

from .became import Became
from .beneath import Beneath, with_or_without
from .builder import Builder
from .errors import LoweringError
from .graph import Graph, traced
from .network import Network, of_the_job


@dataclass
class Lowered:
    """A program, and what it has to compute.

    Attributes
    ----------
    program : Program
        Inputs and weights are in its memory.
    expected : dict
        Name of a tensor of the program -> float32 array of the tensor's shape: what PyTorch computes after
        ``golden.nn.convert(model, ..., side=Side.of(accelerator))``. Outputs are those of that model itself; what each
        layer gives is taken from torch's graph of it.
    orders : dict
        Name -> the dimensions of torch's tensor, in the order in which the program has them.
    outputs : list of str
        Tensors that the model returns, in its order.
    distances : dict
        Operation beside products -> how far the accelerator's results are from PyTorch's own function of the same
        operands.
    kinds : tuple of str
        What each instruction is for: of a step of training its part, and the operation behind a space.
    became : tuple of Became
        What each node of torch's graph became, in order.
    """
    program: Program
    expected: dict[str, np.ndarray]
    orders: dict[str, list[int]]
    outputs: list[str]
    distances: dict[str, Distance] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    became: tuple[Became, ...] = ()

    @property
    def programs(self) -> list[Program]:
        """The program, as a list."""
        return [self.program]

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Name of each input -> its shape, as torch has it."""
        return {name: self.torch_order(name, self.expected[name]).shape for name, each in self.program.tensors.items()
                if each.role == "input"}

    def torch_order(self, name: str, values: np.ndarray) -> np.ndarray:
        """A tensor of the program as torch has it."""
        return values.transpose(np.argsort(self.orders[name]))


def lower(model: torch.nn.Module, inputs: tuple[Any, ...], accelerator: Accelerator, *, yields: bool = False
          ) -> Lowered:
    """The program of a model in evaluation for given inputs.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is. If :func:`golden.nn.convert` has converted it, then to the accelerator's formats.
    inputs : tuple
        What its ``forward`` takes. Integers, such as indices of an embedding, become part of the program.
    accelerator : Accelerator
        The one that will run it; for a context with a share of its memories, what ``Accelerator.share`` gives.
    yields : bool
        Whether a YIELD stands behind each layer.

    Raises
    ------
    LoweringError
        If a layer cannot be lowered, or has a format of its own; one line with the layer's name, why, and what would
        work. Also if the model gives other numbers than its graph.
    """
    check_kind("accelerator", accelerator, Accelerator)
    check_kind("model", model, torch.nn.Module)
    return lower_graph(traced(model, inputs, accelerator), accelerator, yields)


def lower_graph(graph: Graph, accelerator: Accelerator, yields: bool = False) -> Lowered:
    """The program of a traced model, as :func:`lower` gives it; the graph may be lowered again, for another accelerator
    of the same formats, too. The instructions are then that one's, numbers and what is expected those of the other's.
    """
    nodes = list(graph.nodes)

    def made(beneath: bool) -> Lowered:
        graph.nodes[:] = nodes
        net = Network(graph, Builder(accelerator))
        net.beneath = Beneath(net) if beneath else None
        return finished(net.build, [net], yields)
    return with_or_without(made)


def lower_job(models: Sequence[torch.nn.Module], inputs: Sequence[tuple[Any, ...]], accelerator: Accelerator, *,
              yields: bool = False) -> Lowered:
    """One program of several models, each with the bits that it has alone, without a host between them.

    They take turns layer by layer, so that one loads and converts while another multiplies.

    Parameters
    ----------
    models : sequence of torch.nn.Module
        Models as :func:`lower` takes them, of one architecture or of several.
    inputs : sequence of tuple
        What ``forward`` of each model takes.
    accelerator : Accelerator
        The one that will run them.
    yields : bool
        Whether a YIELD stands behind the layers of each turn.

    Returns
    -------
    Lowered
        Tensors and layers of model n have ``n/`` before their names; ``outputs`` are those of all models, in order.

    Raises
    ------
    LoweringError
        As :func:`lower` does, with the model's number before the line.
    ValueError
        If there are not as many inputs as models.
    """
    check_kind("accelerator", accelerator, Accelerator)
    models = listed(models, "Models")
    for model in models:
        check_kind("model", model, torch.nn.Module)
    build, parts = Builder(accelerator), []
    for number, (model, given) in enumerate(zip(models, inputs, strict=True)):
        try:
            parts.append(Network(traced(model, given, accelerator), build, number))
        except ValueError as error:
            raise LoweringError(f"{of_the_job(number)}{error}") from error
    return finished(build, parts, yields)


def finished(build: Builder, parts: Sequence[Network], yields: bool = False) -> Lowered:
    """The program of models that are not yet lowered, and what it has to compute."""
    going, common = [each.layer_by_layer() for each in parts], list[Layer]()
    build.waiting = [] if len(parts) > 1 else None
    while going:
        going = [each for each in going if next(each, None)]
        together(build, common)
        if yields and going:
            build.schedule.give_way()
    build.schedule.halt()
    layers = sorted([*common, *(layer for each in parts for layer in each.layers)], key=lambda each: each.first)
    program = Program(accelerator=build.accelerator, instructions=tuple(build.schedule.instructions),
                      limit=build.dram.end * 4,
                      memory=tuple(sorted(build.dram.regions, key=lambda each: each.address)),
                      tensors=_united(each.tensors for each in parts), layers=tuple(layers))
    return Lowered(program, _united(each.expected for each in parts), _united(each.orders for each in parts),
                   [name for each in parts for name in each.outputs], _total(each.graph.distances for each in parts),
                   tuple(build.schedule.kinds),
                   tuple(node.counted(program.instructions) for each in parts for node in each.became))


def together(build: Builder, layers: list[Layer]) -> None:
    """Do what models of a job have put off to the end of a turn, as layers of all of them."""
    while build.waiting:
        one, *_ = build.waiting
        several = [each for each in build.waiting if each.kind == one.kind]
        build.waiting = [each for each in build.waiting if each.kind != one.kind]
        first = len(build.schedule.instructions)
        one.together(build, several)
        build.end_layer()
        layers.append(Layer(one.name, first, len(build.schedule.instructions)))


def _total(several):
    """Distances of several models, by operation."""
    found = {}
    for name, distance in (item for each in several for item in each.items()):
        found[name] = found.get(name, Distance()) + distance
    return found


def _united(several):
    """Dictionaries without a common key as one, in order."""
    return {key: value for each in several for key, value in each.items()}
