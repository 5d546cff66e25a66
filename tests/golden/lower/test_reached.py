"""What follows from a node of a graph, and what it follows from."""

import torch

from golden.lower.reached import reached


def test_both_ways():
    """a and b are inputs; c follows from a, d from both, and e from nothing."""
    graph = torch.fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    c, e = graph.call_function(torch.neg, (a,)), graph.call_function(torch.zeros, (2,))
    d = graph.call_function(torch.add, (c, b))
    f = graph.call_function(torch.add, (d, e))
    assert reached([a], onward=True) == {a, c, d, f} and reached([b], onward=True) == {b, d, f}
    assert reached([d]) == {a, b, c, d} and reached([e]) == {e} and reached([]) == set()
