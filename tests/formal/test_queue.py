"""A unit's queue in one cycle, from any state and for all inputs: order, waits, NOPs, what the unit uses later.

The promises are those of :class:`rtl.accelerator.queue.Queue`.
"""

import pytest
from z3 import ULE, ULT, And, BitVecVal, If, Implies, Not, Or

from hbfp.isa.instructions import COUNT_BITS, WAITS, Unit
from rtl.accelerator.queue import MOST_TAKEN, Queue, entry_layout, wait_layout
from rtl.lib.layout import StructLayout
from tests.formal import views
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, around, chosen, joined, number, part

DEPTH = 4


def laws(_, step):
    """Laws of a queue of :data:`DEPTH` instructions; its widths are those of its ports."""
    now, then = step.now, step.then
    kept = now.held.size() if hasattr(now, "held") else 0
    layout = entry_layout(now.o__payload.size(), kept)
    names = ("fields", "nop", "waits") if kept else ("fields", "nop", "number", "waits")
    fifo, after = (views.Queue(state, "fifo.", DEPTH) for state in (now, then))
    head = Fields(fifo.head, StructLayout({name: layout.members[name] for name in names}))
    came = Fields(now.i__payload, layout)
    waits = [Fields(part(head.waits, wait_layout().size, n), wait_layout()) for n in range(WAITS)]
    at, taken = number(now.at), number(now.taken)
    count = chosen([BitVecVal(0, COUNT_BITS), *(part(now.counts, COUNT_BITS, n) for n in range(len(Unit)))],
                   chosen([wait.unit for wait in waits], at))
    good = ULE(chosen([wait.count for wait in waits], at), count)
    more = Or(*(And(ULT(at, n), waits[n].unit != 0) for n in range(1, WAITS)))
    ready = And(fifo.valid, good, Not(more))
    takes = And(now.o__valid, now.o__ready)
    pop, push = Or(takes, now.nop), And(now.i__valid, now.i__ready)
    word = joined([_bits(came, name) for name in names])
    found = {
        "room": now.i__ready == (fifo.length != DEPTH),
        "offered when all waits hold": now.o__valid == And(ready, Not(head.nop), taken != MOST_TAKEN),
        "fields": Implies(now.o__valid, now.o__payload == head.fields),
        "a NOP behind all that was taken": now.nop == And(ready, head.nop, taken == 0),
        "completed": now.completed == Or(now.done, now.nop),
        "waiting": now.waiting == And(fifo.valid, Not(ready)),
        "busy": now.busy == (taken != 0), "empty": now.empty == And(fifo.length == 0, taken == 0),
        "a wait a cycle": number(then.at) == If(pop, 0, If(And(fifo.valid, good, more), at + 1, at)),
        "taken": number(then.taken) == taken + number(takes) - number(now.done),
    } | {f"order: {name}": law for name, law in fifo.becomes(after, push, word, pop).items()}
    given = [Implies(now.done, taken != 0)]
    always = {"order": fifo.sound, "the wait that is looked at": And(ULT(at, WAITS), Implies(Not(fifo.valid), at == 0))}
    if not kept:
        return Laws(found | {"number of the head": Implies(fifo.valid, now.number == head.number)}, always, given)
    late, later = (_Kept(state) for state in (now, then))
    return Laws(found | {
        "used later": And(*(later.contents[n] == If(And(push, late.free == n), joined([came.number, came.kept]), own)
                            for n, own in enumerate(late.contents))),
        "places of it": And(later.free == If(push, around(late.free + 1, DEPTH), late.free),
                            later.first == If(pop, around(late.first + 1, DEPTH), late.first)),
        "of what was taken last": later.given == If(takes, chosen(late.contents, late.first), late.given),
    }, always | {"places of it": And(ULT(late.first, DEPTH), late.free == around(late.first + fifo.length, DEPTH))},
        given)


def _bits(fields, name):
    """A field as a bit vector."""
    value = getattr(fields, name)
    return number(value, 1) if name == "nop" else value


class _Kept:
    """What a queue keeps for later, in a state: numbers below, fields above; ``given`` is what its ports give."""

    def __init__(self, state):
        self.contents = [vars(state)[f"later.contents[{n}]"] for n in range(DEPTH)]
        self.first, self.free = number(state.r_addr), number(state.w_addr)
        self.given = joined([state.number, state.held])


@pytest.mark.parametrize("width, kept", [(16, 32), (24, 0)], ids=["kept", "held by the queue"])
def test_laws(width, kept):
    step = Step.of(Queue(DEPTH, width, kept))
    assert step.broken(laws(None, step)) == []
