"""The bus's reads in one cycle, from any state and for all inputs: rules of AXI4, and the order in which data come."""

import pytest
from z3 import ULE, ULT, And, BitVecVal, BoolVal, Concat, Extract, If, Implies, Not, Or

from rtl.accelerator.load import request_layout
from rtl.accelerator.reader import Reader, fetch_layout
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED, TWO
from tests.formal.prove import Laws, Step
from tests.formal.views import field, marks, number, unmarked


def laws(system, step):
    """Laws of an accelerator's reader."""
    params, now, then = Reader.of(system).params, step.now, step.then
    count, oldest = number(now.under_way), Extract(0, 0, now.loads) == 1
    of_ring = Extract(0, 0, now.rings) == 1 if params.dispatch_ring else BoolVal(False)
    room = And(Or(Not(now.arvalid), now.arready), ULT(count, params.reads))
    asks = {"fetch": (now.fetch__valid, now.fetch__ready), "load": (now.load__valid, now.load__ready)}
    if params.dispatch_ring:
        asks["ring"] = now.ring__valid, now.ring__ready
    takes = {name: And(*each) for name, each in asks.items()}
    taken, ends = Or(*takes.values()), And(now.rvalid, now.rready, now.rlast)
    good = And(now.rvalid, Extract(1, 1, now.rresp) == 0, Not(now.abort), Not(of_ring))
    layouts = {"fetch": fetch_layout, "load": request_layout, "ring": fetch_layout}
    low = (params.beat - 1).bit_length()
    found = {
        "one is taken": And(
            now.fetch__ready == And(room, Not(now.abort)),
            now.load__ready == And(room, Not(now.abort), Not(now.fetch__valid)),
            now.ring__ready == And(room, Not(now.fetch__valid), Not(now.load__valid)) if "ring" in asks else True),
        "what is taken is offered": then.arvalid == Or(taken, And(now.arvalid, Not(now.arready))),
        "what is offered stays": Implies(And(now.arvalid, Not(now.arready)), And(
            then.arvalid, then.araddr == now.araddr, then.arlen == now.arlen)),
        "bursts count up by whole beats": And(
            now.arburst == 1, now.arsize == low, Extract(low - 1, 0, now.araddr) == 0, now.arcache == 3,
            Not(now.arid), Not(now.arlock), now.arprot == 0, now.arqos == 0),
        "bursts under way": number(then.under_way) == count + number(taken) - number(ends),
        "idle": now.idle == (count == 0),
        "order": marks(now.loads, count, then.loads, taken, takes["load"], ends),
        "a beat for fetch": now.fetched == And(good, Not(oldest)), "a beat for load": now.loaded == And(good, oldest),
        "an error": And(now.of_load == oldest, now.error == And(
            now.rvalid, Extract(1, 1, now.rresp) == 1, Not(now.abort), Not(of_ring))),
        "a beat is taken": now.rready == Or(now.abort, Not(oldest), now.ready),
    }
    for name, take in takes.items():
        payload, layout = vars(now)[f"{name}__payload"], layouts[name](params)
        address = Concat(field(payload, layout, "address"), BitVecVal(0, low))
        if name == "load":
            address = number(address, 64) + Concat(now.base, BitVecVal(0, 12))
        found[f"burst of {name}"] = Implies(take, And(
            then.araddr == address, then.arlen == number(field(payload, layout, "beats")) - 1))
    always = {"bursts": ULE(count, params.reads), "loads": unmarked(now.loads, count),
              "an address that is offered is under way": Implies(now.arvalid, count != 0)}
    if params.dispatch_ring:
        found["order of the ring"] = marks(now.rings, count, then.rings, taken, takes["ring"], ends)
        found["a beat for the ring"] = now.described == And(now.rvalid, of_ring)
        always["rings"] = unmarked(now.rings, count)
    # The bus answers what it has taken; a burst has a beat at least, and no more than there may be.
    given = [Implies(now.rvalid, If(now.arvalid, ULT(1, count), count != 0))]
    for beats in (field(vars(now)[f"{name}__payload"], layouts[name](params), "beats") for name in asks):
        given += [beats != 0, ULE(beats, params.burst)]
    return Laws(found, always, given, ("address", "length"))


@pytest.mark.parametrize("system", [ACCELERATOR, TWO, DISPATCHED], ids=["one context", "two contexts", "dispatched"])
def test_laws(system):
    step = Step.of(Reader.of(system))
    assert step.broken(laws(system, step)) == []
