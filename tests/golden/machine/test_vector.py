"""What stays in the vector unit from iteration to iteration, and what its programs must not do."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.golden.spec.vector import STREAM, Kind, Reduce, constant, register, scalar
from hbfp.golden.spec.vector import VectorInstruction as Word
from hbfp.golden.vector.programs import argument, length, load, vector
from hbfp.isa.instructions import Instruction, Memory, Opcode, Wait
from hbfp.isa.registers import Cause
from hbfp.program import Program, Region
from hbfp.system import Accelerator

SYSTEM = Accelerator(row_words=2, vector_rows=2)
LANES, ROWS = 32, 6
VALUES = np.arange(LANES * ROWS, dtype=np.float32).reshape(ROWS, LANES)
ONE = {"count1": 1, "count2": 1}


def run(before, body, see=slice(100, 100 + ROWS), system=SYSTEM, **values):
    """Words of V after a vector program on rows of one word, which go from V at 0 to V at 100."""
    return device(before, body, system, **values).memories.v_data[see].view(np.float32)


def device(before, body, system, **values):
    """The machine after such a program."""
    words = np.array([each if isinstance(each, int) else each.encode() for each in (*before, *body)], np.uint64)
    words = np.pad(words, (0, 16))[:16]
    call = {"before": len(before), "body": len(body), "count0": ROWS, "count1": 1, "i0_base": 0, "i0_stride0": 1,
            "i1_base": 0, "o0_base": 100, "o0_stride0": 1} | values
    memory = (Region(0, VALUES.tobytes()), Region(2048, words.tobytes()))
    program = Program(accelerator=system, limit=4096, memory=memory, instructions=[
        Instruction(Opcode.LOAD, ONE | {"count0": ROWS}),
        Instruction(Opcode.LOAD, ONE | {"count0": 1, "offset": 2048, "memory": Memory.P}),
        Instruction(Opcode.VECTOR, call, (Wait(1, 2),)), Instruction(Opcode.HALT, {})])
    machine = Machine(program, races=True)
    machine.run()
    return machine


def test_registers_stay_from_iteration_to_iteration():
    """A running sum."""
    found = run([length(LANES), vector(constant(0), to=0)],
                [vector(c=register(0), to=0), vector(register(0), to="out")])
    np.testing.assert_array_equal(found, VALUES.cumsum(0))


def test_scalars_stay_from_iteration_to_iteration():
    """Each row times the largest of the row before."""
    found = run([length(LANES), load(3, 1.0)], [vector(b=scalar(3), to="out"), vector(STREAM, max=3)],
                i1_stride0=1)
    np.testing.assert_array_equal(found, VALUES * np.array([1, *VALUES.max(1)[:-1]], np.float32)[:, None])


def test_lanes_beyond_the_row_are_written_as_zeros():
    found = run([], [length(5), vector(to="out")])
    np.testing.assert_array_equal(found[:, :5], VALUES[:, :5])
    assert not found[:, 5:].view(np.uint32).any()


def test_results_may_take_the_place_of_what_was_read():
    found = run([length(LANES)], [vector(b=STREAM, to="out")], see=slice(0, ROWS), i0_base=1, o0_base=1,
                count0=ROWS - 1)
    np.testing.assert_array_equal(found, [VALUES[0], *VALUES[1:] ** 2])
    found = run([length(2 * LANES)], [vector(to="out")], see=slice(0, 3), i0_base=1, o0_base=0, count0=1)
    np.testing.assert_array_equal(found, VALUES[[1, 2, 2]])


@pytest.mark.parametrize("before, body, values, line", [
    ([length(LANES)], [vector(register(1), to="out")], {},
     "Vector register 1 is read, of which nothing has written 32 elements"),
    ([length(8), vector(to=1)], [length(9), vector(register(1), to="out")], {},
     "Vector register 1 is read, of which nothing has written 9 elements"),
    ([length(LANES), argument(4, 3)], [vector(b=scalar(4), to="out")], {},
     "Argument 3 is read, which the host has not written"),
    ([length(LANES)], [vector(b=scalar(4), to="out")], {}, "Scalar 4 is read, which nothing has written"),
    ([length(LANES)], [vector(to="out")], {"o0_base": 1},
     "V at 1 is read by a pass, and written by it or one before it in the same instruction"),
    ([length(LANES)], [vector(to="out"), vector(to=0)], {"o0_base": 0},
     "V at 0 is read by a pass, and written by it or one before it in the same instruction"),
    ([length(2 * LANES)], [vector(to="out")], {"o0_base": 1, "count0": 1},
     "V at 1 is read by a pass, and written by it or one before it in the same instruction"),
    ([length(2 * LANES)], [vector(to="out"), vector(to=0)], {"o0_base": 3, "i1_base": 4, "count0": 1},
     "V at 4 is read by a pass, and written by it or one before it in the same instruction"),
    ([length(LANES)], [vector(to="out"), length(4)], {},
     "A program must set the length of a row before its first pass, or leave it as it was"),
    ([length(LANES)], [vector(to="out")], {"i0_base": 50}, "V at 50 is read, which nothing has written"),
    ([length(LANES)], [vector(to="out")], {"program": 60}, "P at 60 is read, which nothing has written")])
def test_what_is_undefined(before, body, values, line):
    with pytest.raises(MachineError, match=f"^Instruction 2: {re.escape(line)}$"):
        run(before, body, **values)


@pytest.mark.parametrize("word, values, cause", [
    (0, {}, Cause.REFUSED), (length(2 * LANES + 1), {}, Cause.REFUSED), (vector(to=2), {}, Cause.REFUSED),
    (Word(kind=Kind.VECTOR, reduce=Reduce.SUM, target_index=0), {"i0_base": 4095}, Cause.ADDRESS),
    (vector(to="out"), {"o0_base": 4091}, Cause.ADDRESS), (vector(to="out"), {"program": 511}, Cause.ADDRESS),
    (vector(to="out"), {"count0": 0}, Cause.ILLEGAL)])
def test_faults(word, values, cause):
    with pytest.raises(Fault) as caught:
        run([length(LANES)], [word], **values)
    assert (caught.value.cause, caught.value.pc) == (cause, 2)


def test_a_function_that_the_unit_lacks_stops_the_program():
    """It has those of its accelerator, and no others."""
    log = replace(SYSTEM, functions=("log",))
    run([length(LANES)], [vector(post="log", to="out")], system=log)
    with pytest.raises(Fault, match="is reserved: function$") as caught:
        run([length(LANES)], [vector(post="exp", to="out")], system=log)
    assert (caught.value.cause, caught.value.pc) == (Cause.REFUSED, 2)
