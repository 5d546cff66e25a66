"""The bus's writes."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.fifo import Fifo
from ..lib.layout import index
from ..lib.names import parameter
from .axi import BUS_BITS, constants, write_signature
from .load import request_layout
from .sizes import BurstSizes
from .store import beat_layout

#: Beats that wait for the bus.
BEATS = 4


class Writer(Component):
    """Writes for store, ``reads`` bursts under way at most, in order.

    A request that is taken is on the bus in the next cycle; the first beat of a burst is there no sooner than its
    address, and two cycles after it came. While ``abort`` is high nothing is taken; a beat that is offered on the bus
    stays as it is, and all other beats of the bursts that were announced go out without strobes: those that wait
    here, and then as many as are missing, which show the last one's data.

    Members
    -------
    request : ``In(stream.Signature(request_layout))``
    beat, room : ``In(stream.Signature(beat_layout))``, ``Out(1)``
        See :class:`~rtl.accelerator.store.Store`.
    base : ``In(52)``
        Pages before the first byte of stores.
    written : ``Out(1)``
        The response to the last burst of an instruction is there.
    abort : ``In(1)``
    idle : ``Out(1)``
        Nothing is under way.
    error : ``Out(1)``
        This cycle's response is an error.
    awid ... bready
        The write channels of AXI4.
    """
    kind, area, apart = "writer", "transfers", True

    @dataclass(frozen=True)
    class Parameters(BurstSizes):
        lanes: int = parameter("l")
        burst: int = parameter("b")
        reads: int = parameter("r")

    @staticmethod
    def ports(params):
        return {"request": In(stream.Signature(request_layout(params))),
                "beat": In(stream.Signature(beat_layout(params))), "room": Out(1), "base": In(BUS_BITS - 12),
                "written": Out(1), "abort": In(1), "idle": Out(1), "error": Out(1),
                **write_signature(params.beat).members}

    def body(self, platform):
        m, params = Module(), self.params
        low = (params.beat - 1).bit_length()
        address = Signal(BUS_BITS - low, reset_less=True)
        length = Signal(index(params.burst), reset_less=True)    # at least a bit, which a memory needs
        under_way = Signal(range(params.reads + 1))
        lasts = Signal(params.reads)    # of the bursts under way, the oldest lowest: whether its instruction ends
        free = Signal()
        push = Signal()
        pop = Signal()
        # Lengths of bursts that have beats to come.
        m.submodules.lengths = lengths = Fifo(params.reads, len(length))
        m.d.comb += [
            free.eq((~self.awvalid | self.awready) & (under_way != params.reads) & ~self.abort),
            self.request.ready.eq(free), push.eq(free & self.request.valid), pop.eq(self.bvalid & self.bready),
            lengths.i.valid.eq(push), lengths.i.payload.eq(self.request.payload.beats - 1),
            self.awaddr.eq(address << low), self.awlen.eq(length), self.idle.eq(~under_way.any()),
            *constants("aw", self, params.beat),
            self.bready.eq(1), self.error.eq(self.bvalid & self.bresp[1] & ~self.abort),
            self.written.eq(pop & lasts[0] & ~self.abort & ~self.bresp[1]),
        ]
        with m.If(self.awready):
            m.d.sync += self.awvalid.eq(0)
        with m.If(push):
            m.d.sync += [self.awvalid.eq(1), address.eq(self.request.payload.address + (self.base << 12 - low)),
                         length.eq(self.request.payload.beats - 1)]
        after = Signal.like(under_way)
        shifted = Signal.like(lasts)
        m.d.comb += [after.eq(under_way - pop), shifted.eq(Mux(pop, lasts >> 1, lasts))]
        m.d.sync += [under_way.eq(after + push),
                     lasts.eq(shifted | Mux(push & self.request.payload.last, Const(1) << after, 0))]
        self._data(m, lengths)
        return m

    def _data(self, m, lengths):
        """The beats, each with its place in its burst."""
        params = self.params
        layout = beat_layout(params)
        m.submodules.beats = beats = Fifo(BEATS, layout.size)
        head = Signal(layout)
        held = Signal(range(BEATS + 1))
        sent = Signal(index(params.burst))
        filling = Signal()
        goes = Signal()
        ends = Signal()
        m.d.comb += [
            beats.i.valid.eq(self.beat.valid & ~self.abort), beats.i.payload.eq(self.beat.payload),
            self.beat.ready.eq(1), self.room.eq(held + self.beat.valid < BEATS),
            Cat(head).eq(beats.o.payload), ends.eq(sent == lengths.o.payload), goes.eq(self.wvalid & self.wready),
            self.wdata.eq(head.data),
            self.wstrb.eq(Cat(lane.replicate(4) for lane in head.lanes) & ~filling.replicate(params.beat)),
            self.wlast.eq(ends), self.wvalid.eq(lengths.o.valid & (beats.o.valid | filling)),
            lengths.o.ready.eq(goes & ends), beats.o.ready.eq(goes),
        ]
        m.d.sync += [held.eq(held + (beats.i.valid & beats.i.ready) - (beats.o.valid & beats.o.ready)),
                     filling.eq(self.abort & (filling | ~self.wvalid | self.wready))]
        with m.If(goes):
            m.d.sync += sent.eq(Mux(ends, 0, sent + 1))
