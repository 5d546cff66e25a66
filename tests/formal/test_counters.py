"""Counters in one cycle, from any state and for all inputs: no event is lost, none counts twice.

The promises are those of :class:`rtl.accelerator.counters.Counters`, of one context.
"""

import pytest
from z3 import UGE, ULT, And, BitVecVal, If, Implies, Not, Or

from hbfp.isa.registers import WORD
from rtl.accelerator.counters import LOCAL_BITS, Counters
from tests.formal.prove import Laws, Step
from tests.formal.views import chosen, number, part

#: Counters of an accelerator, and of a test of these laws.
ALL, SOME = 24, 5


def laws(_, step, count=ALL):
    """Laws of so many counters."""
    now, then = step.now, step.then
    turn, written = number(now.turn), number(now.written)
    goes = Not(now.r_en)    # the memory is free for a turn
    last = turn == count - 1

    def contents(state):
        return [vars(state)[f"memory.contents[{n}]"] for n in range(count)]

    def memory(state, n):
        """What the memory has of a counter, with what is on its way there: nothing while it was not swept."""
        on, own = And(state.adds, number(state.written) == n), contents(state)[n]
        swept = Or(Not(state.fresh), ULT(BitVecVal(n, 8), number(state.turn)))
        return If(on, If(state.first, 0, state.r_data) + number(state.amount, WORD), If(swept, own, 0))

    def local(state, n):
        return vars(state)[f"local{n}"]
    found = {
        "turns": number(then.turn) == If(now.clear, 0, If(goes, If(last, 0, turn + 1), turn)),
        "all turns since they were cleared": then.fresh == Or(now.clear, And(now.fresh, Not(And(goes, last)))),
        "a counter's turn": then.adds == And(goes, Not(now.clear)),
        "which": Implies(then.adds, And(number(then.written) == turn, then.first == now.fresh)),
        "what the host reads": Implies(And(now.r_en, ULT(number(now.r_addr), count)),
                                       then.r_data == chosen(contents(now), number(now.r_addr))),
        "whether it is known": then.r_known == Not(Or(now.fresh, now.first)),
    }
    for n in range(count):
        event, full = number(part(now.events, 1, n), WORD), local(now, n) == (1 << LOCAL_BITS) - 1
        mine, kept = And(goes, turn == n), number(local(then, n), WORD)
        found[f"{n}: cleared"] = Implies(now.clear, local(then, n) == 0)
        found[f"{n}: nothing is lost"] = Implies(And(Not(now.clear), Or(mine, Not(full))), (
            memory(then, n) + kept == memory(now, n) + number(local(now, n), WORD) + event))
        found[f"{n}: its events are with it"] = Implies(And(Not(now.clear), mine), kept == event)
    always = {
        "a turn": ULT(turn, count),
        "what is written was read": Implies(now.adds, And(
            ULT(written, count), now.r_data == chosen(contents(now), written),
            written == If(turn == 0, count - 1, turn - 1))),
        "what is new": And(Implies(And(now.adds, now.fresh), And(now.first, UGE(turn, 1))),
                           Implies(And(now.adds, now.first, Not(now.fresh)), turn == 0)),
    }
    return Laws(found, always, kept=("r_data",))


@pytest.mark.parametrize("count", [SOME, pytest.param(ALL, marks=pytest.mark.slow)])
def test_laws(count):
    step = Step.of(Counters(count, 1))
    assert step.broken(laws(None, step, count)) == []
