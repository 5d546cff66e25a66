"""Programs of several operations have the bits of these, one behind the other."""

from itertools import product

import numpy as np
import pytest

from golden.lower.chains import (
    Chain,
    composed,
    computes,
    kept_copy,
    passes_of,
    rows_of,
    scalars_of,
    simple,
    with_operands,
)
from golden.spec.vector import STREAM, Op, VectorUnit, constant, register, scalar
from golden.vector import programs
from golden.vector.side import elements
from golden.vector.unit import Machine

pytestmark = pytest.mark.usefixtures("costs")

#: Program -> how many rows it takes.
PROGRAMS = {"add": (programs.add(), 2), "add relu": (programs.add("relu"), 2), "subtract": (programs.subtract(), 2),
            "multiply": (programs.multiply(), 2), "quotient": (programs.quotient(), 2), "scale": (programs.scale(3), 1),
            "from": (programs.difference_from(1), 1), "relu": (programs.activation("relu"), 1),
            "copy": (programs.activation(), 1), "tanh": (programs.activation("tanh"), 1), "negate": (
                programs.negate(), 1), "absolute": (programs.absolute(), 1), "gate": (programs.relu_gradient(), 2),
            "clamp": (programs.clamp(-2, 0.5), 1), "between": (programs.between(0.25), 2),
            "product": (programs.add_product(0.5), 3), "sigmoid": (programs.sigmoid_gradient(), 2)}
SPECIAL = np.array([0, 1, 0x007FFFFF, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001, 0x00800000],
                   np.uint32)


def rows(count):
    rng = np.random.default_rng(3)
    found = rng.standard_normal((count, 300)).astype(np.float32).view(np.uint32)
    chosen = SPECIAL[rng.integers(len(SPECIAL), size=found.shape)] | rng.integers(2, size=found.shape,
                                                                                   dtype=np.uint32) << np.uint32(31)
    return list(np.where(rng.random(found.shape) < 0.4, chosen, found))


@pytest.mark.parametrize("outer", PROGRAMS)
def test_a_part_in_each_place(outer):
    program, count = PROGRAMS[outer]
    for (inner, own), place in product(PROGRAMS.values(), range(count)):
        names = [f"x{n}" for n in range(count)]
        chain = composed(program, names, {names[place]: Chain(inner, [f"y{n}" for n in range(own)])})
        given = dict(zip([*(f"y{n}" for n in range(own)), *names], rows(own + count), strict=True))
        within = elements(inner, *(given[f"y{n}"] for n in range(own)))
        expected = elements(program, *(within if n == place else given[name] for n, name in enumerate(names)))
        np.testing.assert_array_equal(elements(chain.program, *(given[each] for each in chain.operands)), expected)
        assert simple(chain.program) and len(chain.operands) == own + count - 1


def test_several_parts_and_one_of_them_twice():
    parts = {"a": Chain(programs.scale(3), ["x"]), "b": Chain(programs.difference_from(3), ["y"])}
    x, y, z = rows(3)
    a, b = elements(programs.scale(3), x), elements(programs.difference_from(3), y)
    for names, given in ((["a", "b", "z"], (a, b, z)), (["z", "b", "a"], (z, b, a)), (["b", "a", "b"], (b, a, b))):
        chain = composed(programs.add_product(3), names, parts)
        own = {"x": x, "y": y, "z": z}
        np.testing.assert_array_equal(elements(chain.program, *(own[each] for each in chain.operands)),
                                      elements(programs.add_product(3), *given))
        assert scalars_of(chain.program) == 1                              # the same number once


def test_passes_that_copy_are_left_out():
    chain = composed(programs.activation("relu"), ["a"], {"a": Chain(programs.multiply(), ["x", "y"])})
    assert passes_of(chain.program) == 2
    assert passes_of(with_operands(programs.multiply(), [None, register(4)])) == 1
    assert passes_of(with_operands(programs.subtract(), [None, scalar(4)])) == 1
    square = with_operands(programs.multiply(), [None, kept_copy(programs.multiply(), ["x", "x"], 1)])
    assert passes_of(square) == 1
    x, = rows(1)
    np.testing.assert_array_equal(elements(square, x), elements(programs.multiply(), x, x))
    assert kept_copy(programs.multiply(), ["x", "y"], 1) is None
    assert kept_copy(programs.quotient(), ["x", "x"], 1) == register(0)


