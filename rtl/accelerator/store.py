"""Stores: from V to DRAM."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hbfp.isa.instructions import Opcode

from ..lib.component import Component
from ..lib.fifo import Fifo
from ..lib.layout import StructLayout, index
from ..lib.names import parameter
from .layouts import arguments_layout
from .load import request_layout
from .rotate import Rotate, covered
from .signatures import unit_members, v_read
from .sizes import Sizes
from .walk import Walk, given, piece_layout, places

#: Pieces that wait for V.
PIECES = 4


def beat_layout(params):
    """A beat on its way to DRAM, and the lanes that are written."""
    return StructLayout({"data": 32 * params.lanes, "lanes": params.lanes})


class Store(Component):
    """Announces bursts ahead, and reads V for their beats, one a cycle, in order.

    A word of V that is granted in one cycle goes out, through the rotator, in the next. The second beat of a run reads
    its word again. An instruction is done when the bus has written all of it (``written``).

    Members
    -------
    instruction, done, fault
        As of every unit; an instruction is taken with the request of its last burst.
    limit, arguments, places, begins, misaligned, outside, request
        See :class:`~rtl.accelerator.load.Load`.
    v : ``Out(v_read)``
        A read port of V.
    room : ``In(1)``
        ``beat`` can be taken in the next cycle.
    beat : ``Out(stream.Signature(beat_layout))``
        Data; taken at once.
    written : ``In(1)``
        An instruction's last burst is written.
    """
    kind, area, apart = "store", "transfers", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        burst: int = parameter("b")
        v_words: int = parameter("v")
        requests: int = parameter("rq", 0)
        registered: bool = parameter("rg", False, rare=True)

        @property
        def extras(self):
            """What its instructions have that not all accelerators' have."""
            return Walk.Parameters.store(self).extras

    @staticmethod
    def ports(params):
        return {**unit_members(Opcode.STORE, params.extras), "limit": In(32), "arguments": In(arguments_layout()),
                **places(params), "begins": Out(1), "misaligned": Out(1), "outside": Out(1),
                "request": Out(stream.Signature(request_layout(params))),
                "v": Out(v_read(params)), "room": In(1), "beat": Out(stream.Signature(beat_layout(params))),
                "written": In(1)}

    def body(self, platform):
        m, params = Module(), self.params
        lanes = params.lanes
        m.submodules.walk = walk = Walk.made(Walk.Parameters.store(params))
        layout = piece_layout(walk.params)
        m.submodules.pieces = pieces = Fifo(PIECES, layout.size)
        connect(m, flipped(self.instruction), walk.instruction)
        m.d.comb += [
            walk.limit.eq(self.limit), walk.arguments.eq(self.arguments), *given(self, walk),
            self.begins.eq(walk.begins),
            self.misaligned.eq(walk.misaligned), self.outside.eq(walk.outside), self.done.eq(self.written),
            walk.o.ready.eq(self.request.ready & pieces.i.ready),
            self.request.valid.eq(walk.o.valid & pieces.i.ready), self.request.payload.address.eq(walk.address),
            self.request.payload.beats.eq(walk.o.payload.beats), self.request.payload.last.eq(walk.o.payload.last),
            pieces.i.valid.eq(walk.o.valid & self.request.ready), pieces.i.payload.eq(walk.o.payload),
        ]
        piece = Signal(layout)
        step = Signal(index(params.burst))
        read = Signal()
        ends = Signal()
        upper = Signal()
        m.d.comb += [
            Value.cast(piece).eq(pieces.o.payload), self.v.en.eq(pieces.o.valid & self.room),
            self.v.addr.eq(piece.place + Mux(piece.elements, 0, step)), read.eq(self.v.en & self.v.grant),
            ends.eq(step + 1 == piece.beats), pieces.o.ready.eq(read & ends),
            upper.eq((piece.index + step)[0]),
        ]
        with m.If(read):
            m.d.sync += step.eq(Mux(ends, 0, step + 1))

        # The word is there in the next cycle.
        m.submodules.rotate = rotate = Rotate(lanes)
        by = Signal.like(rotate.by)
        mask = Signal(lanes)
        m.d.sync += self.beat.valid.eq(read)
        with m.If(read):
            m.d.sync += [by.eq(Mux(piece.elements, piece.lane, 0)), mask.eq(Mux(
                piece.elements, covered(lanes, upper, piece.lane, piece.lane + piece.run), ~0))]
        m.d.comb += [rotate.i.eq(self.v.data), rotate.by.eq(by), self.beat.payload.lanes.eq(mask),
                     self.beat.payload.data.eq(rotate.o)]
        return m
