# amaranth: UnusedElaboratable=no
"""Queues in one cycle, from any state and for all inputs: no word is lost, none comes twice, and their order is kept.

What the docstrings of :class:`rtl.lib.fifo.Fifo` and :class:`rtl.lib.credits.CreditQueue` promise. A queue is the list
of its words, the oldest first: in a cycle the first leaves if it is taken, and one that comes is put behind the last.
So each word that went in comes out once, as it was, behind those that went in before it, whatever the numbers.
"""

import pytest
from z3 import UGT, ULE, ULT, And, BitVecVal, If, Implies, Not, Or

from rtl.lib.credits import CreditQueue
from rtl.lib.fifo import Fifo
from tests.cases import sweep
from tests.formal.prove import Laws, Step
from tests.formal.views import Queue, around, chosen, number, part


def laws_of_fifo(params, step):
    """Laws of a queue."""
    now, then = step.now, step.then
    queue, later = (Queue(state, "", params.depth) for state in (now, then))
    push, pop = And(now.i__valid, now.i__ready), And(now.o__valid, now.o__ready)
    found = {
        "room": now.i__ready == ULT(queue.length, params.depth), "empty": now.empty == (queue.length == 0),
        "the oldest is offered": Implies(now.o__valid, now.o__payload == queue.words[0]),
    } | queue.becomes(later, push, now.i__payload, pop)
    return Laws(found, {"queue": queue.sound})


def laws_of_credits(params, step):
    """Laws of a queue with credits; how many words are on their way to it is what credits do not account for."""
    now, then, depth = step.now, step.then, params.depth
    views = []
    for state in (now, then):
        contents = [vars(state)[f"memory.contents[{place}]"] for place in range(depth)]
        first, waiting, valid = number(state.first), number(state.waiting), state.o__valid
        rest = [chosen(contents, around(first + place, depth)) for place in range(depth)]
        words = [If(valid, one, two) for one, two in zip([state.o__payload, *rest], [*rest, state.o__payload],
                                                         strict=True)]
        views.append((contents, words[:depth], waiting + number(valid)))
    (contents, words, length), (later, then_words, then_length) = views
    first, free, waiting = number(now.first), number(now.free), number(now.waiting)
    credits_, back = number(now.credits), number(now.back)
    on_way = depth - credits_ - back - length
    pushes = [part(now.w_en, 1, each) == 1 for each in range(params.parts)] if params.parts > 1 else [now.w_en]
    push, pop = pushes[-1], And(now.o__valid, now.o__ready)
    size = params.width // params.parts
    rest = length - number(pop)
    found = {
        "count": then_length == rest + number(push),
        "what waits": And(*(Implies(ULT(BitVecVal(place, 8), rest), then_words[place] == If(
            pop, words[place + 1], word) if place + 1 < depth else then_words[place] == word)
            for place, word in enumerate(words))),
        "parts of a word": And(*(Implies(free == place, And(*(part(later[place], size, each) == If(
            pushes[each], part(now.w_data, size, each), part(contents[place], size, each))
            for each in range(params.parts)))) for place in range(depth))),
        "what comes": Implies(push, chosen(then_words, rest) == chosen(later, free)),
        "the oldest is offered": Implies(And(length != 0, Or(Not(now.o__valid), pop), waiting != 0), then.o__valid),
        "on its way": depth - number(then.credits) - number(then.back) - then_length == (
            on_way + number(now.starts) - number(push)),
        "room comes back": then.back == pop,
    }
    always = {
        "places": And(ULT(first, depth), ULT(free, depth), free == around(first + waiting, depth)),
        "all have a credit": And(ULE(credits_, depth), ULE(credits_ + back + length, depth), ULE(waiting, depth)),
        "some wait": now.behind == (waiting != 0), "room": Implies(now.room, UGT(credits_, 0)),
    }
    # A word starts while there is room; what arrives has started.
    given = [Implies(now.starts, now.room), Implies(push, on_way != 0)]
    return Laws(found, always, given)


@pytest.mark.parametrize("depth, width", sweep(2, [(2, 1), (3, 4), (4, 32), (5, 3), (8, 16)]))
def test_fifo(depth, width):
    queue = Fifo(depth, width)
    step = Step.of(queue)
    assert step.broken(laws_of_fifo(queue.params, step)) == []


@pytest.mark.parametrize("depth, width, parts", sweep(2, [(2, 2, 1), (3, 4, 2), (5, 8, 1), (6, 4, 1), (7, 6, 2)]))
def test_queue_with_credits(depth, width, parts):
    queue = CreditQueue(depth, width, parts)
    step = Step.of(queue)
    assert step.broken(laws_of_credits(queue.params, step)) == []
