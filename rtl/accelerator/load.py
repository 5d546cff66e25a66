"""Loads: from DRAM into V, W and P."""

from dataclasses import dataclass

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hbfp.isa.instructions import Memory, Opcode

from ..lib.component import Component
from ..lib.fifo import Fifo
from ..lib.layout import StructLayout, index
from ..lib.names import parameter
from .layouts import ADDRESS_BITS, arguments_layout
from .rotate import Rotate, covered
from .signatures import p_write, unit_members, v_write, w_scales_write, w_write
from .sizes import Sizes
from .walk import OFFSET_BITS, Walk, given, piece_layout, places


def request_layout(params):
    """A burst: its first beat, counted from the base; its beats; whether it is the instruction's last."""
    beat_bits = (params.beat - 1).bit_length()
    return StructLayout({"address": OFFSET_BITS - beat_bits, "beats": range(params.burst + 1), "last": 1})


class Load(Component):
    """Asks for bursts ahead, and writes what comes, in order.

    Bursts of the next instruction are asked for while the beats of the last are still to come; ``reads`` bursts are
    under way at most. A beat goes into its memory in the cycle in which it comes, if that grants it; a run that
    straddles two words of V takes two cycles, and its beat is taken in the second.

    Members
    -------
    instruction, done, fault
        As of every unit; an instruction is taken with the request of its last burst.
    limit, arguments, places : ``In(32)``, ``In(arguments_layout())``, ``In(requests_layout(requests))``
        Bytes of DRAM; see :class:`~rtl.accelerator.walk.Walk`.
    request : ``Out(stream.Signature(request_layout))``
        A burst; taken when the bus takes it.
    beat : ``In(stream)``
        Data, in the order of requests; ``ready`` does not follow from them.
    v, w, w_scales, p : ``Out(write_port)``
        Write ports of the memories.
    begins, misaligned, outside : ``Out(1)``
        See :class:`~rtl.accelerator.walk.Walk`.
    """
    kind, area, apart = "load", "transfers", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        burst: int = parameter("b")
        reads: int = parameter("r")
        v_words: int = parameter("v")
        w_words: int = parameter("w")
        p_words: int = parameter("pw")
        mantissa: int = parameter("m")
        exponent: int = parameter("e")
        height: int = parameter("h")
        packed: int = parameter("p")
        requests: int = parameter("rq", 0)
        registered: bool = parameter("rg", False, rare=True)

        @property
        def extras(self):
            """What its instructions have that not all accelerators' have."""
            return Walk.Parameters.load(self).extras

        @property
        def record_beats(self):
            """Beats of a segment of W in DRAM: its rows, and one of exponents if there are any."""
            return self.height // self.packed + int(self.exponent > 0)

    @staticmethod
    def ports(params):
        return {**unit_members(Opcode.LOAD, params.extras), "limit": In(32), "arguments": In(arguments_layout()),
                **places(params), "begins": Out(1), "misaligned": Out(1), "outside": Out(1),
                "request": Out(stream.Signature(request_layout(params))),
                "beat": In(stream.Signature(8 * params.beat)), "v": Out(v_write(params)), "w": Out(w_write(params)),
                **({"w_scales": Out(w_scales_write(params))} if params.exponent else {}), "p": Out(p_write(params))}

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.walk = walk = Walk.made(Walk.Parameters.load(params))
        layout = piece_layout(walk.params)
        m.submodules.pieces = pieces = Fifo(params.reads, layout.size)
        connect(m, flipped(self.instruction), walk.instruction)
        both = Signal()
        m.d.comb += [
            walk.limit.eq(self.limit), walk.arguments.eq(self.arguments), *given(self, walk),
            self.begins.eq(walk.begins),
            self.misaligned.eq(walk.misaligned), self.outside.eq(walk.outside),
            both.eq(self.request.ready & pieces.i.ready), walk.o.ready.eq(both),
            self.request.valid.eq(walk.o.valid & pieces.i.ready), self.request.payload.address.eq(walk.address),
            self.request.payload.beats.eq(walk.o.payload.beats), self.request.payload.last.eq(walk.o.payload.last),
            pieces.i.valid.eq(walk.o.valid & self.request.ready), pieces.i.payload.eq(walk.o.payload),
        ]

        # Beats as they come: of the piece at the head, number `step`.
        piece = Signal(layout)
        step = Signal(index(params.burst))
        valid = Signal()
        taken = Signal()
        ends = Signal()
        m.d.comb += [
            Value.cast(piece).eq(pieces.o.payload), valid.eq(self.beat.valid & pieces.o.valid),
            ends.eq(step + 1 == piece.beats), taken.eq(self.beat.valid & self.beat.ready),
            pieces.o.ready.eq(taken & ends), self.done.eq(taken & ends & piece.last),
        ]
        with m.If(taken):
            m.d.sync += step.eq(Mux(ends, 0, step + 1))
        place = Signal(range(max(params.record_beats, 2)))    # of the beat in its record, or run
        m.d.comb += place.eq(piece.index + step)
        straddles = self._to_v(m, valid, piece, step, place, taken)
        scales = place == params.record_beats - 1 if params.exponent else Const(0, 1)
        self._to_w(m, valid & (piece.memory == Memory.W), piece, place, scales)
        m.d.comb += [
            self.p.en.eq(valid & (piece.memory == Memory.P)), self.p.addr.eq(piece.place + step),
            Value.cast(self.p.data).eq(self.beat.payload),
        ]
        of_w = Mux(scales, self.w_scales.grant, self.w.grant) if params.exponent else self.w.grant
        granted = Array([self.v.grant & ~straddles, of_w, self.p.grant, 0])
        m.d.comb += self.beat.ready.eq(pieces.o.valid & granted[piece.memory])
        return m

    def _to_v(self, m, valid, piece, step, place, taken):
        """Words, and runs through the rotator; whether the run goes on in the next word."""
        lanes = self.params.lanes
        bits = (lanes - 1).bit_length()
        m.submodules.rotate = rotate = Rotate(lanes)
        first = Signal(bits + 1)
        stop = Signal(bits + 1)
        room = Signal(bits + 1)
        second = Signal()
        upper = Signal()
        straddles = Signal()
        follows = Signal()
        into = Signal(index(lanes))
        m.d.comb += [
            into.eq(piece.place[:bits]), room.eq(lanes - piece.lane), follows.eq(place[0]),
            # Of a run's elements this beat has those from `first` to `stop`, counted from lane 0 of its first word.
            first.eq(into + Mux(follows, room, 0)),
            stop.eq(into + Mux((piece.run > room) & ~follows, room, piece.run)),
            upper.eq(second | first[-1]), straddles.eq(piece.elements & ~upper & (stop > lanes)),
            rotate.i.eq(self.beat.payload), rotate.by.eq(Mux(piece.elements, into - piece.lane, 0)),
            self.v.en.eq(valid & (piece.memory == Memory.V)), Value.cast(self.v.data).eq(Value.cast(rotate.o)),
            self.v.addr.eq(piece.place + step), self.v.mask.eq(~0),
        ]
        with m.If(piece.elements):
            m.d.comb += [self.v.addr.eq(piece.place[bits:] + upper), self.v.mask.eq(covered(lanes, upper, first, stop))]
        with m.If(self.v.en & self.v.grant):
            m.d.sync += second.eq(straddles)
        return straddles

    def _to_w(self, m, valid, piece, place, scales):
        """Records: packed rows of mantissas, then the exponents."""
        params = self.params
        lanes, packed = params.lanes, params.packed
        rows = [[self.beat.payload.word_select(row * lanes + column, 32 // packed)[:params.mantissa]
                 for column in range(lanes)] for row in range(packed)]
        m.d.comb += [
            self.w.en.eq(valid & ~scales), self.w.addr.eq(piece.place[:ADDRESS_BITS] + (place * packed)),
            Value.cast(self.w.data).eq(Cat(value for row in rows for value in row)), self.w.mask.eq(~0),
        ]
        if not params.exponent:
            return
        m.d.comb += [self.w_scales.en.eq(valid & scales), self.w_scales.addr.eq(piece.place)]
        for column in range(lanes):
            half = self.beat.payload.word_select(column, 16)
            narrow = Signal(signed(params.exponent), name=f"exponent{column}")
            m.d.comb += [narrow.eq(half[:15].as_signed()), self.w_scales.data.exponent[column].eq(narrow),
                         self.w_scales.data.invalid[column].eq(half[15])]
