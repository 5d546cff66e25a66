"""Counters of events in a memory, of two contexts that change hands at any time."""

from dataclasses import dataclass

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import index
from ..lib.memory import Ram
from ..lib.names import parameter

#: Bits of what is counted until the memory knows of it; a counter's turn comes at least every 2^6 cycles without reads.
LOCAL_BITS = 7


class CountersApart(Component):
    """As :class:`~rtl.accelerator.counters.Counters` of two contexts, whose owner may change in any cycle.

    Each context has few bits of its own for each counter. They are added to the memory in sweeps, one counter a cycle:
    those of the owner again and again, those of the other once behind a change. So a counter's turn comes within two
    sweeps, and what is read lacks at most the last 4 ``count`` cycles, reads of the host included.

    Parameters
    ----------
    count : int
        Counters, 2 to 24.

    Members
    -------
    clear, owner, events, r_en, r_addr, r_data, r_known
        See :class:`~rtl.accelerator.counters.Counters`; the context that is cleared is the owner of the next cycle.
    """
    kind, area, apart = "counters_apart", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters:
        count: int = parameter("n")

    @staticmethod
    def ports(params):
        return {"clear": In(1), "owner": In(1), "events": In(params.count), "r_en": In(1),
                "r_addr": In(index(params.count).width + 1), "r_data": Out(32), "r_known": Out(1)}

    def body(self, platform):
        m, count = Module(), self.params.count
        low = index(count).width
        m.submodules.memory = memory = Ram(2 << low, 32)
        local = [[Signal(LOCAL_BITS, name=f"local{context}_{n}") for n in range(count)] for context in range(2)]
        # Counters that the memory does not have, as they are 0.
        fresh = [Signal(count, name=f"fresh{context}", init=(1 << count) - 1) for context in range(2)]
        turn = Signal(index(count))
        which = Signal()      # whose sweep it is
        last = Signal()       # the owner of the cycle before
        other = Signal()      # the other's bits are still to be swept
        clears = Signal()     # the owner's counters are 0 from this cycle on
        takes = Signal()
        written = Signal(low + 1)
        adds = Signal()
        first = Signal()
        amount = Signal(LOCAL_BITS)
        asked = Signal()      # the counter that is read is not in memory, or only from the end of this cycle on
        unwritten = Signal()
        m.d.comb += [
            memory.r_en.eq(1), memory.r_addr.eq(Mux(self.r_en, self.r_addr, Cat(turn, which))),
            self.r_data.eq(memory.r_data), memory.w_en.eq(adds), memory.w_addr.eq(written),
            memory.w_data.eq(Mux(first, 0, memory.r_data) + amount), takes.eq(~self.r_en & ~clears),
            asked.eq(Mux(self.r_addr[-1], *(Array(fresh[context])[self.r_addr[:low]] for context in (1, 0)))),
            unwritten.eq((clears & (self.owner == self.r_addr[-1])) | (adds & first & (written == self.r_addr))),
        ]
        m.d.sync += [clears.eq(self.clear), last.eq(self.owner), adds.eq(takes), written.eq(Cat(turn, which)),
                     self.r_known.eq(~asked & ~unwritten)]
        with m.If(takes):
            m.d.sync += [turn.eq(Mux(turn == count - 1, 0, turn + 1)),
                         amount.eq(Mux(which, *(Array(local[context])[turn] for context in (1, 0)))),
                         first.eq(Mux(which, *(Array(fresh[context])[turn] for context in (1, 0))))]
            with m.If(turn == count - 1):
                m.d.sync += [which.eq(self.owner ^ other), other.eq(0)]
        with m.If(last != self.owner):
            m.d.sync += other.eq(1)
        for context in range(2):
            owns = self.owner == context
            for n, value in enumerate(local[context]):
                mine = takes & (which == context) & (turn == n)
                m.d.sync += value.eq(Mux(mine | clears & owns, 0, value) + (self.events[n] & owns))
                with m.If(clears & owns):
                    m.d.sync += fresh[context][n].eq(1)
                with m.Elif(mine):
                    m.d.sync += fresh[context][n].eq(0)
        return m
