"""Counters in a memory: one changes at a time, and they stop at their end."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.dispatch import DispatchUnit

from ..lib.component import Component
from ..lib.memory import Ram
from .shapes import tally_layout


class Tally(Component):
    """The dispatcher's counters.

    After reset all counters are set to 0, one a cycle; until then nothing is taken. A change takes two cycles. In a
    cycle in which several ask, ``i_first`` goes before ``i_second``, and both before the host's ``i_address``.
    Golden twin: :class:`golden.perf.dispatch.twin.Tally`.

    Parameters
    ----------
    depth, address, tag, time, counter : int
        See :class:`golden.spec.dispatch.DispatchUnit`.

    Members
    -------
    i_first, i_second : ``In(stream.Signature(tally_layout))``
        Changes of counters; each is taken in its second cycle.
    i_address : ``In(stream)``
        A counter to read; one that does not exist reads as 0.
    o_value : ``Out(stream)``
        Its value, two cycles later or more.
    cleared : ``Out(1)``
        All counters have been set to 0.
    """
    kind = "dispatch_tally"
    Parameters = DispatchUnit

    @staticmethod
    def ports(unit):
        change = In(stream.Signature(tally_layout(unit)))
        return {
            "i_first": change, "i_second": change, "i_address": In(stream.Signature(range(unit.counters))),
            "o_value": Out(stream.Signature(unit.counter)), "cleared": Out(1),
        }

    def body(self, platform):
        m, unit = Module(), self.params
        m.submodules.memory = memory = Ram(unit.counters, unit.counter)
        clearing = Signal(range(unit.counters + 1), init=unit.counters)    # words still to be set to 0
        cleared = self.cleared
        m.d.comb += cleared.eq(clearing == 0)
        with m.If(~cleared):
            m.d.sync += clearing.eq(clearing - 1)

        # Who is served is decided in the first cycle and kept for the second.
        second_cycle = Signal()
        first = Signal()
        second = Signal()
        kept_first = Signal()
        kept_second = Signal()
        with m.If(second_cycle):
            m.d.comb += [first.eq(kept_first), second.eq(kept_second)]
        with m.Else():
            m.d.comb += [first.eq(self.i_first.valid), second.eq(self.i_second.valid & ~self.i_first.valid)]
        change = Signal(tally_layout(unit))
        m.d.comb += change.eq(Mux(first, self.i_first.payload, self.i_second.payload))
        wants_value = Signal()
        changes = Signal()
        reading = Signal()
        offered = Signal()
        m.d.comb += [
            wants_value.eq(self.i_address.valid & ~offered & ~reading & ~first & ~second & ~second_cycle & cleared),
            changes.eq((first | second) & cleared),
            memory.r_en.eq((changes & ~second_cycle) | wants_value),
            memory.r_addr.eq(Mux(wants_value, self.i_address.payload, change.address)),
            self.i_address.ready.eq(wants_value),
            self.i_first.ready.eq(second_cycle & first), self.i_second.ready.eq(second_cycle & second),
        ]
        m.d.sync += [second_cycle.eq(changes & ~second_cycle), kept_first.eq(first), kept_second.eq(second)]

        # The sum and the larger of the two, each cut off at the end of the counter.
        width = max(unit.counter, unit.time) + 1
        total = Signal(width)
        larger = Signal()
        result = Signal(width)
        m.d.comb += [
            total.eq(memory.r_data + change.amount), larger.eq(change.amount > memory.r_data),
            result.eq(Mux(~change.largest, total, Mux(larger, change.amount, memory.r_data))),
            memory.w_en.eq(second_cycle | ~cleared),
            memory.w_addr.eq(Mux(cleared, change.address, clearing - 1)),
            memory.w_data.eq(Mux(cleared, result[:unit.counter] | result[unit.counter:].any().replicate(unit.counter),
                                 0)),
        ]

        exists = Signal()
        m.d.sync += [reading.eq(wants_value), exists.eq(self.i_address.payload < unit.counters)]
        value = Signal(unit.counter, reset_less=True)
        with m.If(reading):
            m.d.sync += [value.eq(Mux(exists, memory.r_data, 0)), offered.eq(1)]
        with m.Elif(self.o_value.ready):
            m.d.sync += offered.eq(0)
        m.d.comb += [self.o_value.valid.eq(offered), self.o_value.payload.eq(value)]
        return m
