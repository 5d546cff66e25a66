"""Decode, and a queue for each unit."""

from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import ENDS, EXTRAS, HEADER, WAITS, WORD, Opcode, Unit, width
from hbfp.isa.legal import pieces

from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from .control import decode_signature
from .fields import held_fields, offered_fields, place
from .layouts import header_layout
from .legal import illegal
from .queue import NUMBER_BITS, Queue, counts_layout
from .signatures import unit_signature
from .sizes import Sizes

#: Units that keep their instruction in the queue until they have no more use for it.
HOLDING = (Unit.LOAD, Unit.STORE)


def _part(word, unit, fields):
    """Some of the fields of an instruction, one behind the other."""
    own = word[width(HEADER):]
    return Cat(own[place(Opcode(unit), field.name)] for field in fields)


class Issue(Component):
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
    load ... vector : ``Out(unit_signature)``
        To each unit, by its name.
    completed, taken, nop, waiting, busy : ``Out(7)``
        Of each queue; ``taken``: its unit takes an instruction, or a NOP is completed.
    number : ``Out``
        Number of an instruction of each queue: see :attr:`Queue.number`.
    halted, paused : ``Out(1)``
        HALT, or YIELD, has come, all queues are empty and all units idle.
    illegal, beyond : ``Out(1)``
        The next word is no legal instruction; the program has no more words and no HALT has come.
    """
    kind, area, apart = "issue", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        queue: int = parameter("q")
        lanes: int = parameter("l")
        rows: int = parameter("n")
        height: int = parameter("h")
        stochastic: bool = parameter("sr", False)
        wide: int = parameter("wide", 0)
        requests: int = parameter("rq", 0)
        spread: int = parameter("sp", 1, rare=True)

        @property
        def sizes(self):
            """The sizes that rules of instructions name."""
            return {**{name: getattr(self, name) for name in ("lanes", "rows", "height")},
                    **pieces(self.rows, self.lanes, self.spread),
                    **{extra: int(extra in self.extras) for extra in EXTRAS}, "requests": self.requests}

        @property
        def extras(self):
            """What instructions have that not all accelerators' have."""
            has = {"stochastic": self.stochastic, "wide": self.wide, "requests": self.requests,
                   "sparse": self.spread > 1}
            return tuple(extra for extra in EXTRAS if has[extra])

    @staticmethod
    def ports(params):
        units = len(Unit)
        return {"i": In(stream.Signature(WORD)), "instructions": In(32), **decode_signature().members,
                **{unit.name.lower(): Out(unit_signature(Opcode(unit), params.extras)) for unit in Unit},
                "completed": Out(units),
                "taken": Out(units), "nop": Out(units), "waiting": Out(units), "busy": Out(units),
                "number": Out(ArrayLayout(NUMBER_BITS, units))}

    def to(self, unit):
        """The interface to a unit."""
        return getattr(self, unit.name.lower())

    def body(self, platform):
        m, params, word = Module(), self.params, self.i.payload
        header = Signal(header_layout())
        halt = Signal()      # HALT or YIELD has come
        yields = Signal()
        ends = Signal()
        wrong = Signal()
        takes = Signal()
        target = Signal(3)
        m.d.comb += [
            header.eq(word[:header_layout().size]), wrong.eq(illegal(m, word, params.sizes)),
            target.eq(Mux(header.opcode == Opcode.NOP, word[width(HEADER):][:3], header.opcode[:3])),
            self.beyond.eq(~halt & (self.place == self.instructions)),
            self.illegal.eq(self.i.valid & ~halt & ~self.beyond & wrong),
            takes.eq(self.i.valid & ~halt & ~self.beyond & ~wrong),
            ends.eq(reduce(or_, (header.opcode == opcode for opcode in ENDS))),
        ]
        counts = Signal(counts_layout())    # what the units have completed
        offered, held = ({unit: fields(Opcode(unit), params.extras) for unit in Unit}
                         for fields in (offered_fields, held_fields))
        queues = [Queue(params.queue, width(offered[unit]), width(held[unit])) for unit in Unit]
        for number, (unit, queue) in enumerate(zip(Unit, queues, strict=True)):
            m.submodules[f"queue_{unit.name.lower()}"] = queue
            entry, o = queue.i.payload, self.to(unit)
            m.d.comb += [
                queue.counts.eq(counts), queue.done.eq(o.done),
                queue.i.valid.eq(takes & ~ends & (target == unit)),
                entry.fields.eq(_part(word, unit, offered[unit])), entry.nop.eq(header.opcode == Opcode.NOP),
                entry.number.eq(self.place),
                *(wait.eq(Cat(header[f"wait{n}_unit"], header[f"wait{n}_count"]))
                  for n, wait in enumerate(entry.waits[n] for n in range(WAITS))),
                Value.cast(o.instruction.payload).eq(queue.o.payload), o.instruction.valid.eq(queue.o.valid),
                queue.o.ready.eq(o.instruction.ready),
                self.completed[number].eq(queue.completed), self.nop[number].eq(queue.nop),
                self.taken[number].eq((queue.o.valid & queue.o.ready) | queue.nop),
                self.waiting[number].eq(queue.waiting), self.busy[number].eq(queue.busy),
                self.number[number].eq(queue.number),
            ]
            if unit not in HOLDING:
                m.d.comb += [entry.kept.eq(_part(word, unit, held[unit])), Value.cast(o.held).eq(queue.held)]
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
