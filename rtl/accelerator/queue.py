"""A unit's queue: instructions wait here for what other units have completed."""

from dataclasses import dataclass

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import COUNT_BITS, WAITS, Unit

from ..lib.component import Component
from ..lib.fifo import Fifo
from ..lib.layout import ArrayLayout, StructLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter

#: Bits of an instruction's number in its program.
NUMBER_BITS = 24
#: Instructions that a unit may have taken and not completed.
MOST_TAKEN = 31


def wait_layout():
    """A wait; unit 0 stands for none, with a count of 0."""
    return StructLayout({"unit": 3, "count": COUNT_BITS})


def entry_layout(width, kept=0):
    """What a queue holds of an instruction: fields that it offers, ``width`` bits, and those that it keeps for later;
    whether it is a NOP; its number; its waits.
    """
    return StructLayout({"fields": width, "nop": 1, "number": NUMBER_BITS, "waits": ArrayLayout(wait_layout(), WAITS),
                         **({"kept": kept} if kept else {})})


def counts_layout():
    """Completed instructions by unit; element 0 belongs to :attr:`Unit.LOAD`."""
    return ArrayLayout(COUNT_BITS, len(Unit))


class Queue(Component):
    """Instructions of one unit, in order; the first is offered when all its waits hold.

    One wait is looked at in each cycle, in their order, also while the unit works; a wait that holds holds for good.
    An instruction of n waits (n counted up to the last that has a unit) that hold is offered in the cycle max(n, 1) - 1
    after it became the head, and it is the head two cycles after it came in at the earliest (one after its predecessor
    was taken, if it was there). A NOP is completed in the cycle in which it would be offered and all that the unit took
    before is done.

    Parameters
    ----------
    depth, width : int
        Instructions that it holds, and bits of the fields that it offers.
    kept : int
        Bits of the fields that the unit uses after it has taken the instruction; 0 if it takes an instruction only when
        it has no more use for its fields.

    Members
    -------
    i : ``In(stream.Signature(entry_layout(width, kept)))``
    counts : ``In(counts_layout())``
        What the units have completed.
    o : ``Out(stream)``
        Fields for the unit.
    held : ``Out(kept)``
        Further ones of the instruction that the unit took last, from the next cycle on.
    done : ``In(1)``
        The unit has completed an instruction.
    completed : ``Out(1)``
        The unit, or a NOP, has completed an instruction: one cycle for each.
    nop : ``Out(1)``
        What is completed is a NOP.
    waiting : ``Out(1)``
        There is a head, and its waits are not yet all known to hold.
    busy : ``Out(1)``
        The unit has taken something that is not done.
    empty : ``Out(1)``
        There is nothing in the queue, and the unit is not busy.
    number : ``Out``
        Of the instruction that the unit took last; where nothing is ``kept``, of the head.
    """
    kind, area = "queue", "accelerator control"

    @dataclass(frozen=True)
    class Parameters:
        depth: int = parameter("d")
        width: int = parameter("w")
        kept: int = parameter("k", 0)

    @staticmethod
    def ports(params):
        held = {"held": Out(params.kept)} if params.kept else {}
        return {"i": In(stream.Signature(entry_layout(params.width, params.kept))), "counts": In(counts_layout()),
                "o": Out(stream.Signature(params.width)), **held, "done": In(1), "completed": Out(1), "nop": Out(1),
                "waiting": Out(1), "busy": Out(1), "empty": Out(1), "number": Out(NUMBER_BITS)}

    def body(self, platform):
        m, params = Module(), self.params
        names = ("fields", "nop", "waits") if params.kept else ("fields", "nop", "number", "waits")
        entry, layout = self.i.payload, entry_layout(params.width).members
        layout = StructLayout({name: layout[name] for name in names})
        m.submodules.fifo = fifo = Fifo(params.depth, layout.size)
        head = Signal(layout)
        at = Signal(range(WAITS))
        awaited = Signal(wait_layout())
        counted = Signal(COUNT_BITS)
        holds = Signal()
        last = Signal()
        ready = Signal()
        pop = Signal()
        taken = Signal(range(MOST_TAKEN + 1))
        later = [head.waits[n].unit.any() for n in range(1, WAITS)]
        m.d.comb += [
            fifo.i.payload.eq(Cat(entry[name] for name in names)), fifo.i.valid.eq(self.i.valid),
            self.i.ready.eq(fifo.i.ready),
            head.eq(fifo.o.payload), awaited.eq(Array([*(head.waits[n] for n in range(WAITS)), head.waits[0]])[at]),
            counted.eq(Array([0, *(self.counts[n] for n in range(len(Unit)))])[awaited.unit]),
            holds.eq(counted >= awaited.count),
            last.eq(~Array([later[0] | later[1], later[1], 0, 0])[at]),
            ready.eq(fifo.o.valid & holds & last),
            self.waiting.eq(fifo.o.valid & ~(holds & last)),
            self.o.payload.eq(head.fields), self.o.valid.eq(ready & ~head.nop & (taken != MOST_TAKEN)),
            self.nop.eq(ready & head.nop & ~self.busy), self.completed.eq(self.done | self.nop),
            pop.eq((self.o.valid & self.o.ready) | self.nop), fifo.o.ready.eq(pop),
            self.busy.eq(taken.any()), self.empty.eq(fifo.empty & ~self.busy),
        ]
        m.d.sync += taken.eq(taken + (self.o.valid & self.o.ready) - self.done)
        with m.If(pop):
            m.d.sync += at.eq(0)
        with m.Elif(fifo.o.valid & holds & ~last):
            m.d.sync += at.eq(at + 1)
        if params.kept:
            self._keep(m, pop)
        else:
            m.d.comb += self.number.eq(head.number)
        return m

    def _keep(self, m, pop):
        """What is used later: in a memory beside the queue's, at whose output it stays until the next is taken."""
        depth = self.params.depth
        m.submodules.later = later = Ram(depth, self.params.kept + NUMBER_BITS)
        first = Signal(index(depth))
        free = Signal(index(depth))
        push = Signal()
        m.d.comb += [
            push.eq(self.i.valid & self.i.ready), later.w_en.eq(push), later.w_addr.eq(free),
            later.w_data.eq(Cat(self.i.payload.number, self.i.payload.kept)),
            later.r_en.eq(self.o.valid & self.o.ready), later.r_addr.eq(first),
            Cat(self.number, self.held).eq(later.r_data),
        ]
        for place, moves in ((free, push), (first, pop)):
            with m.If(moves):
                m.d.sync += place.eq(Mux(place == depth - 1, 0, place + 1))
