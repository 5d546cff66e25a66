# amaranth: UnusedElaboratable=no
"""A ring of descriptors in one cycle, from any state and for all inputs: stamps, jobs, bursts, and what is refused.

It never gives on what has no room, and never while something else starts.
"""

from dataclasses import replace

import pytest
from amaranth import Module, Signal
from amaranth.lib.wiring import Component, In, Out
from z3 import UGE, UGT, ULE, ULT, And, BitVecVal, Concat, Extract, If, Implies, LShR, Not, Or, RotateLeft

from hbfp.isa.descriptors import CHUNK, LEAST, SEED, Refusal
from rtl.accelerator.reader import fetch_layout
from rtl.accelerator.ring import GAP, Ring, descriptor_layout, ring_layout
from tests.cosim.accelerator.built import DISPATCHED
from tests.formal.prove import Laws, Step, reachable
from tests.formal.views import Fields, chosen, first, inner, number, part

PLACES, JOB = 2, 2
#: Bits of numbers that do not wrap.
WIDE = 64


def laws(system, step):
    """Laws of an accelerator's ring."""
    params, now, then = Ring.of(system).params, step.now, step.then
    settings, low = Fields(now.ring, ring_layout()), (params.beat - 1).bit_length()
    chunk, places = min(CHUNK, params.burst), params.dispatch
    there = UGE(Extract(3, 0, settings.ring_size), LEAST)
    size = number(Extract(3, 0, settings.ring_size), WIDE)

    # Those that the host has told of are stamped, as far as there is room.
    waiting, tail = now.stamped - now.head, Extract(15, 0, settings.ring_tail)
    stamps = And(there, now.stamped != tail, ULT(number(waiting, WIDE), number(now.room, WIDE)))
    kept, later = ([vars(state)[f"stamps.contents[{place}]"] for place in range(places)] for state in (now, then))
    place = number(now.stamped) & places - 1
    read = number(now.head) + number(now.came) & places - 1
    found = {
        "stamped": then.stamped == now.stamped + If(stamps, BitVecVal(1, 16), 0),
        "stamps": And(*(after == If(And(stamps, place == n), now.clock, before)
                        for n, (before, after) in enumerate(zip(kept, later, strict=True)))),
        "a stamp with its descriptor": And(now.arrived == vars(now)["stamps.r_data"], Implies(
            now.valid, then.arrived == chosen(kept, read)), Implies(Not(now.valid), then.arrived == now.arrived)),
    }

    # Jobs: while the machine is free, of what is stamped, one behind the other.
    most = If(ULT(number(waiting, WIDE), params.requests), number(waiting), BitVecVal(params.requests, 8))
    busy = Or(now.to_come != 0, now.came)
    due = And(there, now.attached, most != 0, Not(stamps), now.gap == 0, Not(busy))
    begins = And(due, now.free, Not(now.starting))
    asks = And(now.request__valid, now.request__ready)
    burst = Fields(now.request__payload, fetch_layout(params))
    to_ask, beats, asked = number(now.to_ask), number(burst.beats), number(now.asked, WIDE)
    to_border = chunk - (number(now.asked) & chunk - 1)
    found |= {
        "there is a ring": now.on == Or(there, busy), "nothing is chosen": now.holds == Or(due, busy),
        "what is to come": number(then.to_come) == If(begins, most, number(now.to_come) - number(now.valid)),
        "what is to be asked for": number(then.to_ask) == If(begins, most, to_ask - If(asks, beats, 0)),
        "what was asked for": then.asked == now.asked + If(asks, number(beats, 16), 0),
        "a descriptor comes": And(then.came == now.valid, then.head == now.head + number(now.came, 16)),
        "others may be chosen between jobs": number(then.gap) == If(
            And(now.came, now.to_come == 0), BitVecVal(GAP, 8), If(now.gap == 0, 0, number(now.gap) - 1)),
        "a burst": Implies(to_ask != 0, And(beats != 0, ULE(beats, to_ask), ULE(beats, to_border),
                                            Or(beats == to_ask, beats == to_border))),
        "a burst is asked for": now.request__valid == (to_ask != 0),
    }
    # A descriptor lies at its number, modulo the places of the ring, behind the ring's first beat.
    base = LShR(Concat(settings.ring_high, settings.ring_low), low)
    inside = (BitVecVal(1, WIDE) << size) - 1
    found["where"] = Implies(there, number(burst.address, WIDE) == base & ~inside | asked & inside)

    # What has come: whether it is a request.
    words, failed = now.kept, inner(now, "failed")
    descriptor, lies = Fields(now.descriptor, descriptor_layout()), Fields(words, descriptor_layout())
    check = now.head ^ SEED
    for half in range(6):
        own = part(words, 16, half)
        for turns in (0, 1, 3 + half):
            check = check ^ RotateLeft(own, turns)
    bounds = [number(value, WIDE) & -params.beat for value in (settings.ring_first, settings.ring_last)]
    outside = [Or(ULT(each, bounds[0]), UGT(each, bounds[1])) for each in (
        number(value, WIDE) & -params.beat for value in (lies.input, lies.output))]
    refused = {Refusal.BUS: failed, Refusal.CHECK: lies.check != check, Refusal.RESERVED: lies.reserved != 0,
               Refusal.MISALIGNED: (lies.input | lies.output) & params.beat - 1 != 0, Refusal.OUTSIDE: Or(*outside)}
    why = first([(refused[cause], BitVecVal(int(cause), 3)) for cause in sorted(refused)], BitVecVal(0, 3))
    found |= {
        "what came": And(then.kept == If(now.valid, now.data, now.kept),
                         inner(then, "failed") == If(now.valid, now.failed, failed)),
        "a descriptor": And(*(getattr(descriptor, name) == getattr(lies, name)
                              for name in ("input", "output", "check", "reserved")),
                            descriptor.tag == If(failed, number(now.head, 32), lies.tag)),
        "why it is refused": now.why == why, "a request": now.good == And(now.came, why == 0),
        "it is refused": now.refused == And(now.came, why != 0),
    }
    always = {"a job": And(ULE(number(now.to_come), params.requests), ULE(to_ask, number(now.to_come))),
              "gap": ULE(number(now.gap), GAP)}
    # What comes was asked for.
    given = [Implies(now.valid, ULT(to_ask, number(now.to_come)))]
    return Laws(found, always, given, ("kept", *(name for name in vars(now) if name.startswith("failed$"))))


