# amaranth: UnusedElaboratable=no
"""Converters, the pruner and the way out in one cycle, from any state and for all inputs: as much comes out as goes in.

Their words are others than those that went in, so laws count: what was taken and not given on is held, whatever the
state; blocks leave whole and in order; what starts has room behind the pipeline, and arrives. What a memory and a
queue in them do are laws of their own (:mod:`tests.formal.test_queues`); what a word becomes is tested.
"""

import pytest
from z3 import ULE, ULT, And, If, Implies, Not, Or

from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.convert.credit_encode import CreditEncode
from rtl.convert.encode import Encode
from rtl.convert.prune import Prune
from rtl.core.credit_drain import CreditDrain
from rtl.core.drain import Drain
from tests.cases import slow, sweep
from tests.formal.prove import Laws
from tests.formal.streams import broken
from tests.formal.views import around, high, number, part

FORMAT = HBFPFormat(mantissa=4, block=(1, 4))


def moved(state, name):
    """A beat of a stream is taken."""
    return And(vars(state)[f"{name}__valid"], vars(state)[f"{name}__ready"])


def chain(state, name, count, first=1):
    """Registers behind each other by number."""
    return [vars(state)[f"{name}_{place}"] for place in range(first, first + count)]


def gathers(cut, taken, later, beats, size, blocks, moves):
    """Laws and what always holds of beats that wait until their block is complete.

    ``later``: what was taken and is not counted yet; ``moves``: the memory gives the oldest beat.
    """
    now, then = cut.step.now, cut.step.then
    views = []
    for state in (now, then):
        views.append([number(getattr(state, name)) for name in (
            "space", "known", "count", "place", "write", "read", "slot", "out_slot")])
    (space, known, counted, place, write, read, slot, out_slot), (space_then, *_) = views
    held = size - space
    held_memory = {name: vars(now)[f"held.{name}"] for name in ("w_en", "w_addr", "w_data", "r_addr", "r_en")}
    laws = {
        "what is held": size - space_then == held + number(taken) - number(moves),
        "a beat is written behind the last": And(
            held_memory["w_en"] == taken, number(held_memory["w_addr"]) == write,
            held_memory["w_data"] == now.i__payload, number(then.write) == If(taken, around(write + 1, size), write)),
        "the oldest is read": And(number(held_memory["r_addr"]) == read, Implies(moves, held_memory["r_en"]),
                                  number(then.read) == If(moves, around(read + 1, size), read)),
        "a block leaves when it is whole": Implies(moves, known != 0),
        "room": now.i__ready == (held != size),
    }
    always = {
        "beats of blocks": And(held == known * beats - place + counted + high(later), ULE(held, size),
                               ULE(known, blocks), Implies(place != 0, known != 0)),
        "places": And(ULT(read, size), ULT(write, size), write == around(read + held, size), ULT(counted, beats),
                      ULT(place, beats)),
        "exponents": And(ULT(slot, blocks), ULT(out_slot, blocks), slot == around(out_slot + known, blocks)),
    }
    return laws, always


def laws_of_encode(cut):
    """Laws of a converter that may stall."""
    now, then, params = cut.step.now, cut.step.then, cut.cell.params
    taken, given = moved(now, "i"), moved(now, "o")
    if params.beats == 1:
        held = [high([state.o__valid, *([state.there] if params.cut else [])]) for state in (now, then)]
        return Laws({"what is held": held[1] == held[0] + number(taken) - number(given)}, {}, cut.given, None)
    size = params.beats + (params.spare or params.beats)
    moves = And(now.advance, now.known != 0)
    laws, always = gathers(cut, taken, [], params.beats, size, 2, moves)
    held = [high([state.o__valid, state.there]) for state in (now, then)]
    laws["what is under way"] = held[1] == held[0] + number(moves) - number(given)
    return Laws(laws, always, cut.given, None)


