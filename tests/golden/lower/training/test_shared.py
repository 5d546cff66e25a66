"""What two models of a job have alike: inputs, and what follows from these by the same functions."""

import operator

import torch
from torch import fx

from golden.lower.graph import Graph
from golden.lower.training.shared import follows, same


def made(factor, table=(1.0, 2.0)):
    """A graph: an input, a constant, and a product with a sum behind it."""
    graph = fx.Graph()
    x, constant = graph.placeholder("x"), graph.get_attr("constant")
    first = graph.call_function(operator.mul, (x, factor))
    second = graph.call_function(torch.add, (first, constant))
    results = {x: torch.ones(2), constant: torch.tensor(table), first: torch.ones(2), second: torch.ones(2)}
    return Graph([first, second], results, {constant}, {x: "x"}, [second], [None], {})


def twins(one, other):
    """How many nodes of one follow, one after the other, from an input that is the same."""
    (x,), (y,) = one.inputs, other.inputs
    assert same(x, one, y, other)
    found = {x: y}
    return sum(follows(node, one, found, other) for node in one.nodes)


def test_what_follows_alike_is_one():
    assert twins(made(2), made(2)) == 2
    assert twins(made(2), made(3)) == 0
    assert twins(made(2), made(2, (1.0, 3.0))) == 1
    one, other = made(2), made(2)
    assert not follows(one.nodes[0], one, {}, other)


def test_what_a_host_computes_is_the_same_if_its_functions_are():
    one, other, third = made(2), made(2), made(3)
    assert same(one.nodes[1], one, other.nodes[1], other)
    assert not same(one.nodes[1], one, third.nodes[1], third)
    other.results[next(iter(other.inputs))] = torch.zeros(2)
    assert not same(one.nodes[1], one, other.nodes[1], other)
