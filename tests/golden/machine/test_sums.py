"""A body whose sums are taken apart gives what it adds; a VECTOR that adds is the loop over its iterations."""

import numpy as np
import pytest

from hbfp.golden.machine import sums
from hbfp.golden.spec.vector import STREAM, Op, constant, field_values, register
from hbfp.golden.vector.programs import length
from hbfp.golden.vector.programs import vector as step
from hbfp.system import Accelerator

from . import test_vector

ADDS = step(STREAM, c=register(2), to=2)


def apart(*body):
    words = [each.encode() for each in body]
    found, places = sums.apart(words, [field_values(word) for word in words])
    return [number for number, (one, other) in enumerate(zip(words, found, strict=True)) if one != other], places


@pytest.mark.parametrize(("body", "changed", "places"), [
    ([ADDS], [0], {0: 2}), ([step(to=0), step(b=register(0), c=register(2), to=2)], [1], {0: 2}),
    ([ADDS, step(to="out"), step(STREAM, register(0), register(1), to=1)], [0, 2], {0: 2, 2: 1}),
    ([step(STREAM, c=register(2), to=3)], [], {}), ([step(register(2), STREAM, register(2), to=2)], [], {}),
    ([step(STREAM, c=register(2), to=2, negate_c=True)], [], {}), ([step(STREAM, c=register(2), to=2, post="relu")], [],
                                                                   {}),
    ([step(STREAM, c=register(2), to=2, op=Op.MAX)], [], {}), ([step(STREAM, c=register(2), to=2, sum=1)], [], {}),
    ([ADDS, step(register(2), to="out")], [], {}), ([ADDS, ADDS], [], {}), ([step(to=2), ADDS], [], {})])
def test_what_is_taken_apart(body, changed, places):
    assert apart(*body) == (changed, places)


SPECIAL = np.array([0, 0x80000000, 1, 0x80000001, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000,
                    0x7FC00001, 0x00800000, 0x80C00000], np.uint32)


@pytest.mark.parametrize("body", [
    [ADDS], [step(to=0), step(b=register(0), c=register(2), to=2)],
    [ADDS, step(STREAM, negate_a=True, to="out"), step(STREAM, register(1), register(3), to=3)]])
def test_sums_at_once_are_those_one_by_one(body, monkeypatch):
    """From a number on, of rows whose sums are rounded, flushed, infinite and no numbers."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal(test_vector.VALUES.shape).astype(np.float32) * 1e-38
    chosen = rng.integers(len(SPECIAL), size=values.shape)
    values = np.where(rng.random(values.shape) < 0.3, SPECIAL[chosen].view(np.float32), values)
    monkeypatch.setattr(test_vector, "VALUES", values)
    system = Accelerator(row_words=2, vector_rows=4)
    before = [length(test_vector.LANES), *(step(constant(1), to=index) for index in (1, 2)), step(constant(2), to=3)]

    def found():
        output = {"o0_base": 100, "o0_stride0": 1, "i1_stride0": 1, "i2_stride0": 1}
        machine = test_vector.device(before, body, system, **output)
        return machine.vector.machine.registers.copy(), machine.memories.v_data.copy()
    at_once = found()
    monkeypatch.setattr(sums, "apart", lambda words, fields: (words, {}))
    for one, other in zip(at_once, found(), strict=True):
        np.testing.assert_array_equal(one, other)
