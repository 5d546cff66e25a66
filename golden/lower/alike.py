"""Updates of a job's models, and other short programs, in one pass: each model's word is a row of it, with numbers of
the optimiser of its own.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from hbfp.golden.spec.vector import Kind, VectorInstruction
from hbfp.golden.vector import programs
from hbfp.golden.vector.pairs import by_itself
from hbfp.isa.instructions import VECTOR_INPUTS, VECTOR_OUTPUTS, Opcode

from . import vectors
from .builder import Builder
from .memory import Value

#: Words of the largest parameters that are worth it: larger ones are limited by what they move, each by itself.
_FEW = 4
#: A program, and the numbers of the values that it takes and gives.
Part = tuple[Sequence[VectorInstruction], Sequence[int], Sequence[int]]


@dataclass
class Alike:
    """The update of a parameter, or what is done with each element of a few words, which a job does with those of other
    models at the end of a turn.

    Attributes
    ----------
    name : str
        What the layer of all is called.
    parts : sequence of Part
        Programs, one after the other, with what they are told.
    given : callable
        Gives these programs with scalars in place of that.
    told : sequence of Value
        Where the numbers lie that the programs are told, in the order in which these name them.
    values, stored : sequence of Value, mapping
        Where the parameter, its gradient and its state lie; what becomes of those of these numbers.
    order : sequence of int
        The dimensions, outermost first.
    flat : bool
        Whether rows may be filled up to whole words: programs make zeros of zeros then.
    fresh : collection of int
        Numbers of values that are not in DRAM before.
    """
    name: str
    parts: Sequence[Part]
    given: Callable[[Sequence[Part]], Sequence[Part]]
    told: Sequence[Value]
    values: Sequence[Value]
    stored: Mapping[int, Value]
    order: Sequence[int]
    flat: bool
    fresh: Collection[int] = ()

    @property
    def kind(self) -> Any:
        """What updates have in common that can be done together; what they are told is each one's own."""
        words = [[each.kind if each.kind == Kind.ARGUMENT else each.encode() for each in program]
                 for program, *_ in self.parts]
        return (self.name, words, [rest for _, *rest in self.parts], [each.shape for each in self.values],
                [each.shape for each in self.stored.values()], self.flat, self.fresh)

    def may(self, build: Builder) -> bool:
        """Whether several can be done in a pass, and this is worth it."""
        length = self.values[0].shape[self.order[-1]]
        return bool(build.accelerator.short_rows and (self.flat or length <= build.lanes)
                    and len(self.told) <= len(VECTOR_INPUTS) and _words(self, build) <= _FEW
                    and all(by_itself(vectors.split(program)[1]) for program, *_ in self.parts))

    @staticmethod
    def together(build: Builder, several: Sequence["Alike"]) -> None:
        """Do updates of one kind, as many at a time as a pass takes rows."""
        most = build.accelerator.short_rows
        for first in range(0, len(several), most):
            _several(build, several[first:first + most])


def _nothing(target):
    """What brings a result."""


def _words(each, build):
    """Words that a value has."""
    *outer, inner = (each.values[0].shape[d] for d in each.order)
    return prod(outer) * -(-inner // build.lanes)


def _several(build, several):
    """Updates side by side: row k of a pass is a word of number k."""
    one, beside = several[0], len(several)
    rows, count = beside if beside > 1 else 0, _words(one, build)
    *outer, inner = one.order
    length = one.values[0].shape[inner]
    _tell(build, several, rows)
    words = -(-length // build.lanes)
    spread = build.spread(count, [[_nothing if number in one.fresh else
                                   partial(build.load, each.values[number], outer, inner, words=words)
                                   for each in several] for number in range(len(one.values))])
    for program, reads, writes in one.given(one.parts):
        once, body = vectors.split(program)
        once = [*once, programs.length(build.lanes if one.flat else length, rows)]
        at = build.program([*once, *body])
        values = {"program": at.start, "before": len(once), "body": len(body), "count0": count, "count1": 1}
        for names, numbers in ((VECTOR_INPUTS, reads), (VECTOR_OUTPUTS, writes)):
            for name, number in zip(names, numbers, strict=False):
                spans, step = spread[number]
                values |= {f"{name}_base": spans[0].start, f"{name}_inner": 1, f"{name}_stride0": 1,
                           f"{name}_step": step}
        read, written = ([span for number in numbers for span in spread[number][0]] for numbers in (reads, writes))
        build.schedule.emit(Opcode.VECTOR, values, [at, *read], written)
    for place, each in enumerate(several):
        for number, target in each.stored.items():
            build.store(spread[number][0][place].start, words, target, outer, inner)
    build.v.release()


def _tell(build, several, rows):
    """Load the numbers of all into scalars, of which each has one for each row."""
    count = len(several[0].told)
    spans = [build.v.take(len(several)) for _ in range(count)]
    for number, span in enumerate(spans):
        addresses = [each.told[number].address for each in several]
        steps = {after - before for before, after in zip(addresses, addresses[1:], strict=False)}
        whole = len(steps) == 1
        for place, address in enumerate(addresses[:1] if whole else addresses):
            build.gather(address, 1, [(len(several), *steps, build.lanes)] if whole else [],
                         (span.start + place) * build.lanes)
    if count:
        indices = range(vectors.SPARE, vectors.SPARE - count, -1)
        vectors.one_pass(build, [programs.length(1, rows), *(programs.vector(sum=index) for index in indices)], [], 1,
                         len(several), spans, [])
