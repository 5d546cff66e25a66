"""Comparisons, what is made of truths, and what truths choose: 1 stands for true, and 0 for false.

The vector unit knows whether a number is above 0, and nothing else of the kind: x > y is whether x - y, rounded and
flushed, is. So numbers closer to each other than the smallest normal number are equal. Where the difference is NaN,
``>``, ``<`` and ``!=`` are false, and their opposites ``<=``, ``>=`` and ``==`` are true.
"""

from typing import Any

import torch

from ..vector import programs
from .operation import Elements, Operation, Shape, Unsupported, calls

aten = torch.ops.aten


def _compared(name, program, opposite=False):
    def form(x, y):
        own = program() if isinstance(y, torch.Tensor) else program(float(y))
        return Elements(programs.negated(own) if opposite else own, (x, y) if isinstance(y, torch.Tensor) else (x,))
    return Operation(name, calls(name), Shape.ELEMENT, form, truth=True)


def _of_truths(name, program):
    def form(*operands):
        if any(each.is_floating_point() for each in operands):
            raise Unsupported("it takes real numbers; truths would do")    # parts make them
        return Elements(program, operands)

    def parts(*operands):
        return getattr(torch, f"logical_{name}")(*(each != 0 if each.is_floating_point() else each
                                                   for each in operands))
    return Operation(name, calls(f"logical_{name}", f"bitwise_{name}"), Shape.ELEMENT, form, parts, truth=True)


def _where(mask, x, other):
    given = [each for each in (x, other) if isinstance(each, torch.Tensor)]
    numbers = [None if isinstance(each, torch.Tensor) else float(each) for each in (x, other)]
    return Elements(programs.select(*numbers), (mask, *given))


OPERATIONS: tuple[Any, ...] = (
    _compared("gt", programs.above), _compared("lt", programs.below), _compared("ne", programs.differs),
    _compared("le", programs.above, True), _compared("ge", programs.below, True),
    _compared("eq", programs.differs, True),
    _of_truths("and", programs.multiply()), _of_truths("or", programs.maximum(2)),
    _of_truths("not", programs.difference_from(1.0)), _of_truths("xor", programs.differs()),
    Operation("where", calls("where"), Shape.ELEMENT, _where))
