"""Steps of optimisers as layers: parameters and state are read and written where they lie.

One program does every step, so what differs from one to the next is no immediate of it: learning rates, and what Adam
makes of them and of the number of the step. The host computes these numbers, as torch does, and tells the program.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from hbfp.golden.ops.operation import Unsupported
from hbfp.golden.ops.optimisers import GRADIENT, PARAMETER, Update, check, update
from hbfp.golden.spec.vector import Kind, VectorInstruction, scalar
from hbfp.golden.vector import programs

from .. import vectors
from ..alike import Alike
from ..builder import Builder
from ..errors import LoweringError
from ..memory import Value

#: Arguments of a program: how far a step's batch, weights and state lie behind the first place for them, and how far
#: before the second what they become; those behind these are numbers of the optimiser.
PLACE, NEXT = 1, 2


class Numbers:
    """The numbers of an optimiser's steps that a host tells its program, which does the steps of all groups.

    Parameters
    ----------
    optimiser : torch.optim.Optimizer
    first : int
        Number of the first argument that it uses. Where a program has fewer arguments than all need, all of these
        numbers lie in DRAM instead: :func:`lowered`.

    Attributes
    ----------
    updates : list of Update
        What a step does to each parameter of each group; numbers that differ from step to step are arguments.

    Raises
    ------
    LoweringError
        If there is no program for the optimiser.
    """

    def __init__(self, optimiser: torch.optim.Optimizer, first: int) -> None:
        self.first = first
        self.places: list[list[tuple[int, int]]] = []
        try:
            self.updates = [self._shared(optimiser, group) for group in optimiser.param_groups]
        except Unsupported as error:
            raise LoweringError(f"The optimiser cannot be lowered: {error}") from None

    @property
    def stop(self) -> int:
        """Number of the argument behind the last that it uses."""
        return self.first + sum(len(each) for each in self.places)

    def _shared(self, optimiser, group):
        """The update of a group in every step, with arguments in place of what differs; their places are kept."""
        check(optimiser)
        if group.get("dampening") and group["momentum"]:
            raise Unsupported(f"dampening is {group['dampening']!r}, which the first step leaves out, and one program "
                              "does all; 0 would do")
        one = update(optimiser, group, 2, kept=True)
        other = update(optimiser, {**group, "lr": 2 * group["lr"] + 1}, 3, kept=True)
        places = [(part, place) for part, (mine, its) in enumerate(zip(one.parts, other.parts, strict=True))
                  for place, (word, another) in enumerate(zip(mine.program, its.program, strict=True))
                  if word != another]
        number = self.first + sum(len(each) for each in self.places)
        self.places.append(places)
        return _changed(one, {where: programs.argument(_word(one, where).target_index, number + count)
                              for count, where in enumerate(places)})

    def values(self, optimiser: torch.optim.Optimizer, step: int) -> tuple[int, ...]:
        """The arguments of step number ``step``, from 1, of an optimiser whose learning rates may have changed.

        Raises
        ------
        LoweringError
            If anything else has changed.
        """
        found: list[int] = []
        for number, (group, shared, places) in enumerate(zip(optimiser.param_groups, self.updates, self.places,
                                                             strict=True)):
            now = update(optimiser, group, step, kept=True)
            if _changed(now, {where: _word(shared, where) for where in places}) != shared:
                raise LoweringError(f"Group {number} of the optimiser has other options in step {step} than its "
                                    "program; another learning rate alone would do")
            found += [_word(now, where).immediate for where in places]
        return tuple(found)


def _word(each, where):
    """The instruction of an update in a part and a place."""
    part, place = where
    return each.parts[part].program[place]


def _changed(each: Update, words: Mapping[tuple[int, int], VectorInstruction]) -> Update:
    """An update with other instructions in some places."""
    return Update(tuple(replace(part, program=[words.get((number, place), word) for place, word in enumerate(
        part.program)]) for number, part in enumerate(each.parts)))


def told(each: Update, arguments: Sequence[int]) -> Update:
    """An update with the values of arguments in their places."""
    return Update(tuple(replace(part, program=[
        replace(word, kind=Kind.SET, immediate=arguments[word.immediate - 1]) if word.kind == Kind.ARGUMENT else word
        for word in part.program]) for part in each.parts))


def lowered(build: Builder, each: Update, values: Mapping[str, Value], arguments: Sequence[int], further: int,
            table: Value | None = None, name: str = "") -> None:
    """Emit an update of tensors that lie at ``values``, whose results lie so many elements further on; ``arguments``
    are those of a step. In a job, those of one ``name`` may wait for each other.

    Where all do not fit a program, ``table`` has a row of DRAM for each but those that say where things lie; the vector
    unit takes them into its scalars before each update.
    """
    names = (PARAMETER, GRADIENT, *each.state)
    places = [values[name] for name in names]
    if not places[0].shape:
        places = [Value(value.where[None], value.home) for value in places]
    order = vectors.physical(places[0])
    zeros = told(each, arguments).results(dict.fromkeys(names, np.zeros(1, np.uint32)))
    flat = places[0].shape[order[-1]] % build.lanes == 0 or not any((result << 1).any() for result in zeros.values())
    parts = [(part.program, [names.index(name) for name in part.reads], [names.index(name) for name in part.writes])
             for part in each.parts]
    stored = {number: places[number].further(further) for number in map(names.index, zeros)}
    if table is not None:
        rows = [table.at({0: word.immediate - NEXT - 1}) for program, *_ in parts for word in program
                if word.kind == Kind.ARGUMENT]
        alike = Alike(name, parts, _with_scalars, rows, places, stored, order, flat)
        if build.waiting is not None and alike.may(build):
            build.waiting.append(alike)
            return
        if rows:
            vectors.numbers(build, rows, range(vectors.SPARE, vectors.SPARE - len(rows), -1))
        parts = _with_scalars(parts)
    vectors.in_rows(build, parts, places, order, range(len(names)), stored, flat)


def _with_scalars(parts):
    """Programs that find what they are told in scalars that none of them sets, from the last one down."""
    left = iter(range(vectors.SPARE, -1, -1))
    return [(_found(program, left), *rest) for program, *rest in parts]


def _found(program, left):
    """A program that finds what it is told in other scalars, the next of ``left``."""
    moved = {scalar(word.target_index): scalar(next(left)) for word in program if word.kind == Kind.ARGUMENT}
    return [replace(word, **{name: moved.get(getattr(word, name), getattr(word, name)) for name in "abc"})
            for word in program if word.kind != Kind.ARGUMENT]
