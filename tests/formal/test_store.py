"""Stores in one cycle, from any state and for all inputs: bursts that are announced, and the beats that follow them."""

import pytest
from z3 import ULE, ULT, And, BitVecVal, If, Implies, Not, Or

from rtl.accelerator.load import request_layout
from rtl.accelerator.store import PIECES, Store, beat_layout
from rtl.accelerator.walk import Walk, piece_layout
from tests.cosim.accelerator.built import ACCELERATOR, TWO
from tests.formal.prove import Laws, Step
from tests.formal.test_walk import KEPT
from tests.formal.views import Fields, Queue, always_of_pieces, number, part


def laws(system, step):
    """Laws of an accelerator's store; those of its walk are apart (:mod:`tests.formal.test_walk`)."""
    params, now, then = Store.of(system).params, step.now, step.then
    lanes, layout = params.lanes, piece_layout(Walk.Parameters.store(params))
    walk = {name: vars(now)[f"walk.{name}"] for name in ("o__valid", "o__ready", "o__payload", "address", "begins",
                                                         "misaligned", "outside")}
    offered, asked = Fields(walk["o__payload"], layout), Fields(now.request__payload, request_layout(params))
    pieces, later = (Queue(state, "pieces.", PIECES) for state in (now, then))
    room = ULT(pieces.length, PIECES)
    piece, step_, beat = Fields(pieces.head, layout), number(now.step), Fields(then.beat__payload, beat_layout(params))
    reads = And(now.v__en, now.v__grant)
    ends = step_ + 1 == number(piece.beats)
    # The numbers of a run in this beat, of the two that it may have.
    second = BitVecVal(lanes, 8) * (number(piece.index) + step_ & 1)
    numbers = [(lane, n, And(ULT(BitVecVal(n, 8), number(piece.run)), number(piece.lane) + n == second + lane))
               for lane in range(lanes) for n in range(lanes)]
    found = {
        "a burst is asked for": And(
            now.request__valid == And(walk["o__valid"], room), walk["o__ready"] == And(now.request__ready, room),
            asked.address == walk["address"], asked.beats == offered.beats, asked.last == offered.last),
        "what the walk says": And(now.begins == walk["begins"], now.misaligned == walk["misaligned"],
                                  now.outside == walk["outside"], Not(now.fault), now.done == now.written),
        "V": And(now.v__en == And(pieces.valid, now.room), Implies(now.v__en, now.v__addr == number(
            piece.place, 18) + If(piece.elements, 0, number(now.step, 18)))),
        "beats of a burst": number(then.step) == If(reads, If(ends, BitVecVal(0, 8), step_ + 1), step_),
        "a word that is read goes on": then.beat__valid == reads,
        "words": Implies(And(reads, Not(piece.elements)), And(
            beat.data == then.v__data, beat.lanes == (1 << lanes) - 1)),
        "where a run goes": Implies(And(reads, piece.elements), And(*(part(beat.lanes, 1, lane) == If(
            Or(*(hit for lane_, _, hit in numbers if lane_ == lane)), BitVecVal(1, 1), BitVecVal(0, 1))
            for lane in range(lanes)))),
        "numbers of a run": Implies(And(reads, piece.elements), And(*(Implies(
            hit, part(beat.data, 32, lane) == part(then.v__data, 32, n)) for lane, n, hit in numbers))),
    } | {f"pieces: {name}": law for name, law in pieces.becomes(
        later, And(walk["o__valid"], now.request__ready, room), walk["o__payload"], And(reads, ends)).items()}

    def legal(word):
        """What the walk gives: a burst has beats."""
        own = Fields(word, layout)
        return And(number(own.beats) != 0, ULE(number(own.beats), params.burst), Implies(
            own.elements, ULE(number(own.run), lanes)))
    return Laws(found, always_of_pieces(pieces, legal, piece.beats, step_),
                [Implies(walk["o__valid"], legal(walk["o__payload"]))], tuple(f"walk.{name}" for name in KEPT))


@pytest.mark.parametrize("system", [ACCELERATOR, TWO], ids=["one context", "two contexts"])
def test_laws(system):
    step = Step.of(Store.of(system))
    assert step.broken(laws(system, step)) == []
