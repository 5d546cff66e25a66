"""The report in one cycle, from any state and for all inputs: completions in their order, four counters for each."""

from z3 import UGE, UGT, ULE, ULT, And, BitVecVal, Extract, If, Implies, Not, Or

from cosim.dispatch.check import SMALL
from golden.spec.dispatch import Counter
from rtl.dispatch.report import Report, State
from rtl.dispatch.shapes import arrival_layout, completion_layout, tally_layout
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, chosen, inner, number

#: Bits in which times do not wrap.
WIDE = 64


def laws(unit, step):
    """Laws of the report of a dispatcher."""
    now, then = step.now, step.then
    kept, later = ({name: inner(state, name) for name in ("started", "finished", "aged", "border")}
                   for state in (now, then))
    arrival = Fields(now.r_data, arrival_layout(unit))
    told, change = Fields(now.o_completion__payload, completion_layout(unit)), Fields(
        now.o_tally__payload, tally_layout(unit))
    reads, offers, counts = (now.state == int(state) for state in State)
    age = number(kept["finished"] - arrival.arrived, WIDE)
    excess = Or(kept["aged"], UGT(age, unit.longest))
    latency = If(excess, BitVecVal(unit.longest, WIDE), age)
    size = number(change.address, WIDE) - unit.histogram(0)
    is_size = And(ULE(size, unit.time), ULT(latency, 1 << size), Or(size == 0, UGE(latency, 1 << size - 1)))
    step_ = number(now.step)
    steps = [number(change.address, WIDE) == int(counter) for counter in (
        Counter.COMPLETED, Counter.LATENCY, Counter.LONGEST)]
    freed, counted = And(offers, now.o_completion__ready), And(counts, now.o_tally__ready)
    last = And(counted, step_ == 3)
    found = {
        "it is busy": now.busy == (now.left != 0),
        "arrivals are read": And(now.r_en == And(reads, now.busy)),
        "a completion is offered": And(now.o_completion__valid == offers, now.freed == freed),
        "completion": And(told.tag == arrival.tag, *(
            value == Extract(unit.time - 1, 0, time) for value, time in (
                (told.arrived, arrival.arrived), (told.started, kept["started"]), (told.finished, kept["finished"])))),
        "a latency that is too long": now.excess == excess,
        "a change is offered": now.o_tally__valid == counts,
        "changes": Implies(counts, And(
            chosen([steps[0], is_size, steps[1], steps[2]], step_), change.largest == (step_ == 3),
            number(change.amount, WIDE) == If(ULT(step_, 2), BitVecVal(1, WIDE), latency))),
        "order": then.r_addr == now.r_addr + If(freed, BitVecVal(1, now.r_addr.size()), 0),
        "states follow each other": then.state == If(And(reads, now.busy), int(State.OFFER), If(
            freed, int(State.COUNT), If(last, int(State.READ), now.state))),
        "steps": number(then.step) == If(last, 0, step_ + number(counted)),
        "a batch has so many": then.left == If(now.begins, now.count, now.left - If(
            last, BitVecVal(1, now.left.size()), 0)),
        "until one that is not old": later["aged"] == If(now.begins, now.aged, And(
            kept["aged"], Not(And(last, now.r_addr == kept["border"])))),
        **{f"{name} of a batch": later[name] == If(now.begins, getattr(now, name), kept[name])
           for name in ("started", "finished", "border")},
    }
    always = {"states": Or(reads, offers, counts), "steps": Or(counts, now.step == 0), "one at a time": Or(
        reads, now.busy)}
    # A batch is done only while none is reported.
    return Laws(found, always, [Implies(now.begins, Not(now.busy))], tuple(
        name for name in vars(now) if name.startswith(("started$", "finished$", "aged$", "border$"))))


def test_laws():
    step = Step.of(Report.made(SMALL))
    assert step.broken(laws(SMALL, step)) == []
