"""What the policy chooses, from any state and for all inputs: what is due, whose turn it is, what training owes."""

from z3 import UGE, UGT, ULE, And, BitVecVal, If, Not, Or

from cosim.dispatch.check import SMALL
from golden.spec.dispatch import SHARE_WHOLE
from rtl.dispatch.choice import Choice
from rtl.dispatch.shapes import policy_layout
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, number

#: Bits in which what training owes does not wrap.
WIDE = 64


def laws(unit, step):
    """Laws of the choice of a dispatcher."""
    now, then, policy = step.now, step.then, Fields(step.now.policy, policy_layout(unit))
    waiting, batch, share, owed = (number(value, WIDE) for value in (now.waiting, policy.batch, policy.share, now.debt))
    most = (1 << now.debt.size()) - 1
    policy_is_one = And(batch != 0, ULE(batch, unit.depth), ULE(share, SHARE_WHOLE))
    due = And(policy.inference, policy_is_one, now.settled, waiting != 0, Or(UGE(waiting, batch), now.old))
    paid = And(policy.training, policy_is_one, share != 0, Not(now.barred), owed == 0)
    spent = owed + If(now.running, BitVecVal(SHARE_WHOLE, WIDE), 0)
    return Laws({
        "a policy": now.valid == policy_is_one,
        "a batch that is due": now.batch == And(due, Or(policy.priority, Not(And(now.turn, paid)))),
        "training that was paid for": now.training == And(paid, now.settled, Not(now.batch)),
        "requests of a batch": number(now.count, WIDE) == If(UGE(waiting, batch), batch, waiting),
        "what training owes": number(then.debt, WIDE) == If(ULE(spent, share), 0, If(
            UGT(spent - share, most), most, spent - share)),
    })


def test_laws():
    step = Step.of(Choice.made(SMALL))
    assert step.broken(laws(SMALL, step)) == []
