"""The bus's writes in one cycle, from any state and for all inputs: rules of AXI4, and that each beat is written once.
"""

import pytest
from z3 import ULE, ULT, And, BitVecVal, Concat, Extract, If, Implies, Not, Or

from rtl.accelerator.load import request_layout
from rtl.accelerator.store import beat_layout
from rtl.accelerator.writer import BEATS, Writer
from tests.cosim.accelerator.built import ACCELERATOR, TWO
from tests.formal.prove import Laws, Step
from tests.formal.views import Queue, field, marks, number, unmarked


def laws(system, step):
    """Laws of an accelerator's writer."""
    params, now, then = Writer.of(system).params, step.now, step.then
    low, request = (params.beat - 1).bit_length(), request_layout(params)
    count = number(now.under_way)
    # Bursts with beats to come, each its length less one; and beats that wait.
    (lengths, beats), (lengths_then, beats_then) = (
        (Queue(state, "lengths.", params.reads), Queue(state, "beats.", BEATS)) for state in (now, then))
    taken = And(now.request__valid, now.request__ready)
    address, size, last = (field(now.request__payload, request, name) for name in ("address", "beats", "last"))
    moves, answered = And(now.wvalid, now.wready), now.bvalid
    ends, comes = And(moves, now.wlast), And(now.beat__valid, Not(now.abort))
    data, lanes = (field(beats.words[0], beat_layout(params), name) for name in ("data", "lanes"))
    strobes = Concat(*(If(Extract(lane, lane, lanes) == 1, BitVecVal(15, 4), BitVecVal(0, 4))
                       for lane in reversed(range(params.lanes))))
    good = Extract(1, 1, now.bresp) == 0
    found = {
        "one is taken": now.request__ready == And(
            Or(Not(now.awvalid), now.awready), ULT(count, params.reads), Not(now.abort)),
        "what is taken is offered": then.awvalid == Or(taken, And(now.awvalid, Not(now.awready))),
        "what is offered stays": Implies(And(now.awvalid, Not(now.awready)), And(
            then.awvalid, then.awaddr == now.awaddr, then.awlen == now.awlen)),
        "burst": Implies(taken, And(
            then.awaddr == number(Concat(address, BitVecVal(0, low)), 64) + Concat(now.base, BitVecVal(0, 12)),
            then.awlen == number(size) - 1)),
        "bursts count up by whole beats": And(
            now.awburst == 1, now.awsize == low, Extract(low - 1, 0, now.awaddr) == 0, now.awcache == 3,
            Not(now.awid), Not(now.awlock), now.awprot == 0, now.awqos == 0),
        "bursts under way": number(then.under_way) == count + number(taken) - number(answered),
        "idle": now.idle == (count == 0),
        "order": marks(now.lasts, count, then.lasts, taken, last, answered),
        "answers": And(now.bready, now.error == And(answered, Not(good), Not(now.abort)),
                       now.written == And(answered, good, Not(now.abort), Extract(0, 0, now.lasts) == 1)),
        "a beat is offered": now.wvalid == And(lengths.valid, Or(beats.valid, now.filling)),
        "a beat that is offered stays": Implies(And(now.wvalid, Not(now.wready)), And(
            then.wvalid, then.wdata == now.wdata, then.wstrb == now.wstrb, then.wlast == now.wlast)),
        "a beat": Implies(beats.valid, And(now.wdata == data, now.wstrb == If(now.filling, 0, strobes))),
        "what is filled in": And(Implies(now.filling, now.wstrb == 0), Implies(
            Not(Or(beats.valid, beats_then.valid)), then.wdata == now.wdata)),
        "filling": then.filling == And(now.abort, Or(now.filling, Not(now.wvalid), now.wready)),
        "the last beat": Implies(lengths.valid, now.wlast == (number(now.sent) == number(lengths.words[0]))),
        "beats of a burst": number(then.sent) == If(ends, 0, number(now.sent) + number(moves)),
        "room": now.room == ULT(beats.length + number(now.beat__valid), BEATS),
        "taken at once": now.beat__ready,
    } | {f"bursts: {name}": law for name, law in lengths.becomes(
        lengths_then, taken, Extract(lengths.words[0].size() - 1, 0, size - 1), ends).items()} | {
        f"beats: {name}": law for name, law in beats.becomes(
            beats_then, comes, now.beat__payload, And(moves, beats.valid)).items()}
    always = {
        "bursts": ULE(count, params.reads), "lasts": unmarked(now.lasts, count), "queue of bursts": lengths.sound,
        "queue of beats": And(beats.sound, number(now.held) == beats.length),
        "bursts with beats are under way": ULE(lengths.length, count),
        "beats of a burst": If(lengths.valid, ULE(number(now.sent), number(lengths.words[0])), now.sent == 0)}
    always["no beat is on its way to the head while beats are filled in"] = Implies(
        now.filling, Or(beats.valid, beats.behind == 0))
    # Nothing is under way when an abort ends; the bus answers what it has all of; store has looked for room; a burst
    # has a beat, and not too many.
    given = [Implies(And(now.filling, Not(now.abort)), count == 0), Implies(answered, ULT(lengths.length, count)),
             Implies(now.beat__valid, ULT(beats.length, BEATS)), size != 0, ULE(size, params.burst)]
    return Laws(found, always, given, ("address", "length"))


@pytest.mark.parametrize("system", [ACCELERATOR, TWO], ids=["one context", "two contexts"])
def test_laws(system):
    step = Step.of(Writer.of(system))
    assert step.broken(laws(system, step)) == []
