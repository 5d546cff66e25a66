"""VECTORs as several of fewer rows: what memory holds in the end is the same."""

from dataclasses import replace

import numpy as np
import pytest

from golden.lower.divided import divided, rows
from tests.cases import sweep

from .test_yields import ran, step


@pytest.mark.parametrize("most", sweep(3, [3, 2, 1 << 16]))
def test_divided_is_the_same(most):
    program = step()
    may = rows(program)
    made = divided(program, {number: min(count, most) for number, count in may.items()})
    assert len(may) > 5 and len(made.program.instructions) >= len(program.instructions) + len(may)
    np.testing.assert_array_equal(ran(made.program), ran(program))


def test_rows_that_depend_on_each_other_stay_together():
    """Sums over rows, as of a bias's gradient, are of one instruction, and so is a single row."""
    program = step()
    several = {number for number, each in enumerate(program.instructions)
               if each.opcode.name == "VECTOR" and each["count0"] * each["count1"] > 1}
    assert several - set(rows(program))
    number = min(several - set(rows(program)))
    with pytest.raises(ValueError, match=f"Instruction {number} must be a VECTOR of 2 rows or more that are apart"):
        divided(program, {number: 2})


@pytest.mark.parametrize("inner, outer", [(1, 7), (2, 5), (7, 1)])
def test_parts_have_the_rows_of_the_whole(inner, outer):
    """One part is the instruction itself; where rows do not divide evenly the last has fewer."""
    program = step()
    number = min(rows(program))
    values = dict(program.instructions[number].values) | {"count0": inner, "count1": outer}
    program = program.rewritten({number: replace(program.instructions[number], values=values)})
    for parts in range(1, inner * outer + 1):
        made = divided(program, {number: parts})
        first, behind = made.numbers[number:number + 2]
        group = made.program.instructions[first:behind]
        assert sum(each["count0"] * each["count1"] for each in group) == inner * outer
        assert parts > 1 or made.program.instructions == program.instructions
