"""A queue in a memory."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from .component import Component
from .layout import index
from .memory import Ram
from .names import parameter


class Fifo(Component):
    """First in, first out, in a :class:`~rtl.lib.memory.Ram` whose output register is the head.

    What is taken in cycle t is offered in cycle t + 2 at the earliest; one a cycle goes through. It holds ``depth``
    words, the head among them. The head stays as it is until it is taken.

    Parameters
    ----------
    depth, width : int
        Words, at least 2, and bits of a word.

    Members
    -------
    i, o : ``In(stream)``, ``Out(stream)``
    empty : ``Out(1)``
        It holds nothing.
    """
    kind = "fifo"

    @dataclass(frozen=True)
    class Parameters:
        depth: int = parameter("d")
        width: int = parameter("w")

    @staticmethod
    def ports(params):
        return {"i": In(stream.Signature(params.width)), "o": Out(stream.Signature(params.width)),
                "empty": Out(1)}

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.memory = memory = Ram(params.depth, params.width)
        behind = Signal(range(params.depth + 1))    # words behind the head
        first = Signal(index(params.depth))
        free = Signal(index(params.depth))
        push = Signal()
        pop = Signal()
        read = Signal()
        m.d.comb += [
            self.i.ready.eq(behind + self.o.valid != params.depth),
            push.eq(self.i.valid & self.i.ready), pop.eq(self.o.valid & self.o.ready),
            read.eq(behind.any() & (pop | ~self.o.valid)),
            memory.w_en.eq(push), memory.w_addr.eq(free), memory.w_data.eq(self.i.payload),
            self.empty.eq(~self.o.valid & ~behind.any()),
            memory.r_en.eq(read), memory.r_addr.eq(first), self.o.payload.eq(memory.r_data),
        ]
        m.d.sync += [behind.eq(behind + push - read), self.o.valid.eq(read | (self.o.valid & ~pop))]
        for place, moves in ((free, push), (first, read)):
            with m.If(moves):
                m.d.sync += place.eq(Mux(place == params.depth - 1, 0, place + 1))
        return m
