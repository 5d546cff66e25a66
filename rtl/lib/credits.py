"""A queue behind a pipeline that never stalls: words enter the pipeline only while there is room for them."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from .component import Component
from .layout import index
from .memory import Ram
from .names import parameter


class CreditQueue(Component):
    """First in, first out, with a credit for every word: who starts a word takes one, who takes a word gives it back.

    No signal goes from ``o.ready`` to the pipeline, so its registers need no enable. The word lies in a
    :class:`~rtl.lib.memory.Ram` whose output register is the head; written in cycle t, it is on ``o`` in t + 2. A
    credit is there two cycles after its word was taken, so one word a cycle goes through if there are four words more
    than there are cycles from ``starts`` to ``w_en``.

    Parameters
    ----------
    depth, width : int
        Words, at least 2, and bits of a word.
    parts : int
        Parts of a word that are written one after the other, the lowest first.

    Members
    -------
    starts, room : ``In(1)``, ``Out(1)``
        A word starts on its way, only while there is ``room``; it is a register.
    w_en, w_data : ``In(parts)``, ``In(width)``
        Parts that arrive; with the last one the word is complete.
    o : ``Out(stream)``
    """
    kind = "credit_queue"

    @dataclass(frozen=True)
    class Parameters:
        depth: int = parameter("d")
        width: int = parameter("w")
        parts: int = parameter("p", 1)

    @staticmethod
    def ports(params):
        return {"starts": In(1), "room": Out(1, init=1), "w_en": In(params.parts), "w_data": In(params.width),
                "o": Out(stream.Signature(params.width))}

    @staticmethod
    def words(cycles, apart=1):
        """Words for which nothing ever waits, if ``cycles`` go by from ``starts`` to ``w_en``, of words ``apart``."""
        return max(-(-(cycles + 4) // apart), 2)

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.memory = memory = Ram(params.depth, params.width, params.parts)
        free, first = (Signal(index(params.depth), name=name) for name in ("free", "first"))
        credits = Signal(range(params.depth + 1), init=params.depth)
        waiting = Signal(range(params.depth + 1))    # words behind the head
        behind = Signal()                            # there are some
        push = Signal()
        read = Signal()
        back = Signal()
        m.d.comb += [
            memory.w_en.eq(self.w_en), memory.w_addr.eq(free), memory.w_data.eq(self.w_data), push.eq(self.w_en[-1]),
            read.eq(behind & (self.o.ready | ~self.o.valid)),
            memory.r_en.eq(read), memory.r_addr.eq(first), self.o.payload.eq(memory.r_data),
        ]
        m.d.sync += [
            waiting.eq(waiting + push - read), behind.eq(push | (waiting > 1) | (behind & ~read)),
            self.o.valid.eq(read | (self.o.valid & ~self.o.ready)),
            back.eq(self.o.valid & self.o.ready), credits.eq(credits + back - self.starts),
            self.room.eq(back | (credits > 1) | (self.room & ~self.starts)),
        ]
        for place, moves in ((free, push), (first, read)):
            with m.If(moves):
                m.d.sync += place.eq(Mux(place == params.depth - 1, 0, place + 1))
        return m
