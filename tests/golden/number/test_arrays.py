"""What takes bit patterns takes nothing else: a float is refused, not cast to the pattern of another number."""

import inspect
import re

import numpy as np
import pytest

from golden import fp32, functions, narrow
from golden.core import core
from golden.core.baselines import BASELINES
from golden.fast import functions as fast
from golden.number import arrays
from golden.number.rounding import bit_length, shift_rne
from golden.number.to_fp32 import to_fp32
from golden.spec.floats import BF16
from golden.spec.tables import FUNCTIONS
from golden.vector import programs as vector_programs
from golden.vector import side
from golden.vector import unit as vector

#: Operation -> how many patterns it takes.
OPERATIONS = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1, "min": 2, "max": 2, "compare": 2, "abs": 1,
              "neg": 1, "to_int32": 1, "from_int32": 1, "to_bf16": 1, "to_fp16": 1, "to_int8": 1, "from_bf16": 1}
CALLS = {
    **{name: (lambda operation: lambda *given: getattr(fp32, operation)(*given))(name) for name in OPERATIONS},
    "select": lambda a, b: fp32.select(True, a, b),
    **{name: getattr(functions, name) for name in FUNCTIONS},
    "fast": lambda a: fast.evaluate("exp", a),
    "rows": lambda a: side.Side(lanes=1).rows(vector_programs.add(), a, a),
    "elements": lambda a: side.elements(vector_programs.add(), a, a),
    "run": lambda a: vector.Machine(vector.VectorUnit(lanes=1, beats=1)).run(vector_programs.add(), [a, a]),
    "side": lambda a: core.side(a),
    "widened": lambda a: narrow.widened(a, BF16),
    "values": lambda a: BASELINES["bf16"].values(a)}
TAKES = OPERATIONS | {name: 2 if name == "select" else 1 for name in CALLS if name not in OPERATIONS}
PLAIN = np.array([0x3F80], np.uint32)


def test_every_operation_is_here():
    public = {name for name, value in vars(fp32).items()
              if inspect.isfunction(value) and name[0] != "_" and value.__module__ == fp32.__name__}
    assert public - {"round_pack", "exact_sum", "convert", "from_int", "select"} == set(OPERATIONS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", [np.float32(1.5), 1.5, np.ones(3), "1", None, [[1], [1, 2]], 1 << 70, True])
def test_no_operation_takes_anything_but_patterns(name, wrong):
    CALLS[name](*[PLAIN] * TAKES[name])
    for place in range(TAKES[name]):
        given = [PLAIN] * TAKES[name]
        given[place] = wrong
        with pytest.raises(TypeError, match=r"^\w+( row)? must be (bit patterns, such as x\.view\(np\.uint32\) of "
                           r"float32 x|an array), not [<\w]+$"):
            CALLS[name](*given)


@pytest.mark.parametrize("call, line", [
    (lambda: fp32.add(1 << 32, 0), "Operand must be patterns of 32 bits, not 4294967296 to 4294967296"),
    (lambda: fp32.neg(0x10000, BF16), "Operand must be patterns of 16 bits, not 65536 to 65536"),
    (lambda: fp32.from_bf16(np.uint32([1, 0x10000])), "Operand must be patterns of 16 bits, not 1 to 65536"),
    (lambda: fp32.mul(np.zeros(3, np.uint32), np.zeros(4, np.uint32)),
     "Operands must have shapes that broadcast, not (3,) and (4,)"),
    (lambda: fp32.from_int(1 << 60), f"Value must have magnitudes below 2^60, not {1 << 60} to {1 << 60}"),
    (lambda: to_fp32(-(1 << 62), 0), f"Total must have magnitudes below 2^62, not {-(1 << 62)} to {-(1 << 62)}")])
def test_integers_that_are_too_large(call, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        call()


@pytest.mark.parametrize("call, line", [
    (lambda: fp32.from_int(1.5), "Value must be integers, not float64"),
    (lambda: fp32.from_int(1, 0, 0.5), "Invalid must be of type bool, not float64"),
    (lambda: fp32.select(0.5, 1, 2), "Condition must be of type bool, not float64"),
    (lambda: fp32.add(1, 2, "bf16"), "Format must be of type FloatFormat, not str"),
    (lambda: to_fp32(0.5, 0), "Total must be integers, not float64"),
    (lambda: shift_rne(0.5, 1), "Value must be integers, not float64"),
    (lambda: bit_length(0.5), "x must be integers, not float64")])
def test_no_number_is_cut_to_an_integer(call, line):
    with pytest.raises(TypeError, match=f"^{re.escape(line)}$"):
        call()


def test_signed_patterns_are_patterns():
    """int32 views, whose sign bit makes them negative, give the bits of uint32 ones."""
    a = np.array([0x80000001, 0xFF800000, 0xFFC12345, 0x3F800000], np.uint32)
    for name in ("sub", "max", "fma", "neg", "sqrt"):
        count = OPERATIONS[name]
        operation = getattr(fp32, name)
        np.testing.assert_array_equal(operation(*[a.view(np.int32)] * count), operation(*[a] * count))
    np.testing.assert_array_equal(functions.tanh(a.view(np.int32)), functions.tanh(a))
    assert arrays.patterns(-1, width=16) == -1 and arrays.check_broadcast("Both", a, a[:1]) == (4,)
