"""The compiled follower says of every request, batch and quantum what the plain one does."""

from dataclasses import replace

import numpy as np
import pytest

from golden.perf.accelerator.colocate import compiled
from golden.perf.accelerator.colocate.dispatched import Quanta
from golden.perf.accelerator.colocate.followed import follow
from golden.spec.dispatch import DispatchUnit, Policy
from tests.cases import sweep

from .test_followed import UNIT, drawn


def same(unit, policy, service, training, arrivals, again):
    """Both; whether they agree, and the compiled one."""
    plain = follow(unit, policy, service, training, arrivals, again=again)
    found = compiled.follow(unit, policy, service, training, arrivals, again=again, turns=1 << 20)
    completions = [plain.completions[tag] for tag in range(len(arrivals))]
    for name in ("arrived", "started", "finished"):
        assert (getattr(found, name) % 2**unit.time).tolist() == [getattr(each, name) for each in completions]
    assert found.turns.tolist() == [[each.piece, each.started, each.ended] for each in plain.turns]
    assert found.fills.tolist() == [len(each.requests) for each in plain.turns if each.piece < 0]
    pieces = [each.piece for each in plain.turns if each.piece >= 0]
    assert found.ran.tolist() == [pieces.count(number) for number in range(len(found.ran))]
    assert found.steps == pieces.count(len(found.ran) - 1)
    came, started = found.arrived, found.started
    assert found.waiting.tolist() == [((came <= each) & (each < started)).sum() for each in came]
    return found


@pytest.mark.parametrize("seed", sweep(3, range(24)))
def test_as_the_plain_one(seed):
    """Also where queues are full, and where training is overdue."""
    policy, service, training, arrivals, _ = drawn(seed)
    if training is not None and seed % 3 == 0:
        policy = replace(policy, patience=int(np.sort(training.anew)[-1]) - 1 - seed % 2 * 40)
    unit = replace(UNIT, depth=4 if seed % 4 == 1 else 8)
    found = same(unit, policy, service, training, arrivals, 70 + seed)
    assert (found.overdue >= 0) <= (policy.patience > 0)


def test_overdue():
    """What has not yielded is stopped in its cycle, and nothing trains from then on."""
    policy, training = Policy(batch=2, timeout=300, patience=100), Quanta(np.array([60, 150]), np.array([80, 170]))
    found = same(UNIT, policy, 200, training, [1000, 1200, 4000, 9000], 100)
    assert found.ran.tolist() == [1, 0] and found.steps == 0
    assert found.overdue == found.turns[0][2] + 7 + 100


def test_full_queue():
    """Those that it refuses are counted, each once."""
    found = same(replace(UNIT, depth=4), Policy(batch=2, timeout=300), 200, None, [1000] * 9 + [9000] * 4, 100)
    assert found.refused == 5 and found.arrived.tolist()[:4] == [1000, 1001, 1002, 1003]


def test_long_idleness():
    """Times are counted anew in each half of a period of the dispatcher's clock."""
    training = Quanta(np.array([90]), np.array([100]))
    for policy in (Policy(batch=2, timeout=20, training=False), Policy(batch=2, timeout=20)):
        same(DispatchUnit(depth=8, tag=32, time=12), policy, 200, training, [1, 30_000, 30_010, 34_095, 40_000], 3000)


def test_policies_that_it_does_not_follow():
    with pytest.raises(ValueError, match="^Policy must serve batches of 1 to 8 first, and not limit training, not "):
        compiled.follow(UNIT, Policy(batch=2, share=8), 100, None, [1], again=1)
