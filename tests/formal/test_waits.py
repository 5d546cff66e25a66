"""Queues that wait for each other, in one cycle, from any state: what waits is issued, and counts never wrap round.

Some queues of units, with counts of what is completed, as decode has them. Promised by docs/design/11-accelerator.md: a
program whose waits are met by instructions that stand before it does not come to a halt in its queues. It is so because
of all that waits in queues the head with the least number waits for nothing that is in a queue; if no unit has anything
under way, what it waits for is completed. That units complete what they take is assumed.
"""

import pytest
from amaranth import Module, Signal
from amaranth.lib.wiring import In, Out
from z3 import ULE, ULT, And, BitVecVal, Extract, If, Implies, Not, Or

from hbfp.isa.instructions import COUNT_BITS, WAITS
from rtl.accelerator.queue import MOST_TAKEN, NUMBER_BITS, Queue, counts_layout, entry_layout
from rtl.lib.component import Component
from tests.formal import views
from tests.formal.prove import Laws, Step
from tests.formal.views import COUNT, chosen, number, part

#: Bits of what a queue offers, of numbers that do not wrap, and of a wait.
FIELDS, WIDE, WAIT = 1, NUMBER_BITS + 1, 3 + COUNT_BITS


class Queues(Component):
    """Some queues, into one of which an instruction may go in a cycle, and for the proof how many have come and left.

    Parameters
    ----------
    units, depth : int
    """
    kind, module = "queues", "queues"

    class Parameters:
        def __init__(self, units, depth):
            self.units, self.depth = units, depth

    @staticmethod
    def ports(params):
        return {"entry": In(entry_layout(FIELDS)), "valid": In(params.units), "ready": In(params.units),
                "done": In(params.units), "place": Out(WIDE),
                **{f"{name}{unit}": Out(WIDE) for name in ("came", "left") for unit in range(params.units)}}

    def body(self, platform):
        m, counts, pushes = Module(), Signal(counts_layout()), Signal()
        m.d.sync += self.place.eq(self.place + pushes)
        for unit in range(self.params.units):
            queue = m.submodules[f"queue{unit}"] = Queue(self.params.depth, FIELDS)
            came, left = (getattr(self, f"{name}{unit}") for name in ("came", "left"))
            m.d.comb += [
                queue.counts.eq(counts), queue.done.eq(self.done[unit]), queue.i.valid.eq(self.valid[unit]),
                queue.i.payload.eq(self.entry), queue.i.payload.number.eq(self.place),
                queue.o.ready.eq(self.ready[unit])]
            with m.If(queue.i.valid & queue.i.ready):
                m.d.comb += pushes.eq(1)
                m.d.sync += came.eq(came + 1)
            with m.If(queue.o.valid & queue.o.ready | queue.nop):
                m.d.sync += left.eq(left + 1)
            with m.If(queue.completed):
                m.d.sync += counts[unit].eq(counts[unit] + 1)
        return m


class _Queue:
    """One of the queues in a state."""

    def __init__(self, state, unit, depth):
        self.of = lambda signal: vars(state)[f"queue{unit}.{signal}"]
        self.fifo = views.Queue(state, f"queue{unit}.fifo.", depth)
        self.taken, self.at = number(self.of("taken"), WIDE), self.of("at")
        self.completed = number(part(state.counts, COUNT_BITS, unit), WIDE)
        self.came, self.left = vars(state)[f"came{unit}"], vars(state)[f"left{unit}"]
        words = self.fifo.words[:depth]
        self.held = [ULT(BitVecVal(place, COUNT), self.fifo.length) for place in range(depth)]
        self.waits = [waits(word) for word in words]
        self.numbers = [number(Extract(FIELDS + NUMBER_BITS, FIELDS + 1, word), WIDE) for word in words]


def waits(entry):
    """The waits of an instruction: unit, from 1 on, and count."""
    low = FIELDS + 1 + NUMBER_BITS
    return [(Extract(low + WAIT * n + 2, low + WAIT * n, entry),
             number(Extract(low + WAIT * (n + 1) - 1, low + WAIT * n + 3, entry), WIDE)) for n in range(WAITS)]


def laws(count, depth, step):
    """Laws of so many queues."""
    now, then, units = step.now, step.then, range(count)
    queues, later = ([_Queue(state, unit, depth) for unit in units] for state in (now, then))

    def met(unit, least):
        """A wait is for what has come."""
        came = chosen([BitVecVal(0, WIDE), *(each.came for each in queues)], unit)
        return And(ULE(unit, count), ULE(least, came))

    def before(unit, least, own):
        """What is waited for, and is in a queue, stands before the instruction ``own``."""
        return And(*(Implies(And(unit == place, queue.held[n], ULT(queue.left + n, least)), ULT(queue.numbers[n], own))
                     for place, queue in enumerate(queues, 1) for n in range(depth)))
    always = {"numbers": ULT(now.place, 1 << NUMBER_BITS)}
    for unit, queue in enumerate(queues):
        always |= {
            f"queue {unit}: words": queue.fifo.sound, f"queue {unit}: which wait": ULT(queue.at, WAITS),
            f"queue {unit}: under way": ULE(queue.taken, MOST_TAKEN),
            f"queue {unit}: what has left is completed, or under way": queue.left == queue.completed + queue.taken,
            f"queue {unit}: what has come has left, or waits": queue.came == queue.left + number(
                queue.fifo.length, WIDE),
            f"queue {unit}: no more has come than was decoded": ULE(queue.came, now.place)}
        for n, (held, own, each) in enumerate(zip(queue.held, queue.numbers, queue.waits, strict=True)):
            always[f"queue {unit}: number of {n}"] = Implies(held, ULT(own, now.place))
            for place, wait in enumerate(each):
                always |= {f"queue {unit}: wait {place} of {n} is met": Implies(held, met(*wait)),
                           f"queue {unit}: wait {place} of {n} is for what stands before": Implies(
                               held, before(*wait, own))}

    def moves(queue, after):
        """A head comes, is offered or completed, or its next wait is looked at."""
        return Or(And(Not(queue.fifo.valid), queue.fifo.behind != 0), queue.of("o__valid"), queue.of("nop"),
                  And(queue.fifo.valid, after.at == queue.at + 1))
    idle, some = And(*(queue.taken == 0 for queue in queues)), Or(*(queue.fifo.length != 0 for queue in queues))
    found = {"what waits is issued": Implies(And(some, idle), Or(*map(moves, queues, later))),
             "counts do not wrap round": And(*(ULE(queue.completed, after.completed)
                                               for queue, after in zip(queues, later, strict=True)))}
    pushes = [part(now.valid, 1, unit) == 1 for unit in units]
    given = [Not(And(pushes[one], pushes[other])) for one in units for other in range(one)]
    given += [Implies(part(now.done, 1, unit) == 1, queue.taken != 0) for unit, queue in enumerate(queues)]
    # A program has no more instructions than numbers; a wait is met by what stands before it, unit 0 is none.
    given.append(ULT(now.place + 1, 1 << NUMBER_BITS))
    given += [Implies(Or(*pushes), And(met(*wait), If(wait[0] == 0, wait[1] == 0, True))) for wait in waits(now.entry)]
    return Laws(found, always, given, None)


@pytest.mark.slow
@pytest.mark.parametrize("count, depth", [(2, 2)])
def test_laws(count, depth):
    step = Step.of(Queues(count, depth))
    assert step.broken(laws(count, depth, step), 300) == []
