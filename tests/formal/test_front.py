"""The front of a dispatcher in one cycle, from any state and for all inputs: what registers say of it, and are told.

What docs/design/13-dispatched.md promises beside the dispatcher and the queue in it, which have laws of their own.
"""

from dataclasses import replace

from z3 import UGE, ULE, ULT, And, BitVecVal, Concat, Extract, If, Implies, Not, Or

from hbfp.isa.registers import BY_NAME
from rtl.accelerator.front import Front, done_layout, settings_layout, unit
from rtl.accelerator.ring import descriptor_layout
from rtl.dispatch.shapes import completion_layout, policy_layout, request_layout, start_layout
from tests.cosim.accelerator.built import DISPATCHED
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, inner, number, part

WORD = 32


def laws(system, step):
    """Laws of an accelerator's front, with a ring of descriptors."""
    params, now, then = Front.of(system).params, step.now, step.then
    inside, settings = unit(params.dispatch, 1), Fields(now.settings, settings_layout())
    asked = {field.name: Extract(field.low + field.width - 1, field.low, settings.policy)
             for field in BY_NAME["policy"].fields}

    def of(name):
        return vars(now)[f"dispatcher.{name}"]

    def queue(name):
        return vars(now)[f"completions.{name}"]

    def same(one, other):
        """A field of one bit, or of more, is what others are."""
        return one == (other == 1) if one.sort().name() == "Bool" else number(one, WORD) == number(other, WORD)

    # The policy, of a dispatcher that has the contexts; none while descriptors are due.
    policy, may = Fields(of("policy"), policy_layout(inside)), And(now.attached, Not(now.holds))
    found = {
        "attached": now.attached == (asked["attached"] == 1),
        "what may be started": And(policy.inference == And(asked["inference"] == 1, may),
                                   policy.training == And(asked["training"] == 1, may, now.trains)),
        "the policy": And(*(same(getattr(policy, name), asked[name]) for name in ("priority", "share", "closes")),
                          policy.timeout == settings.timeout, policy.patience == settings.patience),
        "a batch of too many is none": number(policy.batch) == If(
            ULE(number(asked["batch"]), params.requests), number(asked["batch"]), 0),
    }

    # Requests, of the host or of a ring.
    request = Fields(of("i_request__payload"), request_layout(inside))
    descriptor = Fields(now.descriptor, descriptor_layout())
    valid, ready = of("i_request__valid"), of("i_request__ready")
    takes = And(now.takes, Extract(0, 0, now.completion) == 1)
    owed, owed_then = number(now.owed), number(then.owed)
    found |= {
        "a request": And(valid == Or(now.push, now.good), *(
            getattr(request, name) == If(now.good, getattr(descriptor, name), getattr(settings, f"request_{name}"))
            for name in ("input", "output", "tag"))),
        "when it counts": And(of("told") == now.good, of("arrived") == now.arrived, now.clock == of("clock")),
        "full": now.full == Or(Not(ready), now.on),
        "places that are taken": owed_then == owed + number(Or(And(valid, ready), now.refused)) - number(takes),
        "room": number(now.room) == If(ULT(owed, params.dispatch), params.dispatch - owed, 0),
        "it is starting": now.starting == of("o_start__valid"),
    }

    # Starts, places of a batch, ends.
    start, item = Fields(of("o_start__payload"), start_layout(inside)), Fields(
        of("o_item__payload"), request_layout(inside))
    comes, left, place = of("o_item__valid"), number(now.left), number(now.place)
    begins = And(of("o_start__valid"), now.free)
    over, serves, trains = And(now.over, of("i_done__ready")), now.serves, inner(now, "trains")
    status = [Extract(n, n, now.status) == 1 for n in range(5)]
    found |= {
        "a start": And(of("o_start__ready") == now.free, now.batch == And(begins, Not(start.training)),
                       now.quantum == And(begins, start.training)),
        "items are taken": of("o_item__ready"),
        "items to come": number(then.left) == If(now.batch, number(start.count), left - number(comes)),
        "items that came": number(then.place) == If(now.batch, 0, place + number(comes)),
        "all are there": now.loaded == (left == 0),
        "places of a batch": And(*(part(getattr(then, ports), WORD, n) == If(
            And(comes, ULE(place, n)), getattr(item, name), part(getattr(now, ports), WORD, n))
            for ports, name in (("inputs", "input"), ("outputs", "output")) for n in range(params.requests))),
        "an end": And(of("i_done__valid") == now.over, of("i_done__payload") == now.over_training, now.taken == over),
        "a batch is under way": then.serves == Or(now.batch, And(serves, Not(And(over, Not(now.over_training))))),
        "a quantum is": inner(then, "trains") == Or(now.quantum, And(trains, Not(And(over, now.over_training)))),
        "status": And(status[0] == queue("o__valid"), status[1] == (of("error") != 0), status[2] == serves,
                      status[3] == trains, status[4] == of("overdue")),
        "errors": And(now.dispatch_error == of("error"), of("clear") == now.clears, now.overdue == of("overdue")),
        "the time": now.now == of("now"),
    }

    # Completions: of what was refused at once, of others in their turn.
    layout = done_layout(True)
    entry, head = Fields(queue("i__payload"), layout), Fields(queue("o__payload"), layout)
    told = Fields(entry.completion, completion_layout(unit(2)))
    failed = inner(now, "failed")
    found |= {
        "a batch that failed": inner(then, "failed") == If(And(over, Not(now.over_training)), now.failed, failed),
        "a completion": Implies(Not(now.refused), And(
            queue("i__valid") == of("o_completion__valid"), of("o_completion__ready") == queue("i__ready"),
            entry.completion == of("o_completion__payload"), entry.failed == failed, entry.reason == 0)),
        "one that was refused": Implies(now.refused, And(
            queue("i__valid"), Not(of("o_completion__ready")), told.tag == descriptor.tag, told.arrived == now.now,
            told.started == now.now, told.finished == now.now, Not(entry.failed), entry.reason == now.why)),
        "it is shown": And(
            now.completion == Concat(*(If(bit, BitVecVal(1, 1), 0) for bit in (
                And(head.failed, queue("o__valid")), queue("o__valid")))), now.completed == head.completion,
            now.reason == If(queue("o__valid"), head.reason, 0), queue("o__ready") == now.takes),
    }

    # Counters.
    address, select = of("i_counter__payload"), settings.count_select
    asks, asks_then = now.i_counter__valid, then.i_counter__valid
    known = And(of("o_counter__valid"), Not(asks), Not(now.selects))
    found |= {
        "a counter is asked for": And(asks_then == Or(now.selects, And(asks, Not(of("i_counter__ready")))), Implies(
            asks, And(of("i_counter__valid"), number(address, WORD) == select & (1 << address.size()) - 1)),
            Implies(of("i_counter__valid"), asks), of("o_counter__ready")),
        "it is known": then.tally_known == And(Not(now.selects), Or(now.tally_known, known)),
        "its value": then.tally == If(known, If(UGE(select, 1 << address.size()), 0, of("o_counter__payload")),
                                      now.tally),
    }
    always = {"places that are taken": ULE(owed, 2 * params.dispatch)}
    # What is taken was held, and what is refused had room; a batch hands over as many as it was started with.
    given = [Implies(takes, owed != 0), Implies(owed == 2 * params.dispatch, Not(Or(now.refused, And(valid, ready)))),
             Implies(comes, And(left != 0, ULT(place, params.requests)))]
    kept = tuple(name for name in vars(now) if name.startswith(("dispatcher.", "completions.", "input", "output")))
    return Laws(found, always, given, kept)


def test_laws():
    system = replace(DISPATCHED, dispatch=4)
    step = Step.of(Front.of(system))
    assert step.broken(laws(system, step)) == []
