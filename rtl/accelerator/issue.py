"""Decode, and a queue for each unit."""

from functools import reduce
from operator import or_

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import ENDS, HEADER, WAITS, WORD, Opcode, Unit, width

from ..lib.layout import ArrayLayout
from .fields import held_fields, offered_fields, place
from .layouts import header_layout
from .legal import illegal
from .part import Part
from .queue import NUMBER_BITS, Queue, counts_layout

#: Units that keep their instruction in the queue until they have no more use for it.
HOLDING = (Unit.LOAD, Unit.STORE)


def offered(unit):
    """Name of the stream of a unit's instructions."""
    return f"o_{unit.name.lower()}"


def held(unit):
    """Name of the port with the fields that a unit uses later."""
    return f"held_{unit.name.lower()}"


def _part(word, unit, fields):
    """Some of the fields of an instruction, one behind the other."""
    own = word[width(HEADER):]
    return Cat(own[place(Opcode(unit), field.name)] for field in fields(Opcode(unit)))


class Issue(Part):
    """Takes instructions in order, puts each into the queue of its unit, and offers it there when its waits hold.

    A word that comes in goes on in the same cycle if the queue of its unit has room; later ones wait behind it. What
    the queues do, and when, :class:`~rtl.accelerator.queue.Queue` says. After HALT, YIELD or an error nothing more is
    taken; after YIELD until a reset. The waits of these two are not looked at.

    Members
    -------
    i : ``In(stream)``
        Words.
    instructions, place : ``In(32)``, ``In(24)``
        How many words the program has; number of the next.
    takes : ``Out(1)``
        The next word is taken.
    done : ``In(7)``
        Bit u - 1: unit u has completed an instruction.
    o_load ... : ``Out(stream)``
        To the units: the fields that they use as they take an instruction.
    held_convert ... : ``Out``
        Those that they use later.
    completed, taken, nop, waiting, busy : ``Out(7)``
        Of each queue; ``taken``: its unit takes an instruction, or a NOP is completed.
    number : ``Out``
        Of each queue: number of an instruction, :attr:`Queue.number`.
    halted, paused : ``Out(1)``
        HALT, or YIELD, has come, all queues are empty and all units idle.
    illegal, beyond : ``Out(1)``
        The next word is no legal instruction; the program has no more words and no HALT has come.
    """
    kind, area, apart = "issue", "accelerator control", True

    @staticmethod
    def ports(params):
        units = len(Unit)
        return {"i": In(stream.Signature(WORD)), "instructions": In(32),
                "done": In(units),
                **{offered(unit): Out(stream.Signature(width(offered_fields(Opcode(unit))))) for unit in Unit},
                **{held(unit): Out(width(held_fields(Opcode(unit)))) for unit in Unit if unit not in HOLDING},
                "completed": Out(units), "taken": Out(units), "nop": Out(units), "waiting": Out(units),
                "busy": Out(units), "number": Out(ArrayLayout(NUMBER_BITS, units)),
                "place": In(NUMBER_BITS), "takes": Out(1), "halted": Out(1), "paused": Out(1), "illegal": Out(1),
                "beyond": Out(1)}

    def body(self, platform):
        m, word = Module(), self.i.payload
        header = Signal(header_layout())
        halt = Signal()      # HALT or YIELD has come
        yields = Signal()
        ends = Signal()
        wrong = Signal()
        takes = Signal()
        target = Signal(3)
        m.d.comb += [
            header.eq(word[:header_layout().size]), wrong.eq(illegal(m, word, self.params)),
            target.eq(Mux(header.opcode == Opcode.NOP, word[width(HEADER):][:3], header.opcode[:3])),
            self.beyond.eq(~halt & (self.place == self.instructions)),
            self.illegal.eq(self.i.valid & ~halt & ~self.beyond & wrong),
            takes.eq(self.i.valid & ~halt & ~self.beyond & ~wrong),
            ends.eq(reduce(or_, (header.opcode == opcode for opcode in ENDS))),
        ]
        counts = Signal(counts_layout())    # what the units have completed
        queues = [Queue(self.params.queue, *(width(fields(Opcode(unit))) for fields in (offered_fields, held_fields)))
                  for unit in Unit]
        for number, (unit, queue) in enumerate(zip(Unit, queues, strict=True)):
            m.submodules[f"queue_{unit.name.lower()}"] = queue
            entry, o = queue.i.payload, getattr(self, offered(unit))
            m.d.comb += [
                queue.counts.eq(counts), queue.done.eq(self.done[number]),
                queue.i.valid.eq(takes & ~ends & (target == unit)),
                entry.fields.eq(_part(word, unit, offered_fields)), entry.nop.eq(header.opcode == Opcode.NOP),
                entry.number.eq(self.place),
                *(wait.eq(Cat(header[f"wait{n}_unit"], header[f"wait{n}_count"]))
                  for n, wait in enumerate(entry.waits[n] for n in range(WAITS))),
                o.payload.eq(queue.o.payload), o.valid.eq(queue.o.valid), queue.o.ready.eq(o.ready),
                self.completed[number].eq(queue.completed), self.nop[number].eq(queue.nop),
                self.taken[number].eq((queue.o.valid & queue.o.ready) | queue.nop),
                self.waiting[number].eq(queue.waiting), self.busy[number].eq(queue.busy),
                self.number[number].eq(queue.number),
            ]
            if unit not in HOLDING:
                m.d.comb += [entry.kept.eq(_part(word, unit, held_fields)), getattr(self, held(unit)).eq(queue.held)]
            with m.If(queue.completed):
                m.d.sync += counts[number].eq(counts[number] + 1)
        idle = Signal()
        room = Array([1, *(queue.i.ready for queue in queues)])[target]
        m.d.comb += [
            self.i.ready.eq(takes & (ends | room)),
            idle.eq(Cat(queue.empty for queue in queues).all()), self.halted.eq(halt & ~yields & idle),
            self.paused.eq(halt & yields & idle), self.takes.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.takes):
            m.d.sync += [halt.eq(ends), yields.eq(header.opcode == Opcode.YIELD)]
        return m
