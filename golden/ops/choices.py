"""One tensor or another, element by element, by gates of 1 and 0 in place of truths, which the vector unit has not.

The operations stand in graphs of training for what torch writes with a mask (:mod:`golden.lower.training.masks`).
"""

import torch

from ..vector import programs
from .operation import Elements, Operation, Shape


def _operation(name, program):
    """An operation ``hbfp::name`` of a gate and two tensors."""
    torch.library.define(f"hbfp::{name}", "(Tensor gate, Tensor x, Tensor other) -> Tensor")

    @torch.library.impl(f"hbfp::{name}", "CompositeExplicitAutograd")
    def chosen(gate, x, other):
        return torch.where(gate > 0, x, other)
    torch.library.register_fake(f"hbfp::{name}", chosen)
    return Operation(name, (getattr(torch.ops.hbfp, name),), Shape.ELEMENT,
                     lambda gate, x, other: Elements(program, (gate, x, other)))


def _kept():
    """The operation ``hbfp::kept`` of a gate and a tensor, of which it leaves -0 where the gate is 0."""
    torch.library.define("hbfp::kept", "(Tensor gate, Tensor x) -> Tensor")

    @torch.library.impl("hbfp::kept", "CompositeExplicitAutograd")
    def kept(gate, x):
        return torch.where(gate > 0, x, -0.0)
    torch.library.register_fake("hbfp::kept", kept)
    return Operation("kept", (torch.ops.hbfp.kept,), Shape.ELEMENT,
                     lambda gate, x: Elements(programs.kept(), (gate, x)))


#: The ``other`` of ``choose`` is -0 where the gate is 1, and no -0 elsewhere; that of ``select`` is any.
OPERATIONS = (_operation("choose", programs.choose()), _operation("select", programs.select()), _kept())