def laws_of_credit_encode(cut):
    """Laws of a converter that never stalls: what starts has room, and arrives."""
    now, then, params = cut.step.now, cut.step.then, cut.cell.params
    taken, starts = moved(now, "i"), vars(now)["queue.starts"]
    arrives = params.through
    chains = [chain(state, "there", params.search + 1 if params.beats == 1 else 1) + chain(state, "arrives", arrives)
              for state in (now, then)]
    found = {
        "what starts has room": Implies(starts, vars(now)["queue.room"]),
        "what starts arrives": high(chains[1]) == high(chains[0]) + number(starts) - number(vars(now)["queue.w_en"]),
        "in its turn": And(*(late == early for late, early in zip(chains[1][1:], chains[0], strict=False))),
    }
    always = {}
    if params.beats == 1:
        found["each is taken as it starts"] = taken == starts
    else:
        size = 2 * params.beats + params.search + 1
        more, always = gathers(cut, taken, chain(now, "taken", params.search), params.beats, size,
                               -(-size // params.beats), starts)
        found |= more
    return Laws(found, always, cut.given, None)


def laws_of_prune(cut):
    """Laws of the pruner: one beat is held, and each number is as it came, or +0."""
    now, then = cut.step.now, cut.step.then
    taken = moved(now, "i")
    return Laws({
        "what is held": number(then.o__valid) == number(now.o__valid) + number(taken) - number(moved(now, "o")),
        "numbers": Implies(taken, And(*(Or(part(then.o__payload, 32, lane) == part(now.i__payload, 32, lane),
                                           part(then.o__payload, 32, lane) == 0)
                                        for lane in range(cut.cell.params.lanes))))}, {}, cut.given, None)


def commands(cut, leaves, reads, busy):
    """Laws and what always holds of the commands that a way out empties, each row by row; and what inputs keep to.

    ``leaves``: its last row is read; ``reads``: a row is; ``busy``: one is being read.
    """
    now, then = cut.step.now, cut.step.then
    current = now.current
    rows = number(If(current, now.rows_1, now.rows_0))
    free, complete, done = ([part(getattr(now, name), 1, bank) == 1 for bank in range(2)] for name in (
        "free", "complete", "done"))
    begins = [And(now.begins, now.bank == bool(bank)) for bank in range(2)]
    row, depth = number(now.row), cut.cell.params.depth    # which is a power of two
    found = {
        "rows in their order": number(then.row) == If(now.start, 0, If(reads, row + 1 & depth - 1, row)),
        "the last one": Implies(reads, now.last == (row + 1 == rows)),
        "commands in turns": then.current == (current != leaves),
        "a command is read once": Implies(now.start, And(Not(now.reading), Or(*(
            And(current == bool(bank), complete[bank]) for bank in range(2))))),
    }
    always = {
        "a row that there is": Implies(busy, ULT(row, rows)),
        "what is read is complete": Implies(Or(now.reading, busy), If(current, complete[1], complete[0])),
        "a bank is free or complete": And(*(Not(And(*each)) for each in zip(free, complete, strict=True))),
        "a command has rows": And(*(Or(free[bank], And(kept != 0, ULE(number(kept), depth)))
                                    for bank, kept in enumerate((now.rows_0, now.rows_1)))),
    }
    # A command begins in a free bank, and has rows; what is complete has begun.
    given = [Implies(begins[bank], And(free[bank], now.rows != 0, ULE(number(now.rows), depth)))
             for bank in range(2)]
    given += [Implies(done[bank], Not(Or(free[bank], complete[bank]))) for bank in range(2)]
    return found, always, given


def laws_of_credit_drain(cut):
    """Laws of the way out of a core with registers."""
    now, then, params = cut.step.now, cut.step.then, cut.cell.params
    starts = vars(now)["queue.starts"]
    chains, lasts = ([chain(state, name, params.apart) for state in (now, then)] for name in ("valid", "last"))
    found, always, given = commands(cut, now.leaves, starts, And(now.reading, Not(now.over)))
    freed = [part(now.freed, 1, bank) == 1 for bank in range(2)]
    found |= {
        "what starts has room": Implies(starts, vars(now)["queue.room"]),
        "what starts arrives": And(chains[1][0] == starts, vars(now)["queue.w_en"] == chains[0][-1], *(
            late == early for late, early in zip(chains[1][1:], chains[0], strict=False))),
        "with the mark of the last": And(lasts[1][0] == now.last, *(
            late == early for late, early in zip(lasts[1][1:], lasts[0], strict=False))),
        "a row is asked for": And(then.read__0__en == starts, Implies(starts, then.read__0__address == now.row)),
        "a bank is free again": And(*(
            (part(then.free, 1, bank) == 1) == Or(freed[bank], And(part(now.free, 1, bank) == 1, Not(And(
                now.begins, now.bank == bool(bank))))) for bank in range(2))),
    }
    always["what was read is not complete, and not free yet"] = now.freed & (now.free | now.complete) == 0
    given += [Implies(freed[bank], part(now.done, 1, bank) == 0) for bank in range(2)]
    return Laws(found, always, cut.given + given, None)


def laws_of_drain(cut):
    """Laws of a way out that may stall."""
    now, then, params = cut.step.now, cut.step.then, cut.cell.params
    stages = params.latency - 2 if params.side else 1
    valid, last = ([chain(state, name, stages, 0) for state in (now, then)] for name in ("valid", "last"))
    reads = And(now.reading, now.move)
    found, always, given = commands(cut, now.leaves, reads, now.reading)
    found |= {
        "what is held": high(valid[1]) == high(valid[0]) + number(reads) - number(moved(now, "o")),
        "a row goes on": Implies(now.move, And(valid[1][0] == now.reading, last[1][0] == now.last, *(
            late == early for flags in (valid, last) for late, early in zip(flags[1][1:], flags[0], strict=False)))),
        "what stalls stays": Implies(Not(now.move), And(*(
            late == early for flags in (valid, last) for late, early in zip(*reversed(flags), strict=True)))),
        "a row is offered": now.o__valid == valid[0][-1],
        "a row is asked for": And(now.read__0__en == now.move, now.read__0__address == now.row),
    }
    held = valid[0][0]
    always |= {"what is held is complete": Implies(held, If(now.current, part(now.complete, 1, 1) == 1,
                                                            part(now.complete, 1, 0) == 1)),
               "it is the last, or more are read": Implies(held, last[0][0] != now.reading)}
    return Laws(found, always, cut.given + given, None)


@pytest.mark.parametrize("beats, cut", sweep(2, [(1, False), (2, False), (4, False), (1, True)]))
def test_converter(beats, cut):
    assert not broken(Encode(FORMAT, 2, beats, cut), laws_of_encode)


@pytest.mark.parametrize("beats, search, lane", sweep(2, [(1, 0, 0), (2, 1, 1), (1, 3, 1), (4, 0, 0), (3, 2, 0)]))
def test_converter_with_credits(beats, search, lane):
    assert not broken(CreditEncode(FORMAT, 2, beats, 0, search, lane), laws_of_credit_encode)


def test_pruner():
    assert not broken(Prune(4, 2, 4), laws_of_prune)


@pytest.mark.parametrize("options", [{}, slow({"banks": 1}), slow({"pipeline": 1, "banks": 1}), {"pipeline": 1},
                                     slow({"pipeline": 4}), slow({"format": HBFPFormat(block=(1, 8)), "share": 2})],
                         ids=str)
def test_way_out(options):
    design = Design(**{"rows": 4, "cols": 2, "depth": 4, "format": FORMAT} | options)
    kind, laws = (CreditDrain, laws_of_credit_drain) if design.pipeline else (Drain, laws_of_drain)
    assert not broken(kind.of(design), laws)
