"""Two rows in turns have the bits of one after the other, in fewer cycles."""

import numpy as np
import pytest

from golden.spec.vector import ONE, VectorUnit, constant, register, scalar
from golden.vector import programs
from golden.vector.cycles import cycles
from golden.vector.pairs import paired
from golden.vector.unit import Machine

UNIT = VectorUnit(lanes=4, beats=8, registers=8, function_lanes=1)
#: Programs that wait for sums of a row; parameters of a norm are rows in registers 1 and 2.
PROGRAMS = {"softmax": programs.softmax(), "log softmax": programs.log_softmax(), "mean": programs.row_mean(20),
            "layer norm": programs.layer_norm(20, 1e-5, 1, 2), "RMS norm": programs.rms_norm(20, 1e-5, 1)}


def parts(program):
    """What sets constants, and what runs for each row."""
    sets = [each for each in program if each.immediate]
    return sets, program[len(sets):]


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_have_the_bits_of_one_after_the_other(name):
    sets, body = parts(PROGRAMS[name])
    x, gamma, beta = (np.random.default_rng(1).normal(size=(count, 20)).astype(np.float32).view(np.uint32)
                      for count in (4, 1, 1))
    before = [programs.length(20), *sets, programs.load_row(1)[0], programs.load_row(2)[0]]
    both = paired(body, UNIT, 20)
    alone, pairs = (Machine(UNIT).run([*before, *each], [gamma[0], beta[0], *x])
                    for each in (body * 4, both * 2))
    assert len(pairs) == 4
    np.testing.assert_array_equal(pairs, alone)
    assert cycles(both * 2, UNIT, 20) < cycles(body * 4, UNIT, 20)


def test_registers_and_scalars_are_its_own():
    """The second row writes none that the program names; the last ones may be kept from it."""
    _, body = parts(PROGRAMS["layer norm"])
    first = {each.target_index for each in body if each.target == 1} | {1, 2}
    written = {each.target_index for each in paired(body, UNIT, 20) if each.target == 1} - first
    assert written == {3}
    sums = {each.reduce_index for each in paired(body, UNIT, 20) if each.reduce}
    assert {0, 5} < sums and len(sums) == 4 and sums.isdisjoint({1, 2, 8, 9})
    softmax = parts(PROGRAMS["softmax"])[1]
    assert paired(softmax, UNIT, 20, spare=6) is not None and paired(softmax, UNIT, 20, spare=5) is None


@pytest.mark.parametrize("body, unit", [
    (programs.activation("exp"), UNIT),                                                      # no sum to wait for
    (programs.softmax_gradient(), UNIT),                                                     # two rows come
    ([*programs.row_sum(), programs.vector(scalar(0), to="out")], UNIT),                     # two are given
    ([programs.vector(sum=0), programs.length(4)], UNIT),
    ([programs.vector(c=register(0), to=0, sum=0)], UNIT),                                   # what stays for the next
    (programs.softmax(), VectorUnit(lanes=4, beats=8, registers=1)),
], ids=["no sum", "two rows", "two results", "length", "running", "registers"])
def test_others_stay_as_they_are(body, unit):
    assert paired(body, unit, 20) is None


def test_what_gains_nothing_stays():
    """Passes behind a sum that take as long as it is under way."""
    other = programs.vector(constant(ONE), to=0)
    assert paired([programs.vector(sum=0), *[other] * 4], UNIT, 20) is None
    assert paired([programs.vector(sum=0), other], UNIT, 20) is not None
