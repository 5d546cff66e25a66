"""Decode in one cycle, for all words: what its queues are given, and what walks of loads and stores rely on.

Of a LOAD or a STORE: counts are not 0, runs have numbers and no more than a word, and memory, argument and request are
ones that there are. Queues are hollow; that they keep what they are given is a law of theirs.
"""

import pytest
from z3 import ULT, And, Extract, Implies, Not, Or

from hbfp.isa.instructions import Unit
from rtl.accelerator.issue import HOLDING, Issue
from rtl.accelerator.layouts import instruction_layout
from rtl.accelerator.queue import NUMBER_BITS, Queue
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED
from tests.formal import test_walk
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, number


def laws(system, step):
    """Laws of an accelerator's decode."""
    params, now, then = Issue.of(system).params, step.now, step.then
    gives = {unit: vars(now)[f"queue_{unit.name.lower()}.i__valid"] for unit in Unit}
    rooms = {unit: vars(now)[f"queue_{unit.name.lower()}.i__ready"] for unit in Unit}
    found = {
        "nothing is decoded beyond the program": Implies(And(now.takes, ULT(now.instructions, 1 << NUMBER_BITS)),
                                                         number(now.place, 32) != now.instructions),
        "a word goes into one queue": And(*(Not(And(gives[one], gives[other]))
                                            for one in Unit for other in Unit if one < other)),
        "what a queue is given has a number of its own": And(*(Implies(And(gives[unit], rooms[unit]), now.takes)
                                                               for unit in Unit)),
        "nothing behind an end, or an error": Implies(Or(now.halt, now.illegal, now.beyond), Not(Or(
            now.takes, *gives.values()))),
        "an end stays": Implies(now.halt, And(then.halt, Not(now.illegal), Not(now.beyond))),
    }
    for unit in HOLDING:
        layout, walk = instruction_layout(unit, params.extras), test_walk.walk_of(system, unit == Unit.LOAD).params
        entry = vars(now)[f"queue_{unit.name.lower()}.i__payload"]
        fields, nop = Fields(Extract(layout.size - 1, 0, entry), layout), Extract(layout.size, layout.size, entry) == 1
        found[f"{unit.name}: legal"] = Implies(And(gives[unit], Not(nop)), And(*test_walk.legal(
            fields, walk, unit == Unit.LOAD)))
    return Laws(found)


@pytest.mark.parametrize("system", [pytest.param(ACCELERATOR, id="one context", marks=pytest.mark.slow),
                                    pytest.param(DISPATCHED, id="dispatched")])
def test_laws(system):
    step = Step.of(Issue.of(system), [Queue])
    assert step.broken(laws(system, step)) == []
