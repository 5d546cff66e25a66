"""What becomes of the rows that a program gives: they stay, are left out, or are added up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hbfp.golden.spec.vector import NOTHING, Op, Reduce, Target, VectorInstruction, constant, register
from hbfp.golden.vector.programs import vector

Program = list[VectorInstruction]


@dataclass(frozen=True)
class Result:
    """One of the tensors that a form gives: what becomes of the rows that its program gives in this place.

    Attributes
    ----------
    single : bool
        Whether only the first number of a row counts.
    over : tuple of int
        Dimensions of :meth:`golden.ops.operation.Rows.rows` of an operand over which rows are added, ascending.
    keep : bool
        Whether the dimensions of which one number is left stay, of size 1.
    """
    single: bool = False
    over: tuple[int, ...] = ()
    keep: bool = True


#: What most operations give.
ALONE = (Result(),)


def without(program: Program, *numbers: int) -> Program:
    """A program that gives all its results but those of these numbers, from 0."""
    found, number = [], -1
    for each in program:
        number += (out := each.target == Target.STREAM)
        if not out or number not in numbers:
            found.append(each)
        elif each.reduce != Reduce.NONE:
            found.append(replace(each, target=Target.NONE))
    return found


def running(program: Program, results: Sequence[Result], first: int) -> tuple[Program, Program, Program]:
    """A program that adds up the results with ``over`` in registers ``first``, ``first + 1`` and so on.

    Returns
    -------
    before, body, after : list of VectorInstruction
        What runs once at first, for each row, and once after all rows; the last gives the sums in the order of results.
    """
    nothing = constant(NOTHING)
    before, body, after = [], [], []
    number, total = -1, first
    for each in program:
        number += (out := each.target == Target.STREAM)
        if not out or not results[number].over:
            body.append(each)
            continue
        adds = each.op == Op.MULADD and each.post == "none" and each.c == nothing and not each.negate_c
        if adds and each.reduce == Reduce.NONE:
            body.append(replace(each, c=register(total), target=Target.REGISTER, target_index=total))
        else:
            spare = first + sum(1 for result in results if result.over)
            body += [replace(each, target=Target.REGISTER, target_index=spare),
                     vector(register(spare), c=register(total), to=total)]
        before.append(vector(nothing, to=total))
        after.append(vector(register(total), to="out"))
        total += 1
    return before, body, after
