"""The table of what programs cost has rows of tests that there are, and a program that never ends is found soon."""

from dataclasses import replace

import pytest

from golden.machine.random_programs import random_program
from golden.perf.accelerator import model
from hbfp.isa.instructions import Unit, Wait

from . import costs
from .training.steps import accelerator


def test_rows_are_of_tests_that_count():
    files = {f"tests/golden/lower/{name.partition('::')[0]}" for name in costs.table()}
    assert files <= set(costs.tests()) and len(costs.table()) > 200


def test_one_more_instruction_is_seen_and_one_that_waits_for_ever(monkeypatch):
    program = random_program(accelerator(), 0, 20)
    first, *others = program.instructions
    assert costs.cost([program, program]) == [2 * each for each in costs.cost([program])]
    assert costs.cost([replace(program, instructions=(first, first, *others))])[0] == len(others) + 2
    monkeypatch.setattr(model, "LIMIT", 10_000)
    stuck = replace(first, waits=(Wait(Unit.STORE, 1000),))
    with pytest.raises(model.EndlessError):
        costs.cost([replace(program, instructions=(stuck, *others))])
