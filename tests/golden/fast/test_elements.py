"""Compiled programs of the vector unit give the bits of the machine that executes them."""

from random import Random

import numpy as np
import pytest

from golden.fast import elements, kernels
from golden.spec.vector import CONSTANTS, STREAM, Op, VectorInstruction, constant, register, scalar
from golden.vector import programs
from golden.vector.side import elements as side_elements
from golden.vector.side import registers
from golden.vector.unit import Machine, VectorUnit, second_step
from tests.golden.fp32_values import random_pairs, special_pairs

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")


def plain(program, rows):
    """What the machine gives."""
    machine = Machine(VectorUnit(lanes=1, beats=1, registers=registers(program)), (rows[0].size,))
    return machine.run(program, [row[:, None] for row in rows])[0][:, 0]


def equal(program, *rows):
    """Whether the compiled program, and what uses it, give what the machine gives."""
    quick, want = elements.compiled(tuple(program)), plain(program, rows)
    assert quick is not None and quick.rows == len(rows)
    return (np.array_equal(second_step(quick.function, elements.run(quick, rows)), want)
            and np.array_equal(side_elements(program, *rows), want))


@pytest.fixture(scope="module")
def rows():
    """Three rows: every pair of special patterns, and pairs of all kinds, with anything beside them."""
    a, b = (np.concatenate(pair) for pair in zip(special_pairs(), random_pairs(5000, 3), strict=True))
    c = np.where(np.arange(a.size) % 2, np.roll(a, 7), np.random.default_rng(4).integers(0, 1 << 32, a.size))
    return a, b, c.astype(np.uint32)


PROGRAMS = {
    "relu": programs.activation("relu"), "none": programs.activation(), "gelu": programs.activation("gelu"),
    "add": programs.add(), "add and relu": programs.add("relu"), "add and tanh": programs.add("tanh"),
    "subtract": programs.subtract(), "multiply": programs.multiply(), "scale": programs.scale(-0.3),
    "scale to nothing": programs.scale(2.0 ** -100), "shift": programs.shift(1e-38),
    "batch norm": programs.load_row(6) + programs.load_row(7) + programs.scale_shift(), "choose": programs.choose(),
    "maximum": programs.maximum(3), "average": programs.average(3), "gate": programs.relu_gradient()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(rows, name):
    quick = elements.compiled(tuple(PROGRAMS[name]))
    assert equal(PROGRAMS[name], *rows[:quick.rows])


def test_products_round_once_around_the_least_normal_number():
    """Below 2^-126 by less than half a step of 24 bits they are that number, else zero."""
    rng = np.random.default_rng(5)
    a = rng.integers(107 << 23, 108 << 23, 40_000, dtype=np.uint32)    # 2^-20 and more, so that b is normal
    inverse = (2.0 ** -126 / a.view(np.float32).astype(np.float64)).astype(np.float32).view(np.uint32)
    b = (inverse + rng.integers(-2, 3, a.size)).astype(np.uint32)
    least = np.float64(2.0) ** -126
    exact = a.view(np.float32).astype(np.float64) * b.view(np.float32)
    below = (exact < least) & (exact >= least * (1 - 2.0 ** -25))
    between = (exact < least * (1 - 2.0 ** -25)) & (exact > least * (1 - 2.0 ** -24))
    assert below.sum() > 100 and between.sum() > 100    # the second kind only float32 alone would round up
    got = side_elements(programs.multiply(), a, b)
    assert (got[below] == 0x00800000).all() and not got[between].any()
    assert equal(programs.multiply(), a, b)


def drawn(pick):
    """A random program of passes without sums and functions, whose last one gives the row."""
    program, known, streams = [programs.load(1, pick.choice((0.7, -3e-39, 2e38)))], [], 0
    for number in range(count := pick.randint(1, 6)):
        sources = [constant(pick.randrange(len(CONSTANTS))), scalar(1), STREAM, *map(register, known)]
        operands = [pick.choice(sources) for _ in range(3)]
        if number == count - 1 and not streams:
            operands[pick.randrange(2)] = STREAM
        streams += STREAM in operands
        last, to = number == count - 1, pick.randrange(4)
        known = known if last or to in known else [*known, to]
        program.append(programs.vector(*operands, to="out" if last else to, op=pick.choice(list(Op)),
                                       negate_a=pick.random() < 0.5, negate_c=pick.random() < 0.5,
                                       post=pick.choice(("none", "relu"))))
    return program, streams


def test_random_programs(rows):
    pick = Random(6)
    for _ in range(150):
        program, streams = drawn(pick)
        which = [pick.randrange(3) for _ in range(streams)]
        assert equal(program, *(np.roll(rows[each], number)[::23].copy() for number, each in enumerate(which))), program


@pytest.mark.parametrize("size", [1, 511, 512, 513, 5000])
def test_every_size_and_number_of_threads(rows, size, monkeypatch):
    monkeypatch.setattr(elements, "_PASS", 1e9)
    program, given = programs.average(3), [row[:size].copy() for row in rows]
    want = plain(program, given)
    for threads in (1, 3):
        kernels.set_threads(threads)
        try:
            assert np.array_equal(side_elements(program, *given), want)
        finally:
            kernels.set_threads(None)


@pytest.mark.parametrize("program", [
    programs.softmax(), programs.layer_norm_gradient(4), [programs.length(4), *programs.activation()],
    programs.gelu_gradient(), programs.scale_shift(), [programs.vector(to=0)], [VectorInstruction(reduce=1)]])
def test_others_are_left_to_the_machine(program):
    """Sums, lengths, functions in the midst, registers of before, more or fewer rows than one."""
    assert elements.compiled(tuple(program)) is None
