"""Decode, and a queue for each unit."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import FIELDS, HEADER, WAITS, WORD, Opcode, Unit, width

from ..lib.layout import ArrayLayout
from .layouts import header_layout
from .legal import illegal
from .part import Part
from .queue import NUMBER_BITS, Queue, counts_layout

#: Units that keep their instruction in the queue until they have no more use for it.
HOLDING = (Unit.LOAD, Unit.STORE)


def offered(unit):
    """Name of the stream of a unit's instructions."""
    return f"o_{unit.name.lower()}"


class Issue(Part):
    """Takes instructions in order, puts each into the queue of its unit, and offers it there when its waits hold.

    A word that comes in goes on in the same cycle if the queue of its unit has room; later ones wait behind it. What
    the queues do, and when, :class:`~rtl.accelerator.queue.Queue` says. After HALT, or an error, nothing more is taken.
    The waits of HALT are not looked at.

    Members
    -------
    i : ``In(stream)``
        Words.
    instructions : ``In(32)``
        How many words the program has.
    done : ``In(7)``
        Bit u - 1: unit u has completed an instruction.
    o_load ... : ``Out(stream)``
        To the units: their fields.
    completed, taken, nop, waiting, busy : ``Out(7)``
        Of each queue; ``taken``: its unit takes an instruction, or a NOP is completed.
    number : ``Out``
        Of each queue: number of an instruction, :attr:`Queue.number`.
    place : ``Out(24)``
        Number of the next word.
    halted : ``Out(1)``
        HALT has come, all queues are empty and all units idle.
    illegal, beyond : ``Out(1)``
        The next word is no legal instruction; the program has no more words and no HALT has come.
    """
    kind, area, apart = "issue", "accelerator control", True

    @staticmethod
    def ports(params):
        units = len(Unit)
        return {"i": In(stream.Signature(WORD)), "instructions": In(32),
                "done": In(units),
                **{offered(unit): Out(stream.Signature(width(FIELDS[Opcode(unit)]))) for unit in Unit},
                "completed": Out(units), "taken": Out(units), "nop": Out(units), "waiting": Out(units),
                "busy": Out(units), "number": Out(ArrayLayout(NUMBER_BITS, units)),
                "place": Out(NUMBER_BITS), "halted": Out(1), "illegal": Out(1), "beyond": Out(1)}

    def body(self, platform):
        m, word = Module(), self.i.payload
        header = Signal(header_layout())
        halt = Signal()
        wrong = Signal()
        takes = Signal()
        target = Signal(3)
        m.d.comb += [
            header.eq(word[:header_layout().size]), wrong.eq(illegal(m, word, self.params)),
            target.eq(Mux(header.opcode == Opcode.NOP, word[width(HEADER):][:3], header.opcode[:3])),
            self.beyond.eq(~halt & (self.place == self.instructions)),
            self.illegal.eq(self.i.valid & ~halt & ~self.beyond & wrong),
            takes.eq(self.i.valid & ~halt & ~self.beyond & ~wrong),
        ]
        counts = Signal(counts_layout())    # what the units have completed
        queues = [Queue(self.params.queue, width(FIELDS[Opcode(unit)]), unit in HOLDING) for unit in Unit]
        for place, (unit, queue) in enumerate(zip(Unit, queues, strict=True)):
            m.submodules[f"queue_{unit.name.lower()}"] = queue
            entry, o = queue.i.payload, getattr(self, offered(unit))
            m.d.comb += [
                queue.counts.eq(counts), queue.done.eq(self.done[place]),
                queue.i.valid.eq(takes & (header.opcode != Opcode.HALT) & (target == unit)),
                entry.fields.eq(word[width(HEADER):]), entry.nop.eq(header.opcode == Opcode.NOP),
                entry.number.eq(self.place),
                *(wait.eq(Cat(header[f"wait{n}_unit"], header[f"wait{n}_count"]))
                  for n, wait in enumerate(entry.waits[n] for n in range(WAITS))),
                o.payload.eq(queue.o.payload), o.valid.eq(queue.o.valid), queue.o.ready.eq(o.ready),
                self.completed[place].eq(queue.completed), self.nop[place].eq(queue.nop),
                self.taken[place].eq((queue.o.valid & queue.o.ready) | queue.nop),
                self.waiting[place].eq(queue.waiting), self.busy[place].eq(queue.busy),
                self.number[place].eq(queue.number),
            ]
            with m.If(queue.completed):
                m.d.sync += counts[place].eq(counts[place] + 1)
        room = Array([1, *(queue.i.ready for queue in queues)])[target]
        m.d.comb += [
            self.i.ready.eq(takes & ((header.opcode == Opcode.HALT) | room)),
            self.halted.eq(halt & Cat(queue.empty for queue in queues).all()),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [self.place.eq(self.place + 1), halt.eq(header.opcode == Opcode.HALT)]
        return m