@pytest.mark.parametrize("name", [name for name, (_, count) in PROGRAMS.items() if count == 2])
@pytest.mark.parametrize("place", [0, 1])
def test_rows_and_numbers_that_stay(name, place):
    program, _ = PROGRAMS[name]
    x, y = rows(2)
    assert computes(program, place) == ((name, place) != ("gate", 1))
    if not computes(program, place):
        return
    for operand, fixed in ((register(7), y), (scalar(9), np.full_like(y, y[5]))):
        machine = Machine(VectorUnit(lanes=1, beats=300, registers=8))
        load = programs.load_row(7) if operand == register(7) else [programs.length(1), programs.vector(sum=9)]
        changed = with_operands(program, [operand if n == place else None for n in range(2)])
        found, = machine.run([*load, programs.length(300), *changed],
                             [fixed if operand == register(7) else y[5:6], x])
        np.testing.assert_array_equal(found, elements(program, *((x, fixed) if place else (fixed, x))))
    assert rows_of(program) <= 3


@pytest.mark.parametrize("outer", PROGRAMS)
def test_registers_are_written_again(outer):
    """However many operations follow each other, a program keeps no more rows than what is still to be read."""
    program, count = PROGRAMS[outer]
    chain, found = Chain(program, [f"x{n}" for n in range(count)]), None
    given = rows(count + 5 * (count - 1))
    found = elements(program, *given[:count])
    for number in range(5):
        names = [f"y{number}-{n}" for n in range(count - 1)]
        chain = composed(program, ["a", *names], {"a": chain})
        own = given[count + number * (count - 1):][:count - 1]
        found = elements(program, found, *own)
        np.testing.assert_array_equal(elements(chain.program, *_in_order(chain.operands, given, count)), found)
    assert rows_of(chain.program) <= max(rows_of(program), 1) + 1


def _in_order(names, given, count):
    """The rows that operands are called by."""
    places = {f"x{n}": n for n in range(count)} | {
        f"y{number}-{n}": count + number * (count - 1) + n for number in range(5) for n in range(count - 1)}
    return [given[places[name]] for name in names]


def chosen(a, b, to):
    """Where a > 0, b as it is: subnormals and the bits of NaN, too."""
    return programs.vector(a, b=b, op=Op.GATE, to=to)


ONE, X, Y, Z = constant(1), register(0), register(1), register(2)


@pytest.mark.parametrize(("program", "count", "passes"), [
    # A row that is chosen as it is needs its copy; one that is summed or multiplied does not.
    ([programs.vector(to=0), chosen(ONE, X, "out")], 1, 2),
    ([programs.vector(to=0), programs.vector(X, c=X, to="out")], 1, 1),
    # So with a copy of what was chosen; what was computed has no such numbers.
    ([chosen(ONE, STREAM, 1), programs.vector(Y, to=2), chosen(ONE, Z, "out")], 1, 3),
    ([chosen(ONE, STREAM, 1), programs.vector(Y, to=2), programs.vector(Z, c=Z, to="out")], 1, 2),
    ([programs.vector(b=STREAM, to=1), programs.vector(Y, to=2), chosen(ONE, Z, "out")], 1, 2),
    # One that is multiplied and chosen needs its copy, too.
    ([chosen(ONE, STREAM, 1), programs.vector(Y, to=2), programs.vector(Z, Z, to=0), chosen(X, Z, "out")], 1, 4),
    # What is written again behind a copy is another number then.
    ([programs.vector(b=STREAM, to=0), programs.vector(X, to=1), programs.vector(c=X, to=0),
      programs.vector(X, Y, to="out")], 2, 4),
    # What reads a copy last may write its register, unless another row comes between.
    ([programs.vector(to=0), programs.vector(X, c=X, to=0), programs.vector(X, X, to="out")], 1, 2),
    ([programs.vector(to=0), programs.vector(to=1), programs.vector(X, Y, to=0),
      programs.vector(X, X, to="out")], 2, 3),
    ([programs.vector(to=0), programs.vector(X, c=X, to=1), programs.vector(X, Y, to=0),
      programs.vector(X, X, to="out")], 1, 4)])
def test_spared_copies(program, count, passes):
    shorter = with_operands(program, [None] * count)
    assert passes_of(shorter) == passes
    np.testing.assert_array_equal(elements(shorter, *rows(count)), elements(program, *rows(count)))


def test_spared_copies_of_rows_that_stay():
    """They were loaded by a copy, so that they may be chosen as they are."""
    program = [programs.vector(to=0), chosen(STREAM, X, "out")]
    assert passes_of(with_operands(program, [register(7), None])) == 1


def test_what_is_no_part():
    assert not simple(programs.softmax()) and not simple(programs.row_sum()) and simple(programs.add())
