"""Rounds and latencies of a machine by hand."""

import pytest

from golden.perf.pods.interconnect import parse
from golden.perf.pods.machine import Machine


@pytest.mark.parametrize("name, cycles, product, addition", [
    ("butterfly-2", 33, 80, 20), ("crossbar", 33, 66, 6), ("benes", 48, 110, 50)])
def test_64_pods(name, cycles, product, addition):
    machine = Machine(64, 32, 32, parse(name))
    assert (machine.round(32), machine.product_cycles, machine.sum_cycles) == (cycles, product, addition)


@pytest.mark.parametrize("partition, cycles", [(1, 33), (32, 33), (33, 34), (64, 65)])
def test_a_round_lasts_for_its_rows_and_for_the_next_weights(partition, cycles):
    assert Machine(64, 32, 32, parse("butterfly-2")).round(partition) == cycles
