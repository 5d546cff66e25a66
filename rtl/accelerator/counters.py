"""Counters of events in a memory."""

from dataclasses import dataclass

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import index
from ..lib.memory import Ram
from ..lib.names import parameter

#: Bits of what is counted until the memory knows of it; a counter's turn comes at least every 2^5 cycles.
LOCAL_BITS = 6


class Counters(Component):
    """Counts cycles in which an event is there; each counter has 32 bits and wraps.

    Events are counted in a few bits, which are added to the memory in turns, one counter a cycle, so that what is read
    lacks at most the last 2 ``count`` cycles. A turn is put off by a cycle when the host reads. With several contexts
    there are so many of each counter; events count for the one of ``owner``, which changes only where there has
    been no event for 2 ``count`` cycles.

    Parameters
    ----------
    count : int
        Counters, 2 to 24.
    contexts : int
        1 or 2.

    Members
    -------
    clear : ``In(1)``
        All counters of the context that is there in the next cycle are 0 from then on, as all are after reset.
    owner : ``In(1)``
        Where there are several.
    events : ``In(count)``
        Bit n: counter n counts this cycle.
    r_en, r_addr : ``In``
        A counter is read; its value is there in the next cycle. The context stands above the counter's number.
    r_data, r_known : ``Out(32)``, ``Out(1)``
        The value; while the memory does not have it yet it is not known and 0, whatever ``r_data`` is.
    """
    kind, area, apart = "counters", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters:
        count: int = parameter("n")
        contexts: int = parameter("cx", 1)

    @staticmethod
    def ports(params):
        context = {"owner": In(1)} if params.contexts > 1 else {}
        return {"clear": In(1), **context, "events": In(params.count), "r_en": In(1),
                "r_addr": In(index(params.count).width + params.contexts - 1), "r_data": Out(32), "r_known": Out(1)}

    def body(self, platform):
        m, count = Module(), self.params.count
        low = index(count).width
        m.submodules.memory = memory = Ram(count if self.params.contexts == 1 else 2 << low, 32)
        context, behind = ([self.owner], [Signal(name="behind")]) if self.params.contexts > 1 else ([], [])
        m.d.sync += [later.eq(now) for later, now in zip(behind, context, strict=True)]
        local = [Signal(LOCAL_BITS, name=f"local{n}") for n in range(count)]
        turn = Signal(index(count))
        written = Signal(index(count))
        fresh = Signal(init=1)    # not all turns have come since all were cleared
        adds = Signal()
        first = Signal()
        amount = Signal(LOCAL_BITS)
        m.d.comb += [
            memory.r_en.eq(1), memory.r_addr.eq(Mux(self.r_en, self.r_addr, Cat(turn, *context))),
            self.r_data.eq(memory.r_data), memory.w_en.eq(adds), memory.w_addr.eq(Cat(written, *behind)),
            memory.w_data.eq(Mux(first, 0, memory.r_data) + amount),
        ]
        choices = Array([*local, *[0] * (2 ** len(turn) - count)])
        m.d.sync += [adds.eq(~self.r_en & ~self.clear), written.eq(turn), amount.eq(choices[turn]), first.eq(fresh)]
        self._know(m, fresh | first)
        for n, value in enumerate(local):
            mine = ~self.r_en & (turn == n)
            m.d.sync += value.eq(Mux(self.clear, 0, Mux(mine, 0, value) + self.events[n]))
        with m.If(self.clear):
            m.d.sync += [turn.eq(0), fresh.eq(1)]
        with m.Elif(~self.r_en):
            m.d.sync += turn.eq(Mux(turn == count - 1, 0, turn + 1))
            with m.If(turn == count - 1):
                m.d.sync += fresh.eq(0)
        return m

    def _know(self, m, sweeps):
        """Whether the memory has what is read; while it ``sweeps`` it has not all of the context that is there."""
        if self.params.contexts == 1:
            m.d.sync += self.r_known.eq(~sweeps)
            return
        has = [Signal(name=f"has{context}") for context in range(self.params.contexts)]    # it was swept since reset
        for context, swept in enumerate(has):
            with m.If(~sweeps & (self.owner == context)):
                m.d.sync += swept.eq(1)
        asked = self.r_addr[-1]
        m.d.sync += self.r_known.eq(Mux(asked, has[1], has[0]) & ~(sweeps & (asked == self.owner)))