def test_laws():
    system = replace(DISPATCHED, dispatch=8, burst=2)
    step = Step.of(Ring.of(system))
    assert step.broken(laws(system, step)) == []


class Watched(Component):
    """A ring whose host, bus and dispatcher do as they like; ``lost``: something is given on without room, or nobody
    has asked for it, or a start and a job are under way at once. ``careless``: there is always room."""

    def __init__(self, careless=False):
        self.careless = careless
        super().__init__({"tail": In(16), "free": In(1), "starts": In(1), "comes": In(1), "ready": In(1),
                          "takes": In(1), "data": In(128), "failed": In(1), "lost": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = Ring(lanes=4, burst=2, dispatch=PLACES, requests=JOB)
        owed, under_way, offered = Signal(4), Signal(4), Signal()
        told = ring.good | ring.refused
        comes = self.comes & under_way.any()
        asks = ring.request.valid & self.ready
        m.d.comb += [
            ring.ring.ring_size.eq(4), ring.ring.ring_last.eq(-1), ring.ring.ring_tail.eq(self.tail),
            ring.attached.eq(1), ring.free.eq(self.free), ring.starting.eq(offered), ring.request.ready.eq(self.ready),
            ring.room.eq(PLACES if self.careless else PLACES - owed), ring.valid.eq(comes), ring.data.eq(self.data),
            ring.failed.eq(self.failed),
            self.lost.eq((told & (owed == PLACES)) | (ring.good & ring.refused) | (offered & under_way.any())),
        ]
        m.d.sync += [
            owed.eq(owed + told - (self.takes & owed.any())),
            under_way.eq(under_way - comes),
            # Whatever it would choose, the dispatcher chooses nothing while it is held; a start lasts until free.
            offered.eq((offered & ~self.free) | (self.starts & ~ring.holds & ~offered)),
        ]
        with m.If(asks):
            m.d.sync += under_way.eq(under_way + ring.request.payload.beats - comes)
        return m


@pytest.mark.slow
def test_what_is_given_on_has_room():
    assert not reachable(Watched(), "a ring of descriptors", "lost", 40)


@pytest.mark.slow
def test_it_would_be_found():
    assert reachable(Watched(careless=True), "a ring that always has room", "lost", 20)
