"""Batches between quanta on the golden machine: every answer as PyTorch's of that request alone, every weight.

Covers: cosim/colocate/clients.py, cosim/colocate/trainer.py, cosim/colocate/run.py, cosim/colocate/report.py,
golden/lower/alone.py.
"""

import pytest

from cosim.colocate.run import on_machine
from tests.cases import sweep

from .both import BATCH, both

#: Batches that are full, of one, of three; some at once, some behind a timeout.
ARRIVALS = [10, 20, 30, 40, 5000, 12000, 12001, 12002, 12003, 12004, 12005, 12006]


@pytest.mark.parametrize("words", sweep(2, [True, False]))
def test_every_bit(words):
    """Of answers, losses, weights and state; also where the host writes instructions of a program with YIELDs."""
    given = both(ARRIVALS, words=words)
    found = on_machine(given)
    fills = [len(each.requests) for each in found.followed.turns if each.piece < 0]
    assert sum(fills) == len(ARRIVALS) and set(fills) >= {1, BATCH} and len(given.plan.pieces) > 2
    assert found.answers.compared == 5 * len(ARRIVALS) and not found.answers.mismatches
    assert found.steps > 2 and found.weights.compared > 100 and not found.weights.mismatches
    assert found.passed and found.exceeded == 0 and found.late == 0
    data = found.figures()
    assert 0 < data["later"] <= data["later_bound"] == given.plan.delay and data["beyond"] == 0


def test_what_differs_is_found(monkeypatch):
    """An answer of another request, and a training on other batches."""
    given = both(ARRIVALS)
    wanted = given.clients.wanted
    monkeypatch.setattr(given.clients, "wanted", lambda request: wanted(request + 1))
    reference, advance = given.step.reference, given.step.reference.step
    monkeypatch.setattr(reference, "step", lambda inputs, targets: advance([inputs[0] * 2], targets))
    found = on_machine(given)
    assert found.answers.mismatches and found.weights.mismatches and not found.passed


def test_without_training():
    found = on_machine(both(ARRIVALS, train=False))
    assert found.passed and found.steps == 0 and found.figures()["steps"] == 0 and "later" not in found.figures()


def test_a_request_above_its_bound_is_counted():
    given = both(ARRIVALS, train=False)
    found = on_machine(given)
    last = max(found.completions)
    late = found.completions[last]._replace(finished=found.completions[last].arrived + given.plan.bound(99))
    found.completions[last] = late
    assert found.exceeded == 1 and not found.passed
