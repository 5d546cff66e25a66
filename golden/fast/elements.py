"""Compiled programs of the vector unit, for those without sums and operations on scalars.

They give the bits of :class:`golden.vector.unit.Machine`, all passes over a piece of the elements before the next
piece. A function can only come last.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hbfp.golden.spec.vector import CONSTANTS, SCALARS, Kind, Op, Operand, Reduce, Source, Target, VectorInstruction

from . import kernels

#: Nanoseconds, roughly, of one thread for a pass over an element.
_PASS = 0.3
_NUMBER, _REGISTER, _STREAM = range(3)
_OUT, _NONE = -1, -2
#: What a scalar holds before it is written.
_UNDEFINED = 0x7FC00000


class _Operand(ctypes.Structure):
    """``struct Operand`` of elements.h."""
    _fields_ = [("kind", ctypes.c_uint32), ("value", ctypes.c_uint32)]


class _Pass(ctypes.Structure):
    """``struct Pass`` of elements.h."""
    _fields_ = [*((name, ctypes.c_uint32) for name in ("op", "relu", "negate_a", "negate_c")),
                *((name, _Operand) for name in "abc"), ("target", ctypes.c_int32)]


def _operand(operand: Operand, scalars: list[int], row: int) -> _Operand:
    match operand.source:
        case Source.CONSTANT:
            return _Operand(_NUMBER, CONSTANTS[operand.index])
        case Source.SCALAR:
            return _Operand(_NUMBER, scalars[operand.index])
        case Source.REGISTER:
            return _Operand(_REGISTER, operand.index)
    return _Operand(_STREAM, row)


@dataclass(frozen=True, eq=False)
class Passes:
    """A program as the kernel takes it.

    Attributes
    ----------
    passes : ctypes array
        ``struct Pass`` of elements.h, in their order.
    rows : int
        Rows that it reads.
    function : str
        The function that is still to be applied to the row that it gives, or ``none``.
    """
    passes: Any
    rows: int
    function: str


@lru_cache(1024)
def compiled(program: tuple[VectorInstruction, ...]) -> Passes | None:
    """A legal program for :func:`run`; None if the kernel cannot run it, or it reads an unwritten register."""
    passes: list[_Pass] = []
    written: set[int] = set()
    scalars, rows, function = [_UNDEFINED] * SCALARS, 0, "none"
    for number, each in enumerate(program):
        if each.kind == Kind.SET:
            scalars[each.target_index] = each.immediate
            continue
        operands = each.a, each.b, each.c
        read = {operand.index for operand in operands if operand.source == Source.REGISTER}
        last = number == len(program) - 1 and each.target == Target.STREAM
        if each.kind != Kind.VECTOR or each.reduce != Reduce.NONE or read - written or not (
                last or each.post in ("none", "relu")):
            return None
        function = each.post if each.post != "relu" else "none"
        target = {Target.REGISTER: each.target_index, Target.STREAM: _OUT}.get(each.target, _NONE)
        passes.append(_Pass(Op(each.op), each.post == "relu", each.negate_a, each.negate_c,
                            *(_operand(operand, scalars, rows) for operand in operands), target))
        rows += any(operand.source == Source.STREAM for operand in operands)
        written |= {target} if target >= 0 else set()
    if sum(each.target == _OUT for each in passes) != 1:
        return None
    return Passes((_Pass * len(passes))(*passes), rows, function)


def ascending(rows: np.ndarray) -> np.ndarray:
    """Sums of contiguous ``uint32`` patterns over their first dimension, from -0 on, each rounded and flushed."""
    total = np.full(rows.shape[1:], 0x80000000, np.uint32)
    kernels.loaded().hbfp_ascending(rows.ctypes.data, len(rows), total.size, total.ctypes.data)
    return total


def run(program: Passes, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """The row that a compiled program gives before its function, of contiguous ``uint32`` rows of one size."""
    out = np.empty_like(inputs[0])
    rows = (ctypes.c_void_p * len(inputs))(*(each.ctypes.data for each in inputs))
    passes, count = ctypes.addressof(program.passes), len(program.passes)

    def part(first, last):
        kernels.loaded().hbfp_elements(passes, count, ctypes.addressof(rows), out.ctypes.data, first, last)
    kernels.split(out.size, _PASS * count * out.size, part, 1024)
    return out
