"""Counters in one cycle, from any state and for all inputs: who is served, that each change counts once, their end."""

from z3 import UGT, ULE, ULT, And, BitVecVal, If, Implies, Not, Or

from cosim.dispatch.check import SMALL
from rtl.dispatch.shapes import tally_layout
from rtl.dispatch.tally import Tally
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, chosen, number

#: Bits in which sums do not wrap.
WIDE = 96


def laws(unit, step):
    """Laws of the counters of a dispatcher."""
    now, then, layout, most = step.now, step.then, tally_layout(unit), (1 << unit.counter) - 1
    counters, later = ([vars(state)[f"memory.contents[{place}]"] for place in range(unit.counters)]
                       for state in (now, then))
    firsts, seconds = (Fields(payload, layout) for payload in (now.i_first__payload, now.i_second__payload))
    cleared, clearing = now.clearing == 0, number(now.clearing)
    # In its first cycle a change is chosen, and its counter is read; in its second it is taken.
    idle = Not(now.second_cycle)
    serves = {"first": If(idle, now.i_first__valid, now.kept_first),
              "second": If(idle, And(now.i_second__valid, Not(now.i_first__valid)), now.kept_second)}
    serving = Or(*serves.values())
    change = {name: If(serves["first"], getattr(firsts, name), getattr(seconds, name))
              for name in ("address", "largest", "amount")}
    held, held_then = (vars(state)["memory.r_data"] for state in (now, then))
    before, amount = number(held, WIDE), number(change["amount"], WIDE)
    result = If(change["largest"], If(UGT(amount, before), amount, before), before + amount)
    result = number(If(UGT(result, most), BitVecVal(most, WIDE), result), unit.counter)
    reads = And(cleared, serving, idle)
    gives = And(now.i_address__valid, cleared, idle, Not(serving), Not(now.reading), Not(now.o_value__valid))
    read = number(now.i_address__payload)
    exists = ULT(read, unit.counters)
    found = {
        "cleared": now.cleared == cleared,
        "counters are set to 0": And(number(then.clearing) == clearing - number(Not(cleared)), *(
            Implies(clearing == place + 1, value == 0) for place, value in enumerate(later))),
        "a change is chosen": And(then.second_cycle == reads, Implies(then.second_cycle, And(
            then.kept_first == serves["first"], then.kept_second == serves["second"]))),
        "a change is taken": And(now.i_first__ready == And(now.second_cycle, now.kept_first),
                                 now.i_second__ready == And(now.second_cycle, now.kept_second)),
        "a counter is read": Implies(Or(reads, And(gives, exists)), held_then == chosen(
            counters, If(reads, number(change["address"]), read))),
        "it stays until then": Implies(Not(Or(reads, gives)), held_then == held),
        "a change counts": Implies(cleared, And(*(value == If(
            And(now.second_cycle, number(change["address"]) == place), result, counters[place])
            for place, value in enumerate(later)))),
        "a counter is asked for": And(now.i_address__ready == gives, then.reading == gives, Implies(
            gives, then.exists == exists)),
        "its value": then.o_value__payload == If(now.reading, If(
            now.exists, held, 0), now.o_value__payload),
        "it is offered until it is taken": then.o_value__valid == Or(now.reading, And(
            now.o_value__valid, Not(now.o_value__ready))),
    }
    always = {"words to clear": ULE(clearing, unit.counters), "one is served": Implies(now.second_cycle, And(
        cleared, now.kept_first != now.kept_second)), "reading": Not(And(now.reading, now.o_value__valid))}
    return Laws(found, always, [ULT(number(each.address), unit.counters) for each in (firsts, seconds)],
                ("o_value__payload",))


def test_laws():
    step = Step.of(Tally.made(SMALL))
    assert step.broken(laws(SMALL, step)) == []
