"""Programs of one row made programs of two, whose instructions take turns: each hides what the other waits for."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

from ..spec.vector import SCALARS, STREAM, Kind, Operand, Reduce, Source, Target, VectorInstruction, VectorUnit
from .cycles import schedule

Program = Sequence[VectorInstruction]
#: Times that a program is laid behind itself to see what one of it takes.
_AGAIN = 2


def paired(program: Program, unit: VectorUnit, length: int, spare: int = SCALARS) -> list[VectorInstruction] | None:
    """A program of two rows, the first of them with the first row that it takes and gives; None if it gains nothing.

    Bits are the same, since each row has the operations of the program in its order. The second has registers and
    scalars of its own for what the program writes; how far it is behind the first is what the unit is done with first.

    Parameters
    ----------
    program : sequence of VectorInstruction
        Of one row: passes and operations on scalars.
    unit : VectorUnit
    length : int
        Elements of a row.
    spare : int
        The scalars from this one on are left as they are.

    Returns
    -------
    list of VectorInstruction or None
        None also where the program takes or gives several rows, keeps anything from one row to the next, or where the
        unit has not enough registers or scalars for both.
    """
    found = _paired(tuple(program), unit, length, spare)
    return None if found is None else list(found)


@lru_cache(256)    # layers of a network have the same few programs
def _paired(program, unit, length, spare):
    if not any(each.reduce for each in program) or not _one_row(program):
        return None
    second = _moved(program, unit.registers, spare)
    if second is None:
        return None
    orders = [_merged(program, second, lead) for lead in range(1, len(program) + 1)]
    best = min(orders, key=lambda order: _cycles(order, unit, length))
    return best if _cycles(best, unit, length) < 2 * _cycles(program, unit, length) else None


def by_itself(program: Program) -> bool:
    """Whether a program takes nothing from other rows, nor a row that is in a register before: it may run for several
    rows in each pass.
    """
    found = _found(program)
    written = {other for each in program for other in _written(each)}
    return not found & written and all(each.kind in (Kind.VECTOR, Kind.SCALAR) and not each.drop for each in program) \
        and not any(operand.source == Source.REGISTER for operand in found)


def _one_row(program):
    """Whether a program does nothing but passes and operations on scalars, and takes and gives a row at most."""
    return (all(each.kind in (Kind.VECTOR, Kind.SCALAR) for each in program)
            and sum(STREAM in (each.a, each.b, each.c) for each in program) <= 1
            and sum(each.target == Target.STREAM for each in program) <= 1)


def _written(each):
    """The registers and scalars that an instruction writes."""
    found = [Operand(Source.SCALAR, each.reduce_index)] if each.reduce != Reduce.NONE else []
    if each.target in (Target.REGISTER, Target.SCALAR):
        found.append(Operand(Source(each.target), each.target_index))
    return found


def _found(program):
    """What a program reads as it finds it."""
    read, own = set(), set()
    for each in program:
        read |= {each.a, each.b, each.c} - own
        own |= set(_written(each))
    return read


def _moved(program, registers, spare):
    """The program with others in place of the registers and scalars that it writes; None if there are not enough."""
    read, own = _found(program), {other for each in program for other in _written(each)}
    if read & own:                          # what a row finds there is what the row before has left
        return None
    other = {}
    for source, size in ((Source.REGISTER, registers), (Source.SCALAR, spare)):
        free = (place for index in count() if (place := Operand(source, index)) not in read | own)
        other |= dict(zip(sorted((place for place in own if place.source == source), key=lambda place: place.index),
                          free, strict=False))
        if any(place.index >= size for place in other.values() if place.source == source):
            return None

    def number(source, index):
        return other.get(Operand(source, index), Operand(source, index)).index
    return [replace(each, **{name: other.get(getattr(each, name), getattr(each, name)) for name in "abc"},
                    target_index=number(Source(each.target), each.target_index),
                    reduce_index=number(Source.SCALAR, each.reduce_index) if each.reduce else 0) for each in program]


def _merged(first, second, lead):
    """The instructions of two in turns, the first being ``lead`` ahead."""
    order = list(first[:lead])
    for place, each in enumerate(second):
        order += [each, *first[lead + place:lead + place + 1]]
    return order


def _cycles(program, unit, length):
    """Cycles from one to the next of a program that is executed again and again."""
    accepted = schedule([*program] * (_AGAIN + 1), unit, length)
    return accepted[_AGAIN * len(program)] - accepted[(_AGAIN - 1) * len(program)]
