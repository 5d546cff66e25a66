"""Words of the vector unit as text: every word comes back, and ``RESERVED`` is what no unit executes."""

import random
from contextlib import suppress

import pytest

from golden.spec.vector import KIND, Kind, VectorUnit
from golden.spec.vector_text import TextError, line, parse
from golden.vector import programs as vector_programs
from golden.vector.unit import ReservedInstruction, check

LARGEST = [VectorUnit(lanes=lanes, beats=8192, registers=16, arguments=15, dropping=lanes < 64) for lanes in (64, 32)]
PROGRAMS = (vector_programs.softmax(), vector_programs.layer_norm(64), vector_programs.gelu_gradient(),
            vector_programs.adam_step(0.1, 3), [vector_programs.length(65)])


def random_words(count, seed):
    """Words of each kind, many of them legal, all fields drawn."""
    pick = random.Random(seed)
    for _ in range(count):
        kind = pick.choice([*Kind, *Kind, pick.randrange(16)])
        word = pick.getrandbits(KIND)
        if pick.random() < 0.8:    # no spare bit
            word &= 15 << 32 | 15 if kind == Kind.ARGUMENT else (
                1 << 36 if kind == Kind.SET else 1 << 20 if kind == Kind.LENGTH else 1 << 49 if kind == Kind.KEY else
                1 << 60 if kind == Kind.PLACE else 1 << 40) - 1
        if pick.random() < 0.6:    # operation, function and reduction that many words lack
            word &= ~(7 << 24 | 15 << 29 | 3 << 33)
        yield kind << KIND | word


def is_legal(word):
    """Whether a unit executes it."""
    for unit in LARGEST:
        with suppress(ReservedInstruction):
            check(word, unit)
            return True
    return False


def test_every_word_comes_back():
    legal = 0
    for word in random_words(20000, 1):
        text = line(word)
        assert parse(text) == word
        assert text.startswith("RESERVED") == (not is_legal(word)), text
        legal += is_legal(word)
    assert 1000 < legal < 19000
    assert [line(word) for word in (4 << KIND, 4 << KIND | 524288, 4 << KIND | 524289)] == [
        "RESERVED 0x4000000000000000", "LENGTH 524288", "RESERVED 0x4000000000080001"]


def test_programs():
    for program in PROGRAMS:
        assert [parse(line(each.encode())) for each in program] == [each.encode() for each in program]
    assert [line(each.encode()) for each in vector_programs.softmax()] == [
        "VECTOR a=stream b=1 c=-0 op=muladd target=register:0 reduce=max:0",
        "VECTOR a=register0 b=1 c=scalar0 op=muladd negate_c=1 post=exp target=register:0 reduce=sum:1",
        "SCALAR a=scalar1 b=1 c=-0 op=muladd post=recip target=scalar:2",
        "VECTOR a=register0 b=scalar2 c=-0 op=muladd target=stream"]
    assert line(vector_programs.load(6, 1.5).encode()) == "SET scalar6=0x3FC00000    # 1.5"
    assert line(vector_programs.argument(6, 3).encode()) == "ARGUMENT scalar6=3"
    drops = [vector_programs.dropping(0xBEEF, 1 << 16), vector_programs.place(7, 3), *vector_programs.dropped(2)]
    assert [line(each.encode()) for each in drops] == [
        "KEY key=0x0000BEEF below=65536", "PLACE place=7 step=3", "SET scalar0=0x40000000    # 2",
        "VECTOR a=stream b=scalar0 c=-0 op=muladd drop=1 target=stream"]


@pytest.mark.parametrize("text", ["", "LOAD", "LENGTH", "LENGTH x", "SET scalar16=0x0", "SET scalar1=0x100000000",
                                  "VECTOR a=register16", "VECTOR a=stream b=2", "VECTOR op=divide", "VECTOR x=1",
                                  "VECTOR negate_a=2", "SET", "RESERVED",
                                  "KEY key=1", "PLACE place=1 step=268435456"])
def test_what_is_no_line(text):
    with pytest.raises(TextError, match="^An instruction of the vector unit must be as the disassembler writes it"):
        parse(text)
