"""Loads in one cycle, from any state and for all inputs: bursts that are asked for, and where their beats go."""

import pytest
from z3 import UGE, ULE, ULT, And, BitVecVal, Extract, If, Implies, Not, Or

from hbfp.isa.instructions import Memory
from rtl.accelerator.load import Load, request_layout
from rtl.accelerator.walk import Walk, piece_layout
from tests.cosim.accelerator.built import ACCELERATOR, TWO
from tests.formal.prove import Laws, Step
from tests.formal.test_walk import KEPT
from tests.formal.views import Fields, Queue, always_of_pieces, chosen, joined, number, part


def laws(system, step):
    """Laws of an accelerator's load; those of its walk are apart (:mod:`tests.formal.test_walk`)."""
    params, now, then = Load.of(system).params, step.now, step.then
    lanes, packed, low = params.lanes, params.packed, (params.lanes - 1).bit_length()
    layout = piece_layout(Walk.Parameters.load(params))
    walk = {name: vars(now)[f"walk.{name}"] for name in ("o__valid", "o__ready", "o__payload", "address", "begins",
                                                         "misaligned", "outside")}
    offered, asked = Fields(walk["o__payload"], layout), Fields(now.request__payload, request_layout(params))
    pieces, later = (Queue(state, "pieces.", params.reads) for state in (now, then))
    room = ULT(pieces.length, params.reads)
    piece, beat, step_ = Fields(pieces.head, layout), now.beat__payload, number(now.step)
    valid = And(now.beat__valid, pieces.valid)
    taken = And(now.beat__valid, now.beat__ready)
    ends = step_ + 1 == number(piece.beats)
    place = number(piece.index) + step_    # of the beat in its record, or run
    to = {memory: And(valid, piece.memory == memory) for memory in Memory}
    found = {
        "a burst is asked for": And(
            now.request__valid == And(walk["o__valid"], room), walk["o__ready"] == And(now.request__ready, room),
            asked.address == walk["address"], asked.beats == offered.beats, asked.last == offered.last),
        "what the walk says": And(now.begins == walk["begins"], now.misaligned == walk["misaligned"],
                                  now.outside == walk["outside"], Not(now.fault)),
        "beats of a burst": number(then.step) == If(taken, If(ends, BitVecVal(0, 8), step_ + 1), step_),
        "done": now.done == And(taken, ends, piece.last),
    } | {f"pieces: {name}": law for name, law in pieces.becomes(
        later, And(walk["o__valid"], now.request__ready, room), walk["o__payload"], And(taken, ends)).items()}

    # V: words; and of a run's numbers those in this beat, from `first` on, in the word that begins it or the next.
    into = number(piece.place) & lanes - 1
    rest = lanes - number(piece.lane)
    first = If(place == 0, BitVecVal(0, 8), rest)
    stop = If(And(place == 0, ULT(rest, number(piece.run))), rest, number(piece.run))
    upper = Or(now.second, UGE(into + first, lanes))
    straddles = And(piece.elements, Not(upper), UGE(into + stop, lanes + 1))
    word = If(upper, BitVecVal(lanes, 8), BitVecVal(0, 8))
    numbers = [(lane, n, And(ULE(first, n), ULT(BitVecVal(n, 8), stop), into + n == word + lane))
               for lane in range(lanes) for n in range(lanes)]
    column = [part(beat, 32, n) for n in range(lanes)]
    found |= {
        "V": now.v__en == to[Memory.V],
        "words of V": Implies(And(to[Memory.V], Not(piece.elements)), And(
            now.v__addr == number(piece.place, 18) + number(now.step, 18), now.v__data == beat,
            now.v__mask == (1 << lanes) - 1)),
        "where a run goes": Implies(And(to[Memory.V], piece.elements), And(
            now.v__addr == Extract(low + 17, low, piece.place) + number(upper, 18),
            *(part(now.v__mask, 1, lane) == If(Or(*(hit for lane_, _, hit in numbers if lane_ == lane)),
                                               BitVecVal(1, 1), BitVecVal(0, 1)) for lane in range(lanes)))),
        "numbers of a run": Implies(And(to[Memory.V], piece.elements), And(*(Implies(
            hit, part(now.v__data, 32, lane) == chosen(column, number(piece.lane) + n & lanes - 1))
            for lane, n, hit in numbers))),
        "a run that goes on": then.second == If(And(now.v__en, now.v__grant), straddles, now.second),
    } if len(column) else {}

    # W: rows of mantissas, side by side, then exponents; P: instructions.
    scales = place == params.record_beats - 1 if params.exponent else False
    size = 32 // packed
    rows = joined([part(beat, size, n, params.mantissa) for n in range(lanes * packed)])
    found |= {
        "W": And(now.w__en == And(to[Memory.W], Not(scales)), Implies(now.w__en, And(
            now.w__addr == number(piece.place, 18) + number(place, 18) * packed, now.w__data == rows,
            now.w__mask == (1 << packed) - 1))),
        "P": And(now.p__en == to[Memory.P], Implies(now.p__en, And(
            now.p__addr == number(piece.place, 18) + number(now.step, 18), now.p__data == beat))),
        "a beat is taken": now.beat__ready == And(pieces.valid, chosen([
            And(now.v__grant, Not(straddles)),
            If(scales, now.w_scales__grant, now.w__grant) if params.exponent else now.w__grant, now.p__grant],
            piece.memory)),
    }
    if params.exponent:
        exponents = [part(beat, 16, n, params.exponent) for n in range(lanes)]
        found["exponents"] = And(now.w_scales__en == And(to[Memory.W], scales), Implies(now.w_scales__en, And(
            now.w_scales__addr == number(piece.place, 18),
            now.w_scales__data == joined([*exponents, *(part(beat, 1, 16 * n + 15) for n in range(lanes))]))))

    def legal(word):
        """What the walk gives: a burst has beats, and ends with its record or run at the latest."""
        own = Fields(word, layout)
        beats = number(own.beats)
        return And(beats != 0, ULE(beats, params.burst), ULE(own.memory, 2), Implies(
            own.memory == Memory.W, ULE(beats + number(own.index), params.record_beats)), Implies(own.elements, And(
            own.memory == Memory.V, ULE(number(own.run), lanes), ULE(beats + number(own.index), 2))))
    return Laws(found, always_of_pieces(pieces, legal, piece.beats, step_),
                [Implies(walk["o__valid"], legal(walk["o__payload"]))], tuple(f"walk.{name}" for name in KEPT))


@pytest.mark.parametrize("system", [ACCELERATOR, TWO], ids=["one context", "two contexts"])
def test_laws(system):
    step = Step.of(Load.of(system))
    assert step.broken(laws(system, step)) == []
