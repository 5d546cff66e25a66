"""Fetch: instructions ahead of decode."""

from dataclasses import dataclass, replace

from amaranth import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import BYTES, WORD

from ..lib.component import Component
from ..lib.memory import Ram
from ..lib.names import parameter
from .axi import BUS_BITS
from .queue import NUMBER_BITS
from .reader import fetch_layout
from .sizes import Sizes

#: Instructions that are held ahead, and those of the longest burst.
AHEAD, CHUNK = 16, 8


class Fetch(Component):
    """Reads a program from its start to its end, and gives its words in order.

    It begins with the first cycle after reset, with several contexts at the instruction :attr:`place`. A burst has
    :data:`CHUNK` instructions or ``burst`` beats, whichever is less; ``burst`` is the largest power of two that the
    accelerator's allows. It ends at a multiple of that, or with the program. The next is asked for when as many beats
    are free. A beat that comes in cycle t is offered in cycle t + 2 at the earliest, one instruction a cycle.

    Members
    -------
    origin : ``In(64)``
        Byte address, a multiple of 64 and of the beat.
    instructions : ``In(32)``
        How many instructions the program has.
    place : ``In(24)``
        The first that is wanted.
    request : ``Out(stream.Signature(fetch_layout))``
    valid, data : ``In``
        A beat has come.
    o : ``Out(stream)``
        Instructions.
    """
    kind, area, apart = "fetch", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        burst: int = parameter("b")
        contexts: int = parameter("cx", 1)

        @classmethod
        def of(cls, system):
            """The parameters of an accelerator's fetch."""
            sizes = super().of(system)
            return replace(sizes, burst=1 << sizes.burst.bit_length() - 1)

    @staticmethod
    def ports(params):
        several = {"place": In(NUMBER_BITS)} if params.contexts > 1 else {}
        return {"origin": In(BUS_BITS), "instructions": In(32), **several,
                "request": Out(stream.Signature(fetch_layout(params))), "valid": In(1),
                "data": In(8 * params.beat), "o": Out(stream.Signature(WORD))}

    def body(self, platform):
        m, params = Module(), self.params
        low = (params.beat - 1).bit_length()
        width = max(WORD, 8 * params.beat)
        parts, words = width // (8 * params.beat), width // WORD    # beats and instructions of a word of the memory
        depth = AHEAD // words
        m.submodules.memory = memory = Ram(depth, width, parts)
        chunk = min(CHUNK * BYTES // params.beat, params.burst)
        began = Signal()
        address = Signal(BUS_BITS - low, reset_less=True)
        left = Signal(33, reset_less=True)    # beats of the program to ask for
        free = Signal(range(depth * parts + 1), init=depth * parts)
        beats = Signal(range(chunk + 1))
        aligned = Signal(range(chunk + 1))
        asks = Signal()
        read = Signal()
        m.d.comb += [
            aligned.eq(chunk - (address & chunk - 1)), beats.eq(Mux(left < aligned, left, aligned)),
            self.request.valid.eq(began & left.any() & (free >= chunk)), self.request.payload.address.eq(address),
            self.request.payload.beats.eq(beats), asks.eq(self.request.valid & self.request.ready),
        ]
        whole = self.instructions if words == 1 else (self.instructions + 1) >> 1    # words of the program
        skipped = (self.place >> words - 1) * parts if self.params.contexts > 1 else 0
        with m.If(~began):
            m.d.sync += [began.eq(1), address.eq((self.origin >> low) + skipped), left.eq(whole * parts - skipped)]
        with m.Elif(asks):
            m.d.sync += [address.eq(address + beats), left.eq(left - beats)]
        m.d.sync += free.eq(free - Mux(asks, beats, 0) + Mux(read, parts, 0))
        self._hold(m, memory, began, read, parts, words, depth)
        return m

    def _hold(self, m, memory, began, read, parts, words, depth):
        """The memory as a queue: beats in, instructions out."""
        place = Signal(range(depth))
        part = Signal(range(max(parts, 2)))
        first = Signal(range(depth))
        behind = Signal(range(depth + 1))
        half = Signal()
        valid = Signal()
        whole = Signal()
        pop = Signal()
        m.d.comb += [
            memory.w_en.eq(Mux(self.valid, 1 << part, 0)), memory.w_addr.eq(place),
            memory.w_data.eq(self.data.replicate(parts)), whole.eq(self.valid & (part == parts - 1)),
            memory.r_en.eq(read), memory.r_addr.eq(first), read.eq(behind.any() & (pop | ~valid)),
            self.o.valid.eq(valid), self.o.payload.eq(memory.r_data[:WORD]),
            pop.eq(valid & self.o.ready & (half == words - 1)),
        ]
        if words == 2 and self.params.contexts > 1:
            with m.If(~began):
                m.d.sync += half.eq(self.place[0])
        if words == 2:
            m.d.comb += self.o.payload.eq(Mux(half, memory.r_data[WORD:], memory.r_data[:WORD]))
            with m.If(valid & self.o.ready):
                m.d.sync += half.eq(~half)
        with m.If(self.valid):
            m.d.sync += part.eq(Mux(whole, 0, part + 1))
        with m.If(whole):
            m.d.sync += place.eq(place + 1)
        with m.If(read):
            m.d.sync += first.eq(first + 1)
        m.d.sync += [behind.eq(behind + whole - read), valid.eq(read | (valid & ~pop))]
