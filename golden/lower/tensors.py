"""Where the results of a model's nodes lie, and the numbers that each of the program's tensors must have."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import fx

from hbfp.program import Tensor

from . import vectors
from .builder import Builder
from .graph import Graph, named
from .memory import Value, located


@dataclass
class Tensors:
    """The tensors of a model, some of them known by name.

    Parameters
    ----------
    graph : Graph
        The model.
    build : Builder
        The program that it becomes, or becomes a part of.
    number : int or None
        The model's own in a job.
    values : dict
        Node -> the value, or values, that its result is in DRAM.
    tensors, expected, orders : dict
        Name -> tensor of the program; the numbers that it must have; the order of torch's dimensions in it.
    """
    graph: Graph
    build: Builder
    number: int | None = None
    values: dict[fx.Node, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    expected: dict[str, np.ndarray] = field(default_factory=dict)
    orders: dict[str, list[int]] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What stands before all names of a model of a job; empty without a job."""
        return "" if self.number is None else f"{self.number}/"

    def value(self, node: fx.Node) -> Value:
        """Where a node's result lies; constants and inputs are put there when they are first asked for."""
        if node not in self.values:
            result = self.graph.results[node]
            order = self.order(node)
            self.values[node] = (self.build.dram.empty(result.shape, order) if result.is_meta else
                                 self.build.dram.constant(result.detach().float().numpy(), order))
            if node in self.graph.inputs:
                self.known_as(self.name(node), self.values[node], result, order, "input")
        return self.values[node]

    def order(self, node: fx.Node) -> list[int]:
        """The order of a tensor's dimensions that is put into DRAM as an input or a constant."""
        return channels_last(self.graph.results[node].dim())

    def constant(self, node: fx.Node | None) -> Any:
        """The numbers of a constant operand as a tensor; None stays None."""
        return None if node is None else self.graph.results[node].detach()

    def name(self, node: fx.Node) -> str:
        """What a node's tensor is called."""
        return self.prefix + named(node)

    def known_as(self, name: str, value: Value, result: Any, order: list[int], role: str) -> None:
        """Give a value a name in the program: a tensor of this role that must have the numbers of ``result``."""
        laid = first_of(result).float().permute(order)
        self.orders[name] = list(order)
        self.tensors[name] = Tensor(4 * value.address, tuple(laid.shape), "word", role)
        if not laid.is_meta:
            self.expected[name] = laid.contiguous().numpy()

    def fresh(self, node: fx.Node, order: list[int] | None = None, filled: float | None = None) -> Value:
        """Space for a node's result, or the first of several, which gets the node's name; before the program runs its
        rows have the number ``filled``, if there is one, with zeros around.
        """
        result = first_of(self.graph.results[node])
        order = channels_last(result.dim()) if order is None else order
        value = self.build.dram.empty(result.shape, order, again=filled is None)
        if filled is not None:
            self.build.dram.zeros(value.home, filled)
        self.values[node] = value
        self.known_as(self.name(node), value, result, order, "inner")
        return value

    def copy(self, value: Value, target: Value) -> None:
        """Copy a tensor into another of its shape."""
        vectors.copy(self.build, value, target)

    def contiguous(self, value: Value) -> Value:
        """A copy in torch's own order of elements, without gaps."""
        target = self.dense(value.shape)
        self.copy(value, target)
        return target

    def dense(self, shape: tuple[int, ...]) -> Value:
        """Space for a tensor in torch's own order of elements, without gaps."""
        home = self.build.dram.home(1, int(np.prod(shape, dtype=np.int64)))
        self.build.dram.zeros(home)
        strides: list[int] = []
        step = 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        return Value(located(shape, strides, home.address), home)


def channels_last(dims: int) -> list[int]:
    """The order in which the dimensions of a tensor lie: torch's own, but of four dimensions the channels innermost."""
    return [0, 2, 3, 1] if dims == 4 else list(range(dims))


def first_of(result: Any) -> Any:
    """A result, or the first of several."""
    return result[0] if isinstance(result, (tuple, list)) else result
