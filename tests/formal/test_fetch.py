"""Fetch in one cycle, from any state and for all inputs: bursts of a program, and its instructions in their order."""

from dataclasses import replace

import pytest
from z3 import UGE, ULE, ULT, And, BitVecVal, Extract, If, Implies, LShR, Not, Or

from hbfp.isa.instructions import BYTES
from rtl.accelerator.fetch import AHEAD, CHUNK, Fetch
from rtl.accelerator.reader import fetch_layout
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED
from tests.formal.prove import Laws, Step
from tests.formal.views import Queue, field, joined, number

#: The same with beats of two instructions.
BROAD = replace(DISPATCHED, core=replace(DISPATCHED.core, rows=32, cols=32), **{
    f"{memory}_words": 512 for memory in "xwvp"})


def laws(system, step):
    """Laws of an accelerator's fetch."""
    params, now, then = Fetch.of(system).params, step.now, step.then
    bits, low = 8 * params.beat, (params.beat - 1).bit_length()
    pair, parts = params.beat > BYTES, max(1, BYTES // params.beat)    # two instructions a beat; beats of one
    depth = AHEAD // (1 + pair)
    chunk = min(CHUNK * BYTES // params.beat, params.burst)
    queue, later = (Queue(state, "", depth, depth + 1) for state in (now, then))
    left, free = number(now.left, 64), number(now.free)
    part = number(now.part)
    to_border = chunk - (now.address & chunk - 1)
    beats = If(ULT(left, number(to_border, 64)), left, number(to_border, 64))
    asked, layout = And(now.request__valid, now.request__ready), fetch_layout(params)
    taken = And(queue.valid, now.o__ready)
    second = now.half if pair else True
    pops = And(taken, second)
    reads = And(queue.behind != 0, Or(pops, Not(queue.valid)))
    whole = And(now.valid, part == parts - 1)
    skipped = number(now.place, 64) if params.contexts > 1 else BitVecVal(0, 64)
    count = number(now.instructions, 64)
    count, skipped = (LShR(count + 1, 1), LShR(skipped, 1)) if pair else (count * parts, skipped * parts)
    address = number(Extract(63, low, now.origin), 64)
    found = {
        "it begins": then.began,
        "where": Implies(Not(now.began), And(then.address == Extract(63 - low, 0, address + skipped),
                                             then.left == Extract(32, 0, count - skipped))),
        "a burst is asked for": now.request__valid == And(now.began, left != 0, UGE(free, chunk)),
        "burst": And(field(now.request__payload, layout, "address") == now.address,
                     number(field(now.request__payload, layout, "beats"), 64) == beats),
        "what is left": Implies(now.began, And(
            then.address == now.address + If(asked, Extract(63 - low, 0, beats), 0),
            number(then.left, 64) == left - If(asked, beats, 0))),
        "room": number(then.free) == free - If(asked, Extract(7, 0, beats), 0) + If(reads, BitVecVal(parts, 8), 0),
        "a beat has its place": And(*(after == joined([
            If(And(now.valid, queue.free == place, part == n), now.data, Extract(bits * n + bits - 1, bits * n, before))
            for n in range(parts)]) for place, (before, after) in enumerate(zip(
                queue.contents, later.contents, strict=True)))),
        "an instruction": And(now.o__valid == queue.valid, Implies(queue.valid, now.o__payload == (
            If(now.half, Extract(1023, 512, queue.head), Extract(511, 0, queue.head)) if pair else queue.head))),
    } | {f"instructions: {name}": law for name, law in queue.turns(later, whole, pops).items()}
    found["part"] = number(then.part) == If(now.valid, If(whole, BitVecVal(0, 8), part + 1), part)
    if pair:
        first = Extract(0, 0, now.place) == 1 if params.contexts > 1 else now.half
        found["half"] = then.half == If(now.began, If(taken, Not(now.half), now.half), If(taken, Not(now.half), first))
    held = queue.behind * parts + part + free
    always = {"queue": queue.sound, "parts": ULT(part, parts), "room": And(ULE(free, depth * parts), ULE(
        held, depth * parts))}
    # What comes was asked for.
    return Laws(found, always, [Implies(now.valid, ULT(held, depth * parts))], ("address", "left"))


@pytest.mark.parametrize("system", [ACCELERATOR, BROAD], ids=["one context", "two in a beat"])
def test_laws(system):
    step = Step.of(Fetch.of(system))
    assert step.broken(laws(system, step)) == []
