"""Training beside inference: shares of time and of bytes."""

import pytest

from golden.perf.dispatch.colocation import GRADIENT, MASTER, Demand, demand, share
from golden.perf.workloads import lstm
from hbfp.program import Product


def test_where_the_array_binds_training_has_the_idle_time():
    assert share(Demand(training=1.0, inference=0.1), bandwidth=100.0, load=0.3, idle=0.7) == pytest.approx(0.7)


def test_where_the_memory_binds_only_the_bytes_of_inference_are_missing():
    assert share(Demand(training=10.0, inference=1.0), bandwidth=5.0, load=0.5, idle=0.8) == pytest.approx(0.9)


def test_inference_may_take_all_bytes():
    assert share(Demand(training=10.0, inference=10.0), bandwidth=5.0, load=0.9, idle=0.1) == 0.0


def test_bytes_of_one_product():
    """Weights twice, gradient, master copy twice; activations twice; the step takes three forward passes."""
    found = demand([Product(2, 3, 5)], samples=7, element_bytes=1.0, seconds=2.0)
    assert found.training == (15 * (2 + GRADIENT + 2 * MASTER) + 2 * 7 * 2 * 5) / 6
    assert found.inference == 7 * (2 * 3 + 2 * 5) / 2


def test_a_recurrent_network_has_its_weights_once():
    one, many = (demand(lstm(width=8, steps=steps), 1, 1.0, 1.0) for steps in (1, 15))
    assert many.training < 2 * one.training
