"""Bursts of loads and stores in one cycle, from any state and for all instructions: pages, limits, loops, faults."""

from functools import partial
from types import SimpleNamespace

import pytest
from z3 import UGT, ULE, ULT, And, BitVecVal, BoolVal, Extract, If, Implies, Not, Or

from hbfp.isa.instructions import Memory
from rtl.accelerator.layouts import instruction_layout
from rtl.accelerator.load import Load
from rtl.accelerator.store import Store
from rtl.accelerator.walk import ELEMENT_BITS, OFFSET_BITS, PAGE, State, Walk, piece_layout
from rtl.lib.layout import index
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED
from tests.formal.prove import Laws, Step
from tests.formal.views import chosen, field, number

#: Registers that each instruction sets anew, and that a reset leaves as they are.
KEPT = ("left", "done", *(f"{name}{n}" for name in ("count", "offset", "place") for n in range(3)))
#: Bits in which no sum of addresses wraps round.
WIDE = 40


def walk_of(system, loads):
    """An accelerator's walk of loads, or of stores."""
    sizes, part = (Walk.Parameters.load, Load) if loads else (Walk.Parameters.store, Store)
    return Walk.made(sizes(part.of(system).params))


class _Laws:
    """Laws of a :class:`~rtl.accelerator.walk.Walk` about a step of it; the attributes are those of its cycle."""

    def __init__(self, params, step):
        self.params, self.now, self.then, now = params, step.now, step.then, step.now
        layout = instruction_layout(params.opcode, params.extras)
        self.fields = SimpleNamespace(**{name: field(now.instruction__payload, layout, name) for name, _ in layout})
        self.loads, self.low = params.record > 0, params.beat_bits
        memory = self.fields.memory if self.loads else BitVecVal(Memory.V, 2)
        self.memory, self.elements = memory, self.fields.elements
        self.record = And(memory == Memory.W, BoolVal(self.loads))
        self.row = Not(Or(self.elements, self.record))    # a row of words is one segment
        self.piece = SimpleNamespace(**{name: field(now.o__payload, piece_layout(params), name)
                                        for name, _ in piece_layout(params)})
        self.begins = And(self.at(State.START), now.instruction__valid)
        self.checks, self.moves = self.at(State.SEGMENT), And(self.at(State.BURST), now.o__ready)
        self.lane = number(Extract(self.low - 1, 2, now.offset0), 16)
        self.beats = self._beats()
        self.ends = self.beats == now.left
        self.more = [And(Not(self.row), now.count0 != 1), now.count1 != 1, now.count2 != 1]
        self.of_run = If(UGT(self.lane + number(self.fields.run, 16), params.lanes), BitVecVal(2, 16), BitVecVal(1, 16))
        self.misaligned, self.outside = self._faults()

    def at(self, state):
        """The walk is in a state."""
        return self.now.state == int(state)

    def _beats(self):
        """A burst has the beats that are left of its segment, those that it may have, or those of its page."""
        page = BitVecVal(PAGE // (4 * self.params.lanes), 16)
        room = page - number(Extract(11 - self.low, 0, self.now.address), 16)
        most = BitVecVal(self.params.burst, 16)
        most = If(ULT(room, most), room, most)
        return If(ULT(self.now.left, most), self.now.left, most)

    def _faults(self):
        """Of a segment: it begins at no beat, or number; it is not within the limit, or the memory."""
        now, params, fields = self.now, self.params, self.fields
        unit = 1 << self.low
        misaligned = now.offset0 & If(self.elements, BitVecVal(3, OFFSET_BITS), BitVecVal(unit - 1, OFFSET_BITS)) != 0
        run, count = number(fields.run, WIDE), number(now.count0, WIDE)
        size = If(self.elements, 4 * run, unit * If(self.record, BitVecVal(params.record, WIDE), count))
        extent = If(self.elements, run if self.loads else BitVecVal(1, WIDE),
                    If(self.record, BitVecVal(params.height, WIDE), count))
        whole = number(now.place0, WIDE)
        first = If(And(self.elements, BoolVal(self.loads)), whole, whole & (1 << 18) - 1)
        numbers = params.v_words * (params.lanes if self.loads else 1)
        words = If(self.elements, BitVecVal(numbers, WIDE), chosen([BitVecVal(each, WIDE) for each in (
            params.v_words, params.w_words, params.p_words)], self.memory))
        return misaligned, Or(UGT(number(now.offset0, WIDE) + size, number(now.limit, WIDE)),
                              UGT(first + extent, words))

    def always(self):
        """What holds in every state."""
        some = And(*(getattr(self.now, f"count{n}") != 0 for n in range(3)))
        left, done = self.now.left, number(self.now.done, 16)
        return {"what is left of a segment is within the limit and the memory": Implies(
                    self.at(State.BURST), self._within()),
                "loops have steps to go": Or(self.at(State.START), self.at(State.FAULT), some),
                "an instruction stays until its end": Or(self.at(State.START), self.now.instruction__valid),
                "beats to go": Implies(self.at(State.BURST), And(left != 0, Or(
                    self.row, done + left == If(self.record, BitVecVal(self.params.record, 16), self.of_run)),
                    ULE(done, left + done)))}

    def _left(self):
        """Bytes of DRAM, words or rows or numbers of the memory, that are left of a segment that is under way, from
        the offset and the place on; the first of these; and those that the memory has."""
        now, params, fields = self.now, self.params, self.fields
        run, left, run_of_loads = number(fields.run, WIDE), number(now.left, WIDE), And(self.elements, self.loads)
        size = If(self.elements, 4 * run, left << self.low)
        extent = If(run_of_loads, run, If(self.elements, 1, If(self.record, BitVecVal(params.height, WIDE), left)))
        first = number(now.place0, WIDE)
        words = If(run_of_loads, BitVecVal(params.v_words * params.lanes, WIDE), chosen([
            BitVecVal(each, WIDE) for each in (params.v_words, params.w_words, params.p_words)], self.memory))
        return size, extent, If(run_of_loads, first, first & (1 << 18) - 1), words

    def _within(self):
        """A segment is not misaligned, and what is left of it lies within the limit and the memory."""
        size, extent, first, words = self._left()
        aligned = self.now.offset0 & If(self.elements, BitVecVal(3, OFFSET_BITS), (1 << self.low) - 1) == 0
        return And(aligned, ULE(number(self.now.offset0, WIDE) + size, number(self.now.limit, WIDE)),
                   ULE(first + extent, words))

    def bounds(self):
        """Where the burst that is offered ends in DRAM, bytes from the base; and the limit, up to a whole beat."""
        end = number(self.now.address, WIDE) + number(self.beats, WIDE) << self.low
        return end, number(self.now.limit, WIDE) + (1 << self.low) - 1 & -(1 << self.low) % (1 << WIDE)

    def outputs(self):
        """What is offered."""
        now, piece = self.now, self.piece
        size, extent, first, words = self._left()
        end, limit = self.bounds()
        done = If(self.elements, number(now.done, now.address.size()), 0)
        return {
            "begins": now.begins == self.begins, "a burst is offered": now.o__valid == self.at(State.BURST),
            "address": now.address == Extract(OFFSET_BITS - 1, self.low, now.offset0) + done,
            "beats": number(piece.beats, 16) == self.beats,
            "a burst is within the limit": Implies(self.at(State.BURST), ULE(end, limit)),
            "a burst is within the memory": Implies(self.at(State.BURST), And(
                ULE(first + If(self.row, number(self.beats, WIDE), extent), words), Implies(self.elements, ULE(
                    number(now.offset0, WIDE) + 4 * number(piece.run, WIDE), number(now.limit, WIDE))))),
            "no burst crosses a page": Implies(self.at(State.BURST), ULE(
                number(Extract(11 - self.low, 0, now.address), 16) + self.beats, PAGE >> self.low)),
            "piece": And(piece.memory == self.memory, piece.elements == self.elements, piece.place == now.place0,
                         number(piece.lane, 16) == self.lane, number(piece.run) == number(self.fields.run),
                         number(piece.index) == number(now.done)),
            "a burst is in its segment": Implies(And(self.at(State.BURST), Not(self.row)), ULE(
                number(piece.index) + number(piece.beats), If(self.record, BitVecVal(self.params.record, 8), 2))),
            "the last": piece.last == And(self.ends, Not(Or(*self.more))),
            "an instruction is taken": now.instruction__ready == And(self.moves, piece.last),
        }

    def states(self):
        """State and faults."""
        now, then = self.now, self.then
        fault = And(self.checks, Or(self.misaligned, self.outside))
        return {
            "state": then.state == If(fault, int(State.FAULT), If(self.checks, int(State.BURST), If(
                self.begins, int(State.SEGMENT), If(And(self.moves, self.piece.last), int(State.START), If(
                    And(self.moves, self.ends), int(State.SEGMENT), now.state))))),
            "misaligned": then.misaligned == If(fault, self.misaligned, now.misaligned),
            "outside": then.outside == If(fault, Not(self.misaligned), now.outside),
        }

    def segments(self):
        """Beats of a segment, and those that are done."""
        now, params = self.now, self.params
        beats = If(self.elements, self.of_run, If(self.record, BitVecVal(params.record, 16), now.count0))
        goes_on = And(self.moves, Not(self.ends))
        width = index(max(params.record, 2)).width
        done = If(self.row, BitVecVal(0, width), number(now.done, width) + number(self.beats, width))
        return {
            "beats that are left": self.then.left == If(self.checks, beats, If(
                goes_on, now.left - self.beats, now.left)),
            "beats that are done": number(self.then.done, width) == If(
                self.checks, 0, If(goes_on, done, number(now.done, width))),
        }

    def loops(self):
        """Counts, offsets and places: at the begin, within a segment, and where a loop goes on."""
        now, then, fields, found = self.now, self.then, self.fields, {}
        level = If(self.more[0], BitVecVal(0, 2), If(self.more[1], BitVecVal(1, 2), BitVecVal(2, 2)))
        within, nexts = And(self.moves, Not(self.ends)), And(self.moves, self.ends)
        unit = number(self.beats, OFFSET_BITS) << self.low
        height, beats = BitVecVal(self.params.height, ELEMENT_BITS), number(self.beats, ELEMENT_BITS)
        first = {"offset": fields.offset + self._added(), "place": fields.base}
        for name, other, step in (("offset", "dram", If(self.elements, fields.dram0, unit)),
                                  ("place", "buffer", If(self.elements, fields.buffer0, If(
                                      self.record, height, beats)))):
            steps = [step, *(getattr(fields, f"{other}{n}") for n in (1, 2))]
            old = [getattr(now, f"{name}{n}") for n in range(3)]
            new = chosen([old[n] + steps[n] for n in range(3)], level)
            stays = self.row if name == "place" else Not(self.elements)    # those that go on within a segment
            for n in range(3):
                after = If(And(nexts, ULE(n, level)), new, old[n])
                if n == 0:
                    after = If(And(within, stays), old[0] + steps[0], after)
                found[f"{name} {n}"] = getattr(then, f"{name}{n}") == If(self.begins, first[name], after)
        for n in range(3):
            count, given = getattr(now, f"count{n}"), getattr(fields, f"count{n}")
            found[f"count {n}"] = getattr(then, f"count{n}") == If(self.begins, given, If(
                And(nexts, level == n), count - 1, If(And(nexts, ULT(n, level)), given, count)))
        return found

    def _added(self):
        """What an instruction adds to its offset: nothing, an argument, or the place of a request."""
        words = [Extract(32 * n + 31, 32 * n, self.now.arguments) for n in range(8)]
        added = BitVecVal(0, 32)
        if self.params.requests:
            places = [Extract(32 * n + 31, 32 * n, self.now.places) for n in range(self.params.requests)]
            added = If(self.fields.request == 0, added, chosen(places, self.fields.request - 1))
        return If(self.fields.argument == 0, added, chosen(words, self.fields.argument - 1))


def laws_of(params, step):
    """What is known of a walk with these parameters in a step of it, or of what it is a part of."""
    return _Laws(params, step)


def legal(fields, params, loads):
    """What decode lets pass, of the fields of a LOAD or a STORE."""
    memory = fields.memory if loads else BitVecVal(Memory.V, 2)
    found = [*(getattr(fields, f"count{n}") != 0 for n in range(3)), ULE(fields.argument, 8),
             ULE(number(fields.run), params.lanes), Implies(fields.elements, fields.run != 0),
             Implies(fields.elements, memory == Memory.V), ULE(memory, 2)]
    return [*found, ULE(number(fields.request), params.requests)] if params.requests else found


def _of(loads, system, step):
    found = laws_of(walk_of(system, loads).params, step)
    now, then = step.now, step.then
    # An instruction that is offered stays, and so does the limit, which the host leaves while a program runs.
    given = [Implies(And(now.instruction__valid, Not(now.instruction__ready)), And(
                then.instruction__valid, then.instruction__payload == now.instruction__payload)),
             Implies(now.instruction__valid, then.limit == now.limit), *legal(found.fields, found.params, loads)]
    return Laws(found.outputs() | found.states() | found.segments() | found.loops(), found.always(), given, KEPT)


#: Laws of an accelerator's walk, of loads and of stores.
LOADS, STORES = (SimpleNamespace(laws=partial(_of, loads), __name__=__name__, __file__=__file__)
                 for loads in (True, False))


@pytest.mark.parametrize("system", [ACCELERATOR, DISPATCHED], ids=["one context", "dispatched"])
@pytest.mark.parametrize("loads", [True, False], ids=["loads", "stores"])
def test_laws(system, loads):
    step = Step.of(walk_of(system, loads))
    assert step.broken(_of(loads, system, step)) == []
