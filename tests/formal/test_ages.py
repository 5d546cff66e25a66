"""Ages of requests in one cycle, from any state and for all inputs: how many are older than times can tell."""

import pytest
from z3 import BitVecVal, If, Implies, Or

from cosim.dispatch.check import SMALL
from golden.spec.dispatch import DispatchUnit
from rtl.dispatch.ages import Ages
from tests.formal.prove import Laws, Step
from tests.formal.views import number


def laws(unit, step):
    """Laws of the ages of a dispatcher."""
    now, then, none = step.now, step.then, BitVecVal(0, 8)

    def upto(end, head):
        """Requests from the oldest up to an end of the queue, where there are some."""
        found = number(end - head)
        return If(found == 0, BitVecVal(unit.depth, 8), found)
    moves, head = number(now.moves), now.head - If(now.moves, BitVecVal(1, now.head.size()), 0)
    # Requests that wait: all of them behind this cycle, those of before the last period ended, those of before that.
    every = If(now.waits, upto(now.tail, now.head), none)
    before = If(now.later_waiting, upto(now.later, head) - moves, none)
    before = If(now.early, every, before)
    old = If(now.waiting, upto(now.border, head) - moves, none)
    # Of the batch that was taken last, whether its oldest was there before these ends.
    runs = [If(now.takes, *pair) for pair in ((now.waiting, now.running), (now.later_waiting, now.later_running))]
    found = {
        "older than a period": If(then.waiting, upto(then.border, now.head), none) == If(now.turns, before, old),
        "from before the last period": If(then.later_waiting, upto(then.later, now.head), none) == If(
            now.turns, every, before),
        "where the queue ended": then.later == If(Or(now.turns, now.early), now.tail, now.later),
        "where it ended before": then.border == If(now.turns, If(now.early, now.tail, now.later), now.border),
        "the oldest of a batch": then.running == If(now.turns, runs[1], runs[0]),
        "the oldest of a batch, a period ago": then.later_running == Or(now.turns, runs[1]),
    }
    # What comes waits.
    return Laws(found, {}, [Implies(now.early, now.waits)], ("border", "later"))


@pytest.mark.parametrize("unit", [SMALL, DispatchUnit(depth=4)], ids=["16 places", "4 places"])
def test_laws(unit):
    step = Step.of(Ages.made(unit))
    assert step.broken(laws(unit, step)) == []
