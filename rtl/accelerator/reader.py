"""The bus's reads: one address channel for fetch and loads, data in order."""

from dataclasses import dataclass

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.names import parameter
from .axi import BUS_BITS, constants, read_signature
from .load import request_layout
from .sizes import BurstSizes


def fetch_layout(params):
    """A burst of instructions: number of its first beat on the bus, and its beats."""
    return StructLayout({"address": BUS_BITS - (params.beat - 1).bit_length(), "beats": range(params.burst + 1)})


class Reader(Component):
    """Reads for fetch and load, ``reads`` bursts under way at most; their beats come back in the order of requests.

    In a cycle in which several ask, fetch goes before load, and load before a ring. A request that is taken is on the
    bus in the next cycle. Beats go on in the cycle in which they come. While ``abort`` is high no request is taken, and
    what comes is dropped, but those of a ring; an error response is what makes it high in the next cycle. ``rready``
    follows from no input of the bus in its cycle.

    Members
    -------
    fetch : ``In(stream.Signature(fetch_layout))``
    load : ``In(stream.Signature(request_layout))``
    base : ``In(52)``
        Pages before the first byte of loads.
    fetched : ``Out(1)``
        ``rdata`` is a beat for fetch, which takes it.
    loaded, ready : ``Out(1)``, ``In(1)``
        ``rdata`` is a beat for load; load takes one that is there.
    abort : ``In(1)``
    idle : ``Out(1)``
        Nothing is under way.
    error, of_load : ``Out(1)``
        This cycle's beat is an error response, and no ring's; it belongs to a load.
    ring, described : ``In(stream.Signature(fetch_layout))``, ``Out(1)``
        With ``dispatch_ring``: requests of a ring of descriptors; ``rdata`` is a beat for it, with ``rresp``.
    arid ... rready
        The read channels of AXI4.
    """
    kind, area, apart = "reader", "transfers", True

    @dataclass(frozen=True)
    class Parameters(BurstSizes):
        lanes: int = parameter("l")
        burst: int = parameter("b")
        reads: int = parameter("r")
        dispatch_ring: bool = parameter("rg", False)

    @staticmethod
    def ports(params):
        ring = {"ring": In(stream.Signature(fetch_layout(params))), "described": Out(1)} if params.dispatch_ring else {}
        return {"fetch": In(stream.Signature(fetch_layout(params))),
                "load": In(stream.Signature(request_layout(params))), "base": In(BUS_BITS - 12), "fetched": Out(1),
                "loaded": Out(1), "ready": In(1), "abort": In(1), "idle": Out(1), "error": Out(1), "of_load": Out(1),
                **ring, **read_signature(params.beat).members}

    def body(self, platform):
        m, params = Module(), self.params
        low = (params.beat - 1).bit_length()
        address = Signal(BUS_BITS - low, reset_less=True)
        length = Signal(index(params.burst), reset_less=True)
        under_way = Signal(range(params.reads + 1))
        loads = Signal(params.reads)    # of the bursts under way, the oldest lowest: whether it is a load's
        room = (~self.arvalid | self.arready) & (under_way != params.reads)
        free = Signal()
        taken = free & (self.fetch.valid | self.load.valid)
        push = Signal()
        pop = Signal()
        of_load, arrives = push & ~self.fetch.valid, self.rvalid
        if params.dispatch_ring:
            of_ring, pushes = self._ring(m, room, pop, under_way)
            of_load, arrives = of_load & ~pushes, arrives & ~of_ring
        m.d.comb += [
            free.eq(room & ~self.abort), self.fetch.ready.eq(free), self.load.ready.eq(free & ~self.fetch.valid),
            push.eq(taken | pushes if params.dispatch_ring else taken),
            pop.eq(self.rvalid & self.rready & self.rlast),
            self.araddr.eq(address << low), self.arlen.eq(length), self.idle.eq(~under_way.any()),
            *constants("ar", self, params.beat),
        ]
        with m.If(self.arready):
            m.d.sync += self.arvalid.eq(0)
        with m.If(push):
            from_base = self.load.payload.address + (self.base << 12 - low)
            first = Mux(self.fetch.valid, self.fetch.payload.address, from_base)
            beats = Mux(self.fetch.valid, self.fetch.payload.beats, self.load.payload.beats)
            if params.dispatch_ring:
                ring = self.ring.payload
                first, beats = Mux(pushes, ring.address, first), Mux(pushes, ring.beats, beats)
            m.d.sync += [self.arvalid.eq(1), address.eq(first), length.eq(beats - 1)]
        after = Signal.like(under_way)
        shifted = Signal.like(loads)
        m.d.comb += [after.eq(under_way - pop), shifted.eq(Mux(pop, loads >> 1, loads))]
        m.d.sync += [under_way.eq(after + push),
                     loads.eq(shifted | Mux(of_load, Const(1) << after, 0))]

        load = loads[0]
        good = arrives & ~self.rresp[1] & ~self.abort & under_way.any()
        m.d.comb += [
            self.of_load.eq(load), self.error.eq(arrives & self.rresp[1] & ~self.abort),
            self.fetched.eq(good & ~load), self.loaded.eq(good & load),
            self.rready.eq(self.abort | ~load | self.ready),
        ]
        return m

    def _ring(self, m, room, pop, under_way):
        """Bursts of a ring: whether this cycle's beat is of one, and whether one is taken."""
        rings = Signal(self.params.reads)    # of the bursts under way, the oldest lowest: whether it is a ring's
        pushes = Signal()
        m.d.comb += [
            self.ring.ready.eq(room & ~self.fetch.valid & ~self.load.valid),
            pushes.eq(self.ring.valid & self.ring.ready),
            self.described.eq(self.rvalid & rings[0] & under_way.any()),
        ]
        m.d.sync += rings.eq(Mux(pop, rings >> 1, rings) | Mux(pushes, Const(1) << (under_way - pop)[:len(under_way)],
                                                               0))
        return rings[0], pushes
