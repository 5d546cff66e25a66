"""Reports the requests of a batch that is done, one after the other, and counts their latencies."""

from enum import IntEnum

from amaranth import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.dispatch import Counter, DispatchUnit

from ..lib.component import Component
from ..lib.layout import index
from .shapes import arrival_layout, clock_bits, completion_layout, tally_layout


class State(IntEnum):
    """What the report does for the oldest request of the batch."""
    READ, OFFER, COUNT = range(3)


class Report(Component):
    """Reads the arrivals of a batch's requests, offers their completions, and has four counters changed for each.

    Golden twin: :class:`golden.perf.dispatch.twin.Report`.

    Parameters
    ----------
    depth, address, tag, time, counter : int
        See :class:`golden.spec.dispatch.DispatchUnit`.

    Members
    -------
    begins : ``In(1)``
        A batch is done; only while not ``busy``.
    count, started, finished : ``In``
        Its requests, and its times; looked at with ``begins``.
    aged, border : ``In(1)``, ``In``
        The oldest of them is older than 2^time cycles, and the place of the first request that is not; likewise.
    busy : ``Out(1)``
    r_en, r_addr, r_data : ``Out(1)``, ``Out``, ``In(arrival_layout)``
        Reads arrivals; ``r_data`` comes a cycle later and stays.
    freed : ``Out(1)``
        The place of the oldest request is free again.
    excess : ``Out(1)``
        Its latency is 2^time cycles or more, and counts as 2^time - 1; looked at with ``freed``.
    o_completion : ``Out(stream.Signature(completion_layout))``
    o_tally : ``Out(stream.Signature(tally_layout))``
    """
    kind = "dispatch_report"
    Parameters = DispatchUnit

    @staticmethod
    def ports(unit):
        return {
            "begins": In(1), "count": In(unit.batch_bits), "started": In(unit.time),
            "finished": In(clock_bits(unit)), "aged": In(1), "border": In(index(unit.depth)), "excess": Out(1),
            "busy": Out(1), "r_en": Out(1), "r_addr": Out(index(unit.depth)),
            "r_data": In(arrival_layout(unit)), "freed": Out(1),
            "o_completion": Out(stream.Signature(completion_layout(unit))),
            "o_tally": Out(stream.Signature(tally_layout(unit))),
        }

    def body(self, platform):
        m, unit = Module(), self.params
        left = Signal(unit.batch_bits)
        oldest = Signal(index(unit.depth))
        started = Signal(unit.time, reset_less=True)
        finished = Signal(clock_bits(unit), reset_less=True)
        aged = Signal(reset_less=True)
        border = Signal(index(unit.depth), reset_less=True)
        arrival = self.r_data
        age = Signal(clock_bits(unit))
        latency = Signal(unit.time)
        size = Signal(range(unit.time + 1))
        m.d.comb += [
            self.busy.eq(left != 0), self.r_addr.eq(oldest), age.eq(finished - arrival.arrived),
            self.excess.eq(aged | age[-1]), latency.eq(age | self.excess.replicate(unit.time)),
            self.o_completion.payload.tag.eq(arrival.tag), self.o_completion.payload.arrived.eq(arrival.arrived),
            self.o_completion.payload.started.eq(started), self.o_completion.payload.finished.eq(finished),
        ]
        for bit in range(unit.time):
            with m.If(latency[bit]):
                m.d.comb += size.eq(bit + 1)
        with m.If(self.begins):
            m.d.sync += [left.eq(self.count), started.eq(self.started), finished.eq(self.finished),
                         aged.eq(self.aged), border.eq(self.border)]

        #: Counter, amount and whether the larger one is kept, in the order in which they change.
        steps = ((Counter.COMPLETED, 1, 0), (unit.histogram(0) + size, 1, 0), (Counter.LATENCY, latency, 0),
                 (Counter.LONGEST, latency, 1))
        step = Signal(range(len(steps)))
        for number, (address, amount, largest) in enumerate(steps):
            with m.If(step == number):
                m.d.comb += [self.o_tally.payload.address.eq(address), self.o_tally.payload.amount.eq(amount),
                             self.o_tally.payload.largest.eq(largest)]
        state = Signal(State)
        with m.If(state == State.READ):
            m.d.comb += self.r_en.eq(self.busy)
            with m.If(self.busy):
                m.d.sync += state.eq(State.OFFER)
        with m.Elif(state == State.OFFER):
            m.d.comb += self.o_completion.valid.eq(1)
            with m.If(self.o_completion.ready):
                m.d.comb += self.freed.eq(1)
                m.d.sync += oldest.eq(oldest + 1)
                m.d.sync += state.eq(State.COUNT)
        with m.Else():
            m.d.comb += self.o_tally.valid.eq(1)
            with m.If(self.o_tally.ready):
                m.d.sync += step.eq(Mux(step == len(steps) - 1, 0, step + 1))
                with m.If(step == len(steps) - 1):
                    m.d.sync += left.eq(left - 1)
                    m.d.sync += state.eq(State.READ)
                    with m.If(oldest == border):
                        m.d.sync += aged.eq(0)
        return m
