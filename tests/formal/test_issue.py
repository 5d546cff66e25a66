"""Decode in one cycle, for all words: what its queues are given and give, and what walks of loads and stores rely on.

A word goes on when its queue has room, its fields where the table of the instruction set has them. Of a LOAD or a
STORE: counts are not 0, runs have numbers and no more than a word, and memory, argument and request are ones that there
are. Queues are hollow; that they keep what they are given is a law of theirs.
"""

import pytest
from z3 import ULT, And, Extract, If, Implies, Not, Or

from hbfp.isa.instructions import COUNT_BITS, ENDS, FIELDS, HEADER, WAITS, Opcode, Unit, width
from rtl.accelerator.fields import held_fields, offered_fields
from rtl.accelerator.issue import HOLDING, Issue
from rtl.accelerator.layouts import fields_layout, instruction_layout
from rtl.accelerator.queue import NUMBER_BITS, Queue, entry_layout, wait_layout
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED
from tests.formal import test_walk
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, chosen, field, joined, number, part

#: Kinds of the parts that are hollow where changes are judged.
HOLLOW = ("queue",)
#: What a queue says of itself in a bit.
TOLD = "completed", "nop", "waiting", "busy"


class _Laws:
    """Laws of an accelerator's decode, about a step of it."""

    def __init__(self, system, step):
        self.system, self.extras = system, Issue.of(system).params.extras
        self.now, self.then, now = step.now, step.then, step.now
        self.gives, self.rooms = self._of("i__valid"), self._of("i__ready")
        word = Fields(Extract(width(HEADER) - 1, 0, now.i__payload), fields_layout(HEADER))
        self.ends, self.nop = Or(*(word.opcode == opcode for opcode in ENDS)), word.opcode == Opcode.NOP
        self.waits = joined([joined([vars(word)[f"wait{n}_{name}"] for name in wait_layout().members])
                             for n in range(WAITS)])
        named = field(now.i__payload, fields_layout((*HEADER, *FIELDS[Opcode.NOP])), "unit")
        self.target, self.opcode = If(self.nop, named, Extract(2, 0, word.opcode)), word.opcode
        #: A word that there is, before an end; and one that is legal, too.
        self.comes = And(now.i__valid, Not(now.halt), Not(now.beyond))
        self.goes = And(self.comes, Not(now.wrong))
        self.laws = self._order() | self._ends() | self._entries() | self._queues() | self._transfers()

    def _of(self, name):
        """A port of each queue."""
        return {unit: vars(self.now)[f"queue_{unit.name.lower()}.{name}"] for unit in Unit}

    def _order(self):
        now, gives, rooms = self.now, self.gives, self.rooms
        return {
            "nothing is decoded beyond the program": And(
                now.beyond == And(Not(now.halt), number(now.place, 32) == now.instructions),
                Implies(And(now.takes, ULT(now.instructions, 1 << NUMBER_BITS)),
                        number(now.place, 32) != now.instructions)),
            "what is refused": now.illegal == And(self.comes, now.wrong),
            "taken when there is room": And(now.takes == And(now.i__valid, now.i__ready), now.i__ready == And(
                self.goes, Or(self.ends, chosen([True, *rooms.values()], self.target)))),
            "a word goes into its queue": And(*(gives[unit] == And(self.goes, Not(self.ends), self.target == unit)
                                                for unit in Unit)),
            "a word goes into one queue": And(*(Not(And(gives[one], gives[other]))
                                                for one in Unit for other in Unit if one < other)),
            "what a queue is given has a number of its own": And(*(Implies(And(gives[unit], rooms[unit]), now.takes)
                                                                   for unit in Unit)),
        }

    def _ends(self):
        now, then = self.now, self.then
        idle = And(*self._of("empty").values())
        return {
            "nothing behind an end, or an error": Implies(Or(now.halt, now.illegal, now.beyond), Not(Or(
                now.takes, *self.gives.values()))),
            "an end stays": Implies(now.halt, And(then.halt, Not(now.illegal), Not(now.beyond))),
            "an end": And(then.halt == Or(now.halt, And(now.takes, self.ends)), then.yields == If(
                now.takes, self.opcode == Opcode.YIELD, now.yields)),
            "when all is done": And(now.halted == And(now.halt, Not(now.yields), idle),
                                    now.paused == And(now.halt, now.yields, idle)),
        }

    def _entries(self):
        """What queues are given of a word."""
        found, now = {}, self.now
        for unit, entry in self._of("i__payload").items():
            word = fields_layout((*HEADER, *FIELDS[Opcode(unit)]))
            offered, held = (fields(Opcode(unit), self.extras) for fields in (offered_fields, held_fields))
            layout = entry_layout(width(offered), width(held))
            given = Fields(entry, layout)

            def own(fields, word=word):
                return joined([number(field(now.i__payload, word, each.name), each.width) for each in fields])
            found[f"{unit.name}: given"] = And(given.nop == self.nop, given.number == now.place,
                                               given.waits == self.waits, given.fields == own(offered))
            if held:
                found[f"{unit.name}: given for later"] = given.kept == own(held)
        return found

    def _queues(self):
        """What units and queues tell each other, and what is told of them."""
        now, found = self.now, {}

        def bit(name, place):
            return part(vars(now)[name], 1, place) == 1
        for place, unit in enumerate(Unit):
            own = {name: vars(now)[f"queue_{unit.name.lower()}.{name}"] for name in (
                "o__valid", "o__ready", "o__payload", "done", "counts", *TOLD, "number")}
            port = f"{unit.name.lower()}__"
            there = {name: vars(now)[f"{port}instruction__{name}"] for name in ("valid", "ready", "payload")}
            found[f"{unit.name}: offered"] = And(*(own[f"o__{name}"] == there[name] for name in there),
                                                 own["done"] == vars(now)[f"{port}done"])
            if unit not in HOLDING:
                found[f"{unit.name}: held"] = vars(now)[f"queue_{port[:-2]}.held"] == vars(now)[f"{port}held"]
            found[f"{unit.name}: told"] = And(
                *(bit(name, place) == own[name] for name in TOLD),
                bit("taken", place) == Or(And(own["o__valid"], own["o__ready"]), own["nop"]),
                part(now.number, NUMBER_BITS, place) == own["number"])
            found[f"{unit.name}: counted"] = And(own["counts"] == now.counts, part(
                self.then.counts, COUNT_BITS, place) == part(now.counts, COUNT_BITS, place) + number(
                    own["completed"], COUNT_BITS))
        return found

    def _transfers(self):
        found = {}
        for unit in HOLDING:
            layout, walk = instruction_layout(unit, self.extras), test_walk.walk_of(
                self.system, unit == Unit.LOAD).params
            entry = self._of("i__payload")[unit]
            fields = Fields(Extract(layout.size - 1, 0, entry), layout)
            nop = Extract(layout.size, layout.size, entry) == 1
            found[f"{unit.name}: legal"] = Implies(And(self.gives[unit], Not(nop)), And(*test_walk.legal(
                fields, walk, unit == Unit.LOAD)))
        return found


def laws(system, step):
    """Laws of an accelerator's decode."""
    return Laws(_Laws(system, step).laws)


@pytest.mark.parametrize("system", [pytest.param(ACCELERATOR, id="one context", marks=pytest.mark.slow),
                                    pytest.param(DISPATCHED, id="dispatched")])
def test_laws(system):
    step = Step.of(Issue.of(system), [Queue])
    assert step.broken(laws(system, step)) == []
