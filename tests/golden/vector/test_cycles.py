"""The vector unit's schedule keeps the rules that its page states; the Verilog is held to it in tests/rtl/vector."""

import pytest

from golden.spec.vector import VectorUnit
from golden.vector import programs
from golden.vector.cycles import cycles, schedule

UNIT = VectorUnit(lanes=4, beats=16)
RESULT, LEVELS = 8, 2


def test_words_without_passes():
    """One a cycle, when nothing is in flight."""
    program = [programs.length(8), programs.load(0, 1.0), programs.vector(to=0), programs.load(0, 1.0),
               programs.vector(sum=0), programs.length(4)]
    pass_, idle = 2, 2 + 2 + RESULT + 1
    assert schedule(program, UNIT) == [0, 1, pass_, idle, idle + 1, idle + 1 + 2 + RESULT + LEVELS + 2,
                                       idle + 1 + 2 + RESULT + LEVELS + 3]


@pytest.mark.parametrize("beats", [1, 8, 9, 16])
def test_rows_follow_each_other(beats):
    """A row that is read must be under way: one that is long enough costs nothing."""
    copy, give = programs.vector(to=0), programs.vector(programs.register(0), to="out")
    other = programs.vector(programs.register(1), to="out")
    assert schedule([copy, other, other], UNIT, 4 * beats) == [0, beats, 2 * beats, 3 * beats + RESULT + 1]
    assert schedule([copy, give], UNIT, 4 * beats)[1] == max(beats, RESULT + 1)


def test_length_stays_and_is_the_longest_at_first():
    assert cycles([programs.vector(to=0)], UNIT) == 16 + RESULT + 1
    assert cycles([programs.length(3), programs.vector(to=0)], UNIT, 64) == 1 + 1 + RESULT + 1
