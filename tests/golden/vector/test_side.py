"""The accelerator's arithmetic beside products, against the vector unit's programs row by row."""

from dataclasses import replace

import numpy as np
import pytest

from golden import fp32, functions
from golden.spec.vector import VectorUnit
from golden.vector import programs as vector_programs
from golden.vector.side import DESIGN_SIDE, Side, ascending, batch_norm_factors, elements, registers
from golden.vector.unit import Machine
from hbfp.design import Design
from hbfp.system import Accelerator


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def patterns(rng, shape):
    """Numbers of all sizes, and patterns of every kind."""
    usual = rng.standard_normal(shape).astype(np.float32).view(np.uint32)
    return np.where(rng.random(shape) < 0.8, usual, rng.integers(0, 2 ** 32, shape, dtype=np.uint32))


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("length", [1, 8, 13, 40])
def test_rows_run_one_by_one(rng, lanes, length):
    x = patterns(rng, (3, 2, length))
    program = vector_programs.softmax()
    y = Side(lanes).rows(program, x)
    for place in np.ndindex(3, 2):
        machine = Machine(VectorUnit(lanes=lanes, beats=8))
        machine.length = length
        np.testing.assert_array_equal(y[place], machine.run(program, [x[place]])[0])


def test_lanes_say_the_order_of_a_sum(rng):
    x = rng.standard_normal((50, 64)).astype(np.float32).view(np.uint32)
    assert (Side(8).rows(vector_programs.softmax(), x) != Side(16).rows(vector_programs.softmax(), x)).any()
    accelerator = Accelerator(core=Design(rows=8))
    assert (Side.of(accelerator), DESIGN_SIDE) == (Side(8), Side(16))
    assert Side.of(replace(accelerator, vector_lanes=2)) == Side(2)


def test_elements_broadcast(rng):
    x, y = patterns(rng, (5, 7)), patterns(rng, 7)
    np.testing.assert_array_equal(elements(vector_programs.add(), x, y), fp32.add(x, y, subnormals="flush"))
    np.testing.assert_array_equal(elements(vector_programs.subtract(), x, y), fp32.sub(x, y, subnormals="flush"))
    np.testing.assert_array_equal(elements(vector_programs.scale(0.3), x),
                                  fp32.mul(x, np.float32(0.3).view(np.uint32), subnormals="flush"))
    np.testing.assert_array_equal(elements(vector_programs.shift(-0.3), x),
                                  fp32.add(x, np.float32(-0.3).view(np.uint32), subnormals="flush"))


@pytest.mark.parametrize("rows", [0, 1, 2, 40])
def test_rows_add_up_one_by_one(rng, monkeypatch, rows):
    """From -0 on, with the compiled sum and without."""
    x = patterns(rng, (rows, 3, 29))
    total = np.full((3, 29), 0x80000000, np.uint32)
    for row in x:
        total = elements(vector_programs.add(), total, row)
    np.testing.assert_array_equal(ascending(x), total)
    monkeypatch.setattr("golden.fast.kernels.library", lambda: None)
    np.testing.assert_array_equal(ascending(x), total)


@pytest.mark.parametrize("taps", [1, 2, 9])
def test_pooling_goes_tap_by_tap(rng, taps):
    rows = [patterns(rng, 6) for _ in range(taps)]
    most = total = fp32.mul(rows[0], np.uint32(0x3F800000), subnormals="flush")
    for row in rows[1:]:
        most, total = fp32.max(most, row, subnormals="flush"), fp32.add(row, total, subnormals="flush")
    np.testing.assert_array_equal(elements(vector_programs.maximum(taps), *rows), most)
    share = np.float32(1 / taps).view(np.uint32)
    np.testing.assert_array_equal(elements(vector_programs.average(taps), *rows),
                                  fp32.mul(total, share, subnormals="flush"))


def test_batch_norm_has_two_numbers_a_channel(rng):
    gamma, beta, mean = (rng.standard_normal(9).astype(np.float32).view(np.uint32) for _ in range(3))
    variance = rng.random(9).astype(np.float32).view(np.uint32)
    factor, addend = batch_norm_factors(gamma, beta, mean, variance, 1e-5)
    root = functions.rsqrt(fp32.add(variance, np.float32(1e-5).view(np.uint32), subnormals="flush"))
    np.testing.assert_array_equal(factor, fp32.mul(gamma, root, subnormals="flush"))
    np.testing.assert_array_equal(addend, fp32.sub(beta, fp32.mul(mean, factor, subnormals="flush"),
                                                   subnormals="flush"))


def test_registers_are_those_of_the_program():
    assert registers(vector_programs.activation("gelu")) == 1
    assert registers(vector_programs.layer_norm(8)) == 8


@pytest.mark.parametrize(("lanes", "message"), [(0, "Lanes must be 1 to 64, not 0"),
                                                (12, "Lanes must be a power of two, not 12")])
def test_bad_lanes_are_refused(lanes, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Side(lanes)
