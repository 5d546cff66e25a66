"""A program as records, which the cycle model steps through."""

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import FIELDS, WAITS, Unit
from hbfp.program import Program

from .record import record

#: The fields of all opcodes, by their names.
FIELD = record(" ".join(dict.fromkeys(field.name for fields in FIELDS.values() for field in fields)))
#: Of an instruction: opcode, unit (0 for YIELD and HALT), waits (a unit, 0 for none, and a count), fields, the first of
#: the vector unit's words; and, as the model finds them, the cycles in which it starts and completes, and how many it
#: waits.
INSTRUCTION = record("opcode unit first started completed waited", waits=(np.int64, (WAITS, 2)), fields=FIELD)


def decoded(program: Program, first: NDArray[np.int64]) -> NDArray[np.void]:
    """The instructions of a program in their order; ``first`` has that of each."""
    found = np.zeros(len(program.instructions), INSTRUCTION)
    found["opcode"] = [each.opcode for each in program.instructions]
    found["unit"] = [each.unit or 0 for each in program.instructions]
    found["first"] = first
    column = {name: place for place, name in enumerate(FIELD.names or ())}
    places: list[int] = []
    values: list[int] = []
    for number, each in enumerate(program.instructions):
        places += [number * len(column) + column[name] for name in each.values]
        values += each.values.values()
        if each["argument"] or each["request"]:
            places.append(number * len(column) + column["offset"])
            values.append(program.offset(each))
        for place, wait in enumerate(each.waits):
            found["waits"][number, place] = wait.unit, wait.count
    fields = np.zeros(len(found) * len(column), np.int64)
    fields[places] = values
    found["fields"] = fields.view(FIELD)
    return found


def numbers(program: Program, size: int) -> NDArray[np.int64]:
    """Row u: the numbers of unit u's instructions in their order; the rest, up to ``size``, is 0."""
    result, seen = np.zeros((len(Unit) + 1, size), np.int64), [0] * (len(Unit) + 1)
    for number, each in enumerate(program.instructions):
        unit = each.unit or 0
        result[unit, seen[unit]] = number
        seen[unit] += 1
    return result
