"""Programs of several operations on each element: what one gives stays in a register for the next.

A chain puts off an operation until those that read its result: each takes it up, and the result never goes to DRAM.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from hbfp.golden.ops.operation import Program
from hbfp.golden.spec.vector import (
    NOTHING,
    ONE,
    STREAM,
    Kind,
    Op,
    Operand,
    Reduce,
    Source,
    Target,
    VectorInstruction,
    constant,
    register,
    scalar,
)


@dataclass
class Chain:
    """A program of each element that is not yet run.

    Attributes
    ----------
    program : list of VectorInstruction
        It gives one row, with its last instruction.
    operands : list of torch.fx.Node
        Whose rows it takes from its inputs, in order.
    run : callable
        Runs it for the node that it is of, whose result then lies in DRAM.
    readers : int
        Nodes that have yet to take it up.
    """
    program: Program
    operands: list[fx.Node]
    run: Callable[[], Any] | None = None
    readers: int = 1


def simple(program: Program) -> bool:
    """Whether a program can be a part of another: no sums within a row, and one result at its end."""
    gives = [each.target == Target.STREAM for each in program]
    return (all(each.kind in (Kind.SET, Kind.VECTOR) and each.reduce == Reduce.NONE for each in program)
            and gives == [False] * (len(gives) - 1) + [True])


def rows_of(program: Program) -> int:
    """Registers that a program uses: one more than the highest that it names, or none."""
    used = [operand.index for each in program for operand in _operands(each) if operand.source == Source.REGISTER]
    return max(used + [each.target_index for each in program if each.target == Target.REGISTER], default=-1) + 1


def scalars_of(program: Program) -> int:
    """Scalars that a program sets, from 0 on."""
    return sum(each.kind == Kind.SET for each in program)


def passes_of(program: Program) -> int:
    """Passes over a row that a program makes."""
    return len(program) - scalars_of(program)


def computes(program: Program, place: int) -> bool:
    """Whether a program computes with the rows that it takes for operand ``place``, and does not only choose them.

    A register or scalar with these numbers has no subnormals and no NaN but the canonical one.
    """
    return [each for each in program if _reads(each)][place].op == Op.MULADD


def kept_copy(program: Program, operands: Sequence[fx.Node], place: int) -> Operand | None:
    """The register in which a program has the rows that it takes for operand ``place``; None if there is none.

    That is where an operand before it is the same, and is copied to a register that stays.
    """
    reads = [number for number, each in enumerate(program) if _reads(each)]
    for before in range(place):
        copy = program[reads[before]]
        between = program[reads[before] + 1:reads[place]]
        stays = all((each.target, each.target_index) != (copy.target, copy.target_index) for each in between)
        if operands[before] is operands[place] and _copies(copy) and copy.target == Target.REGISTER \
                and copy.post == "none" and program[reads[place]].op == Op.MULADD and stays:
            return register(copy.target_index)
    return None


def composed(program: Program, operands: Sequence[fx.Node], parts: Mapping[fx.Node, Chain]) -> Chain:
    """A program of operands, of which some are chains."""
    numbers: dict[int, int] = {}
    body: list[VectorInstruction] = []
    given: dict[fx.Node, Operand] = {}
    base, streams = rows_of(program), []
    for node in dict.fromkeys(each for each in operands if each in parts):
        *first, last = _moved(parts[node].program, base, numbers)
        body += [*first, replace(last, target=Target.REGISTER, target_index=base)]
        given[node] = register(base)
        streams += parts[node].operands
        base += 1
    streams += [each for each in operands if each not in parts]
    body += _moved(program, 0, numbers)
    count = len(streams) - sum(each not in parts for each in operands)
    places = [None] * count + [given.get(each) for each in operands]
    sets = [VectorInstruction(kind=Kind.SET, target_index=index, immediate=bits) for bits, index in numbers.items()]
    return Chain([*sets, *_packed(_shorter(_substituted(body, places)))], streams)


def with_operands(program: Program, places: Sequence[Operand | None]) -> Program:
    """A program with other operands in place of rows of its inputs; None stays a row of an input."""
    return _shorter(_substituted(program, places))


def _operands(each):
    return each.a, each.b, each.c


def _reads(each):
    return each.kind == Kind.VECTOR and STREAM in _operands(each)


def _mapped(each, change):
    return replace(each, **{name: change(getattr(each, name)) for name in "abc"})


def _moved(program, base, numbers):
    """A program without what sets its scalars, whose registers begin at ``base``; ``numbers`` has all scalars' bits."""
    own = {each.target_index: numbers.setdefault(each.immediate, len(numbers)) for each in program
           if each.kind == Kind.SET}

    def change(operand):
        match operand.source:
            case Source.REGISTER:
                return register(operand.index + base)
            case Source.SCALAR:
                return scalar(own.get(operand.index, operand.index))
        return operand
    return [replace(_mapped(each, change), target_index=each.target_index + base * (each.target == Target.REGISTER))
            for each in program if each.kind != Kind.SET]


