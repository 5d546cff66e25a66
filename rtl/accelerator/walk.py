"""Where a load or a store goes: the loops of a transfer as bursts."""

from dataclasses import dataclass
from enum import IntEnum

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import Memory, Opcode

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.names import parameter
from ..lib.skew import delay
from .layouts import ADDRESS_BITS, arguments_layout, instruction_layout, requests_layout

#: Bytes that no burst may cross.
PAGE = 4096
#: Bits of an offset in DRAM, and of the number of an element of V.
OFFSET_BITS, ELEMENT_BITS = 32, 22


class State(IntEnum):
    """What the walker does."""
    START, SEGMENT, BURST, FAULT = range(4)


def piece_layout(params):
    """What a burst is to its instruction.

    ``place``: word, row or element where it starts in the memory; of a record and a run, where these start. ``index``:
    beats of the record or run that came before it. ``lane``: place of a run's first number in its beat. ``run``: its
    numbers. ``last``: the instruction has no more.
    """
    return StructLayout({"memory": 2, "elements": 1, "place": ELEMENT_BITS, "lane": index(params.lanes),
                         "run": range(params.lanes + 1), "index": range(max(params.record, 2)),
                         "beats": range(params.burst + 1), "last": 1})


def places(params):
    """The port with the places of a batch's requests, where there is one."""
    return {"places": In(requests_layout(params.requests))} if params.requests else {}


def given(part, walk):
    """Statements that give a part's places to its walker."""
    return [walk.places.eq(part.places)] if part.params.requests else []


