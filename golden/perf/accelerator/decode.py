"""A program as arrays, which the cycle model steps through."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import FIELDS, WAITS, Opcode, Unit
from hbfp.program import Program

Array = NDArray[np.int64]

#: Fields that an instruction has at most.
FIELD_COUNT = max(len(fields) for fields in FIELDS.values())


def places(opcode: Opcode) -> dict[str, int]:
    """Name -> column of :attr:`Decoded.fields` of an opcode's fields."""
    return {field.name: place for place, field in enumerate(FIELDS[opcode])}


@dataclass(frozen=True)
class Decoded:
    """Instructions in their order.

    Attributes
    ----------
    opcode, unit : ndarray, (instructions,)
        ``unit`` is 0 for HALT.
    waits : ndarray, (instructions, 3, 2)
        Unit, 0 for none, and count.
    fields : ndarray, (instructions, fields)
        Values, as :func:`places` has them.
    numbers : ndarray, (8, instructions)
        Row u: the numbers of unit u's instructions in their order; the rest is 0.
    """
    opcode: Array
    unit: Array
    waits: Array
    fields: Array
    numbers: Array


def decoded(program: Program) -> Decoded:
    """The arrays of a program."""
    count = len(program.instructions)
    opcode, unit = np.zeros(count, np.int64), np.zeros(count, np.int64)
    waits, fields = np.zeros((count, WAITS, 2), np.int64), np.zeros((count, FIELD_COUNT), np.int64)
    numbers, seen = np.zeros((len(Unit) + 1, count), np.int64), [0] * (len(Unit) + 1)
    columns = {opcode: places(opcode) for opcode in Opcode}
    for number, each in enumerate(program.instructions):
        opcode[number], unit[number] = each.opcode, each.unit or 0
        for place, wait in enumerate(each.waits):
            waits[number, place] = wait.unit, wait.count
        for name, value in each.values.items():
            fields[number, columns[each.opcode][name]] = value
        numbers[unit[number], seen[unit[number]]] = number
        seen[unit[number]] += 1
    return Decoded(opcode, unit, waits, fields, numbers)