def _substituted(program, places):
    """A program with operands in place of rows, from the stream."""
    found, left = [], iter(places)
    for each in program:
        if _reads(each) and (operand := next(left)) is not None:
            each = _mapped(each, lambda own, operand=operand: operand if own == STREAM else own)
        found.append(each)
    return found


def _shorter(program):
    """The same without copies: of registers and scalars, of rows that one instruction reads, and to the end.

    A copy flushes subnormals and makes any NaN the canonical one, as every product and sum does; what only chooses
    between rows does not.
    """
    found = list(program)
    for number, each in reversed(list(enumerate(program))):
        if _copies(each) and each.target == Target.REGISTER and each.post == "none":
            behind, own = found[number + 1:], register(each.target_index)
            alive = _until_written(own, behind)
            if _spared(each, found[:number], alive):
                found[number:] = [_mapped(other, lambda one, own=own, by=each.a: by if one == own else one)
                                  for other in alive] + behind[len(alive):]
    *first, last = found
    if first and _copies(last) and first[-1].target == Target.REGISTER and first[-1].post == "none" \
            and first[-1].op == Op.MULADD and last.a == register(first[-1].target_index):
        return [*first[:-1], replace(first[-1], target=last.target, target_index=last.target_index, post=last.post)]
    return found


def _packed(program):
    """The same in as few registers as hold what is still to be read; it reads none that it has not written."""
    found, now = [], dict[int, int]()
    for number, each in enumerate(program):
        behind = program[number + 1:]
        changed = _mapped(each, lambda own, now=now: register(now[own.index]) if own.source == Source.REGISTER else own)
        now = {own: new for own, new in now.items()
               if any(register(own) in _operands(other) for other in _until_written(register(own), behind))}
        if each.target == Target.REGISTER:
            now.pop(each.target_index, None)
            now[each.target_index] = min(set(range(len(now) + 1)) - set(now.values()))
            changed = replace(changed, target_index=now[each.target_index])
        found.append(changed)
    return found


def _until_written(own, program):
    """A program up to the instruction that writes a register, that included."""
    places = [number for number, each in enumerate(program)
              if each.target == Target.REGISTER and register(each.target_index) == own]
    return program[:places[0] + 1] if places else program


def _spared(copy, before, behind):
    """Whether what a copy copies can stand where its register is read; ``behind`` goes until that is written."""
    own = register(copy.target_index)
    users = [each for each in behind if own in _operands(each)]
    if copy.a in [register(each.target_index) for each in behind[:-1] if each.target == Target.REGISTER]:
        return False
    if copy.a == STREAM:
        return (len(users) == 1 and users[0].op == Op.MULADD
                and not any(_reads(each) for each in behind[:behind.index(users[0]) + 1]))
    writers = [each for each in before if each.target == Target.REGISTER and register(each.target_index) == copy.a]
    return not writers or writers[-1].op == Op.MULADD or all(each.op == Op.MULADD for each in users)


def _copies(each):
    """Whether an instruction passes its first operand on, to a function perhaps."""
    return (each.kind == Kind.VECTOR and each.op == Op.MULADD and each.b == constant(ONE)
            and each.c == constant(NOTHING) and not each.negate_a and not each.negate_c and each.reduce == Reduce.NONE)
