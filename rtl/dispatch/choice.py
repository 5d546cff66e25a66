"""What the policy starts next, if the executor is free."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.dispatch import SHARE_WHOLE, DispatchUnit

from ..lib.component import Component
from .shapes import policy_layout


class Choice(Component):
    """Chooses between a batch, a quantum of training and nothing.

    A batch is due if ``batch`` requests wait, or one has waited for ``timeout`` cycles. Training that was paid for is
    due always. Golden twin: :meth:`golden.perf.dispatch.twin.Twin.choice`.

    Parameters
    ----------
    depth, address, tag, time, counter : int
        See :class:`golden.spec.dispatch.DispatchUnit`.

    Members
    -------
    policy : ``In(policy_layout)``
    waiting : ``In``
        Requests that no batch has taken.
    old : ``In(1)``
        The oldest of them has waited for ``timeout`` cycles.
    settled : ``In(1)``
        ``old`` is known; until then nothing is chosen.
    barred : ``In(1)``
        Training must not be started.
    running : ``In(1)``
        The training program runs in this cycle.
    turn : ``In(1)``
        The last thing that was started is a batch: without priority it is training's turn.
    batch, training : ``Out(1)``
        Start this; at most one of the two.
    count : ``Out``
        Requests that the batch would take.
    valid : ``Out(1)``
        The policy is one; else nothing is started.
    """
    kind = "dispatch_choice"
    Parameters = DispatchUnit

    @staticmethod
    def ports(unit):
        return {
            "policy": In(policy_layout(unit)), "waiting": In(unit.batch_bits), "old": In(1), "settled": In(1),
            "barred": In(1), "running": In(1), "turn": In(1), "batch": Out(1), "training": Out(1),
            "count": Out(unit.batch_bits), "valid": Out(1),
        }

    def body(self, platform):
        m, unit, policy = Module(), self.params, self.policy
        full = Signal()
        due = Signal()
        may_train = Signal()
        # Sixteenths of cycles that training owes: it pays 16 - share for a cycle, and share comes back in any other.
        debt = Signal(unit.time + SHARE_WHOLE.bit_length() - 1)
        change = Signal(signed(SHARE_WHOLE.bit_length() + 1))
        after = Signal(signed(len(debt) + 2))
        m.d.comb += [change.eq(Mux(self.running, SHARE_WHOLE, 0) - policy.share), after.eq(debt + change)]
        m.d.sync += debt.eq(Mux(after < 0, 0, after[:len(debt)] | after[len(debt)].replicate(len(debt))))
        m.d.comb += [
            self.valid.eq(policy.batch.any() & (policy.batch <= unit.depth) & (policy.share <= SHARE_WHOLE)),
            full.eq(self.waiting >= policy.batch),
            due.eq(policy.inference & self.valid & self.settled & self.waiting.any() & (full | self.old)),
            may_train.eq(policy.training & self.valid & policy.share.any() & ~self.barred & (debt == 0)),
            self.batch.eq(due & (policy.priority | ~self.turn | ~may_train)),
            self.training.eq(may_train & self.settled & ~self.batch),
            self.count.eq(Mux(full, policy.batch, self.waiting)),
        ]
        return m
