"""Gated units: a tensor times a function of another, one program in place of two.

``hbfp::gated`` stands in graphs for what a model writes as two operations (:mod:`golden.ops.patterns`), and has their
bits. ``glu`` gates one half of a tensor by the sigmoid of the other.
"""

import torch

from ..vector import programs
from .operation import Elements, Operation, Shape, calls

aten = torch.ops.aten
#: Operation of core ATen -> name of the function of the vector unit by which a tensor can be gated.
FUNCTIONS = {getattr(aten, name).default: name for name in ("sigmoid", "silu", "tanh", "relu", "gelu")}

torch.library.define("hbfp::gated", "(Tensor x, Tensor gate, str function) -> Tensor")


@torch.library.impl("hbfp::gated", "CompositeImplicitAutograd")
def _parts(x, gate, function):
    return x * getattr(aten, function)(gate)


def _gated(x, gate, function):
    return Elements(programs.gated(function), (gate, x))


def _halves(x, dim):
    return x.chunk(2, dim)


def _glu(x, dim=-1):
    x, gate = _halves(x, dim)
    return x * torch.sigmoid(gate)


def _glu_gradient(gradient, x, dim):
    x, gate = _halves(x, dim)
    opened = torch.sigmoid(gate)
    return torch.cat([gradient * opened, aten.sigmoid_backward(gradient * x, opened)], dim)


OPERATIONS = (
    Operation("gated", (torch.ops.hbfp.gated,), Shape.ELEMENT, _gated),
    Operation("glu", calls("glu"), Shape.PARTS, parts=_glu),
    Operation("glu_backward", calls("glu_backward"), Shape.PARTS, parts=_glu_gradient, gradient=True))