class Walk(Component):
    """Divides a LOAD or STORE into bursts, in the order of its loops.

    A *segment* is what lies together in DRAM: a row of words, a record, or a run. Each takes a cycle in which it is
    checked, two where units are ``registered``, then a cycle for each burst at the least; an instruction takes one
    cycle before its first segment, and is taken with its last burst. A burst has ``burst`` beats or fewer, is as long
    as segment and page allow, and stays in its segment and in 4 KiB.

    Parameters
    ----------
    lanes, burst : int
        Numbers of a beat; beats of the longest burst.
    v_words, w_words, p_words : int
        Of memories V (words), W (rows) and P (beats); the last two are 0 for stores.
    record, height : int
        Beats and rows of a segment of W; 0 for stores.
    requests : int
        Requests of a batch whose places instructions may name; 0 without a dispatcher.
    registered : bool
        What is compared with a bound stands in a register.

    Members
    -------
    instruction : ``In(stream.Signature(instruction_layout(Opcode.LOAD)))``
        A LOAD, or a STORE, which has no records.
    limit : ``In(32)``
        Bytes of DRAM.
    arguments : ``In(arguments_layout())``
        What an instruction may add to its offset, as it begins.
    places : ``In(requests_layout(requests))``
        What it may add if it adds no argument; there is no such port without a dispatcher.
    address : ``Out``
        Place of the burst that is offered, in beats from the base.
    o : ``Out(stream.Signature(piece_layout))``
    begins : ``Out(1)``
        High for one cycle in which an instruction begins.
    misaligned, outside : ``Out(1)``
        The segment does not start at a beat (a run: at a multiple of 4), and if it does: it is not within the limit
        or the memory. Stays until reset.
    """
    kind, area, apart = "walk", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters:
        lanes: int = parameter("l")
        burst: int = parameter("b")
        v_words: int = parameter("v")
        w_words: int = parameter("w", 0)
        p_words: int = parameter("p", 0)
        record: int = parameter("r", 0)
        height: int = parameter("h", 0)
        requests: int = parameter("rq", 0)
        registered: bool = parameter("rg", False, rare=True)

        @classmethod
        def load(cls, params):
            """For loads of a :class:`~rtl.accelerator.load.Load` with these parameters."""
            return cls(params.lanes, params.burst, params.v_words, params.w_words, 2 * params.p_words // params.lanes,
                       params.record_beats, params.height, params.requests, params.registered)

        @classmethod
        def store(cls, params):
            """For a :class:`~rtl.accelerator.store.Store`."""
            return cls(params.lanes, params.burst, params.v_words, requests=params.requests,
                       registered=params.registered)

        @property
        def opcode(self):
            """The opcode whose instructions it takes."""
            return Opcode.LOAD if self.record else Opcode.STORE

        @property
        def extras(self):
            """What its instructions have that not all accelerators' have."""
            return ("requests",) if self.requests else ()

        @property
        def beat_bits(self):
            """Bits of an offset within a beat."""
            return 2 + (self.lanes - 1).bit_length()

    @staticmethod
    def ports(params):
        return {"instruction": In(stream.Signature(instruction_layout(params.opcode, params.extras))), "limit": In(32),
                "arguments": In(arguments_layout()), **places(params), "address": Out(OFFSET_BITS - params.beat_bits),
                "o": Out(stream.Signature(piece_layout(params))), "begins": Out(1), "misaligned": Out(1),
                "outside": Out(1)}

    def body(self, platform):
        m, params, fields = Module(), self.params, self.instruction.payload
        low = params.beat_bits
        records = fields.memory == Memory.W if params.record else Const(0, 1)
        memory = fields.memory if params.record else Const(Memory.V, 2)
        offsets = [Signal(OFFSET_BITS, name=f"offset{n}", reset_less=True) for n in range(3)]
        places = [Signal(ELEMENT_BITS, name=f"place{n}", reset_less=True) for n in range(3)]
        counts = [Signal(16, name=f"count{n}", reset_less=True) for n in range(3)]
        left = Signal(16, reset_less=True)
        done = Signal(index(max(params.record, 2)), reset_less=True)    # beats of the segment before this burst
        beats = Signal(range(params.burst + 1))
        room = Signal(range(PAGE // (4 * params.lanes) + 1))
        lane = Signal(index(params.lanes))
        two = Signal()
        m.d.comb += [
            lane.eq(offsets[0][2:low]), two.eq(lane + fields.run > params.lanes),
            self.address.eq(offsets[0][low:] + Mux(fields.elements, done, 0)),
            room.eq(PAGE // (4 * params.lanes) - self.address[:12 - low]),
            beats.eq(params.burst),
        ]
        with m.If((left <= params.burst) & (left <= room)):
            m.d.comb += beats.eq(left)
        with m.Elif(room < params.burst):
            m.d.comb += beats.eq(room)

        # Three loops: which goes on at the end of a segment. A row of words is all of the innermost.
        single = Signal()
        more = [Signal(name=f"more{n}") for n in range(3)]
        ends = Signal()
        moves = Signal()
        m.d.comb += [
            single.eq(~fields.elements & ~records), ends.eq(left == beats), moves.eq(self.o.valid & self.o.ready),
            more[0].eq(~single & (counts[0] != 1)), more[1].eq(counts[1] != 1), more[2].eq(counts[2] != 1),
        ]
        offset_from, offset_step, offset_next = (Signal(OFFSET_BITS, name=f"offset_{name}")
                                                 for name in ("from", "step", "next"))
        place_from, place_step, place_next = (Signal(ELEMENT_BITS, name=f"place_{name}")
                                              for name in ("from", "step", "next"))
        m.d.comb += [offset_next.eq(offset_from + offset_step), place_next.eq(place_from + place_step)]
        with m.If(self.begins):
            m.d.comb += [offset_from.eq(fields.offset), place_from.eq(fields.base)]
            if params.requests:
                with m.Switch(fields.request):
                    for number, place in enumerate(self.places, 1):
                        with m.Case(number):
                            m.d.comb += offset_step.eq(place)
            with m.Switch(fields.argument):
                for number, argument in enumerate(self.arguments, 1):
                    with m.Case(number):
                        m.d.comb += offset_step.eq(argument)
        with m.Elif(~ends | more[0]):
            m.d.comb += [offset_from.eq(offsets[0]), place_from.eq(places[0]), place_step.eq(fields.buffer0),
                         offset_step.eq(Mux(fields.elements, fields.dram0, beats << low))]
            with m.If(~fields.elements):
                m.d.comb += place_step.eq(Mux(records, params.height, beats))
        with m.Elif(more[1]):
            m.d.comb += [offset_from.eq(offsets[1]), offset_step.eq(fields.dram1),
                         place_from.eq(places[1]), place_step.eq(fields.buffer1)]
        with m.Else():
            m.d.comb += [offset_from.eq(offsets[2]), offset_step.eq(fields.dram2),
                         place_from.eq(places[2]), place_step.eq(fields.buffer2)]

        state = Signal(State)
        segment = Signal()
        checks = state == State.SEGMENT
        if params.registered:    # in the second of two cycles
            checks = delay(m, checks & ~segment, 1, "segment", reset_less=False)
        piece = self.o.payload
        m.d.comb += [
            self.begins.eq((state == State.START) & self.instruction.valid), segment.eq(checks),
            self.o.valid.eq(state == State.BURST), self.instruction.ready.eq(moves & piece.last),
            piece.memory.eq(memory), piece.elements.eq(fields.elements), piece.place.eq(places[0]),
            piece.lane.eq(lane), piece.run.eq(fields.run), piece.index.eq(done), piece.beats.eq(beats),
            piece.last.eq(ends & ~more[0] & ~more[1] & ~more[2]),
        ]
        with m.If(self.begins):
            m.d.sync += [state.eq(State.SEGMENT), *(count.eq(fields[f"count{n}"]) for n, count in enumerate(counts)),
                         *(offset.eq(offset_next) for offset in offsets),
                         *(place.eq(fields.base) for place in places)]
        with m.If(segment):
            m.d.sync += [state.eq(State.BURST), done.eq(0), left.eq(counts[0])]
            with m.If(fields.elements):
                m.d.sync += left.eq(Mux(two, 2, 1))
            with m.Elif(records):
                m.d.sync += left.eq(params.record)
        with m.If(moves):
            with m.If(~ends):
                m.d.sync += [left.eq(left - beats), done.eq(Mux(single, 0, done + beats))]
                with m.If(~fields.elements):
                    m.d.sync += offsets[0].eq(offset_next)
                with m.If(single):
                    m.d.sync += places[0].eq(place_next)
            with m.Else():
                m.d.sync += [state.eq(Mux(piece.last, State.START, State.SEGMENT)),
                             offsets[0].eq(offset_next), places[0].eq(place_next)]
                with m.If(more[0]):
                    m.d.sync += counts[0].eq(counts[0] - 1)
                with m.Elif(more[1]):
                    m.d.sync += [counts[0].eq(fields.count0), counts[1].eq(counts[1] - 1),
                                 offsets[1].eq(offset_next), places[1].eq(place_next)]
                with m.Else():
                    m.d.sync += [counts[0].eq(fields.count0), counts[1].eq(fields.count1), counts[2].eq(counts[2] - 1),
                                 *(offset.eq(offset_next) for offset in offsets[1:]),
                                 *(place.eq(place_next) for place in places[1:])]
        self._check(m, state, segment, offsets[0], places[0], counts[0], records, memory)
        return m

    def _check(self, m, state, segment, offset, place, count, records, memory):
        """Faults of the segment that is about to begin."""
        params, fields, low = self.params, self.instruction.payload, self.params.beat_bits
        size = Signal(16 + low)                     # bytes in DRAM
        extent = Signal(max(16, (params.height).bit_length()))    # words, rows or elements in the memory
        first = Signal(ELEMENT_BITS)
        last = Signal(ELEMENT_BITS + 1)
        stop = Signal(OFFSET_BITS + 1)
        m.d.comb += [
            size.eq(count << low), extent.eq(count), first.eq(place[:ADDRESS_BITS]), last.eq(first + extent - 1),
            stop.eq(offset + size),
        ]
        if params.registered:
            last, stop = (delay(m, value, 1, value.name) for value in (last, stop))
        words = (params.v_words - 1).bit_length()
        beyond = last[words:].any()
        with m.If(fields.elements):
            m.d.comb += size.eq(fields.run << 2)
            if params.record:    # a load counts elements
                m.d.comb += [first.eq(place), extent.eq(fields.run)]
                beyond = Mux(fields.elements, last[words + low - 2:].any(), beyond)
            else:
                m.d.comb += extent.eq(1)
        if params.record:
            with m.If(records):
                m.d.comb += [size.eq(params.record << low), extent.eq(params.height)]
            beyond = Mux(records, last[(params.w_words - 1).bit_length():].any(), beyond)
            beyond = Mux(memory == Memory.P, last[(params.p_words - 1).bit_length():].any(), beyond)
        wrong = Signal()
        out = Signal()
        m.d.comb += [wrong.eq(offset[:2].any() | (~fields.elements & offset[2:low].any())),
                     out.eq((stop > self.limit) | beyond)]
        with m.If(segment & (wrong | out)):
            m.d.sync += [state.eq(State.FAULT), self.misaligned.eq(wrong), self.outside.eq(~wrong)]
