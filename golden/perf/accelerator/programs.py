"""What the vector unit is told in a program: the words of memory P, as far as they decide cycles."""

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.vector_words import read
from hbfp.program import Program

from ...spec.vector import FIELDS, KIND, POSTS, Kind, Reduce, Source, Target, length_of
from .record import record

#: Of a word: 1 for a pass, 2 for a step on scalars, else 0; the length and the rows that it sets, 0 for none;
#: registers that it reads, and scalars that it reads or puts a number into, a bit each; the register and the scalar
#: that it writes, from 1, 0 for none; registers that it reads; whether it reads the stream, writes it, reduces, has a
#: function.
WORD = record("passes length rows registers scalars fills puts fetched", "reads writes reduces functions")
_AT, _position = {}, 0
for _name, _width in FIELDS:
    _AT[_name] = _position, (1 << _width) - 1
    _position += _width


def word(bits: int) -> tuple[int, int, int, int, int, int, int, int, bool, bool, bool, bool]:
    """A word of P, as :data:`WORD` has it."""
    field = {name: bits >> low & mask for name, (low, mask) in _AT.items()}
    kind = bits >> KIND
    if kind not in (Kind.VECTOR, Kind.SCALAR):
        return 0, *(length_of(bits) if kind == Kind.LENGTH else (0, 0)), 0, 0, 0, 0, 0, False, False, False, False
    reduces, target = field["reduce"] != Reduce.NONE, field["target"]
    fills = field["target_index"] + 1 if target == Target.REGISTER else 0
    puts = field["reduce_index"] + 1 if reduces else field["target_index"] + 1 if target == Target.SCALAR else 0
    read = {source: sum({1 << field[name] for name in "abc" if field[f"{name}_source"] == source})
            for source in (Source.REGISTER, Source.SCALAR, Source.STREAM)}
    return (1 + (kind == Kind.SCALAR), 0, 0, read[Source.REGISTER], read[Source.SCALAR] | 1 << puts >> 1, fills, puts,
            read[Source.REGISTER].bit_count(), read[Source.STREAM] != 0, target == Target.STREAM, reduces,
            field["post"] > POSTS.index("relu"))


def words(program: Program) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """The words of all vector instructions.

    Returns
    -------
    (ndarray of :data:`WORD`, ndarray, (instructions,))
        The words, and where in them each instruction's ``before`` and ``body`` begin; 0 for all others.
    """
    each_word: list[tuple[int, int, int, int, int, int, int, int, bool, bool, bool, bool]] = []
    seen: dict[tuple[int | None, ...], int] = {}
    first = np.zeros(len(program.instructions), np.int64)
    for number, brought in read(program):
        mine = tuple(brought)
        if mine not in seen:
            seen[mine] = len(each_word)
            each_word += [word(bits or 0) for bits in mine]
        first[number] = seen[mine]
    return np.array(each_word, WORD), first
