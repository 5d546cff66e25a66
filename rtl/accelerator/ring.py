"""Descriptors: requests that lie in a ring in DRAM, read between programs and checked."""

from dataclasses import dataclass, replace

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, Signature

from hbfp.isa.descriptors import BYTES, CHECK, CHUNK, LEAST, NUMBER, SEED, TURNS, Refusal
from hbfp.isa.registers import WORD

from ..lib.component import Component
from ..lib.layout import StructLayout
from ..lib.memory import Ram
from ..lib.names import parameter
from .axi import BUS_BITS
from .reader import fetch_layout
from .sizes import Sizes

#: Registers that it reads as the host has written them.
SETTINGS = ("ring_low", "ring_high", "ring_size", "ring_first", "ring_last", "ring_tail")
#: Cycles behind the last descriptor of a job until the next may begin: the dispatcher chooses in them.
GAP = 2
#: Bits of a reason, and of the dispatcher's clock.
REASON, CLOCK = max(Refusal).bit_length(), WORD + 1


def ring_layout():
    """What the host has written."""
    return StructLayout({name: WORD for name in SETTINGS})


def front_signature(places):
    """What a ring and the front tell each other, as the ring sees it: :class:`Ring` has what it means."""
    return Signature({"room": In(range(places + 1)), "starting": In(1), "clock": In(CLOCK), "on": Out(1),
                      "holds": Out(1), "descriptor": Out(descriptor_layout()), "arrived": Out(CLOCK), "good": Out(1),
                      "refused": Out(1), "why": Out(REASON)})


def descriptor_layout():
    """A descriptor, as it lies in DRAM."""
    return StructLayout({"input": WORD, "output": WORD, "tag": WORD, "check": CHECK, "reserved": WORD - CHECK})


class Ring(Component):
    """Reads descriptors between programs, and gives good ones on.

    A descriptor counts from the cycle in which it is stamped: those that the host has told of are, one a cycle, as far
    as there is ``room``. A job is of as many as are stamped and as a batch may have, whichever is less. It begins only
    when no more are to be stamped, while the machine is ``free`` and nothing is ``starting``; as long as one is due or
    under way, ``holds`` keeps the dispatcher from choosing, and for :data:`GAP` cycles behind one it does not. Bursts,
    of :data:`CHUNK` beats or ``burst``, the largest power of two that the accelerator's allows, end at multiples of
    that. A descriptor that comes in cycle t is given on, or refused, in t + 1; whoever takes it has room, since a job
    is of no more.

    Members
    -------
    ring : ``In(ring_layout)``
        What the host has written.
    head : ``Out(16)``
        Number of the next descriptor.
    attached, free : ``In(1)``
        The dispatcher has the contexts; nobody has the machine.
    room, starting, clock : ``In``
        Requests that there is room for, with their completions; the dispatcher starts something; its time.
    on, holds : ``Out(1)``
        There is a ring, or one is being read; nothing is to be chosen.
    request : ``Out(stream.Signature(fetch_layout))``
        A burst.
    valid, data, failed : ``In``
        A beat has come: the descriptor, and whether the response is an error.
    descriptor, arrived : ``Out(descriptor_layout)``, ``Out``
        What came; where its read failed, its number stands for its tag. From when on it counts.
    good, refused, why : ``Out``
        It is a request; it is none, and why.
    """
    kind, area, apart = "ring", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        burst: int = parameter("b")
        dispatch: int = parameter("dq")
        requests: int = parameter("rq")

        @classmethod
        def of(cls, system):
            """The parameters of an accelerator's ring."""
            sizes = super().of(system)
            return replace(sizes, burst=1 << sizes.burst.bit_length() - 1)

    @staticmethod
    def ports(params):
        return {**front_signature(params.dispatch).members, "ring": In(ring_layout()), "head": Out(NUMBER),
                "attached": In(1), "free": In(1), "request": Out(stream.Signature(fetch_layout(params))),
                "valid": In(1), "data": In(8 * BYTES), "failed": In(1)}

    def body(self, platform):
        m, params, settings = Module(), self.params, self.ring
        chunk = min(CHUNK, params.burst)
        most = max(chunk, params.requests)
        size = settings.ring_size[:4]
        there = Signal()
        m.submodules.stamps = stamps = Ram(params.dispatch, CLOCK)
        stamped = Signal(NUMBER)              # the next that is
        stamping = Signal()
        waiting = Signal(NUMBER)
        job = Signal(range(params.requests + 1))
        asked = Signal(NUMBER)                # the next that is asked for
        to_ask = Signal(range(params.requests + 1))
        to_come = Signal(range(params.requests + 1))
        came = Signal()
        gap = Signal(range(GAP + 1))
        busy = Signal()
        due = Signal()
        beats = Signal(range(most + 1))
        aligned = Signal(range(chunk + 1))
        mask = params.dispatch - 1
        m.d.comb += [
            there.eq(size >= LEAST), waiting.eq(stamped - self.head),
            stamping.eq(there & (stamped != settings.ring_tail[:NUMBER]) & (waiting < self.room)),
            stamps.w_en.eq(stamping), stamps.w_addr.eq(stamped & mask), stamps.w_data.eq(self.clock),
            stamps.r_en.eq(self.valid), stamps.r_addr.eq(self.head + came & mask), self.arrived.eq(stamps.r_data),
            job.eq(Mux(waiting < params.requests, waiting, params.requests)), busy.eq(to_come.any() | came),
            due.eq(there & self.attached & job.any() & ~stamping & ~gap.any() & ~busy), self.on.eq(there | busy),
            self.holds.eq(due | busy), aligned.eq(chunk - (asked & chunk - 1)),
            beats.eq(Mux(to_ask < aligned, to_ask, aligned)), self.request.valid.eq(to_ask.any()),
            self.request.payload.beats.eq(beats), self.request.payload.address.eq(self._address(asked, size)),
        ]
        m.d.sync += stamped.eq(stamped + stamping)
        with m.If(due & self.free & ~self.starting):
            m.d.sync += [to_ask.eq(job), to_come.eq(job)]
        with m.If(self.request.valid & self.request.ready):
            m.d.sync += [to_ask.eq(to_ask - beats), asked.eq(asked + beats)]
        m.d.sync += came.eq(self.valid)
        with m.If(self.valid):
            m.d.sync += to_come.eq(to_come - 1)
        with m.If(gap.any()):
            m.d.sync += gap.eq(gap - 1)
        with m.If(came):
            m.d.sync += self.head.eq(self.head + 1)
            with m.If(~to_come.any()):
                m.d.sync += gap.eq(GAP)
        self._check(m, came)
        return m

    def _address(self, asked, size):
        """The beat on the bus of a descriptor, in a ring that begins at a multiple of its bytes."""
        low = (self.params.beat - 1).bit_length()
        base = Cat(self.ring.ring_low, self.ring.ring_high)[low:BUS_BITS]
        inside = [Mux(size > bit, asked[bit], base[bit]) for bit in range(NUMBER - 1)]
        return Cat(*inside, base[len(inside):])

    def _check(self, m, came):
        """The descriptor that has come, and what is wrong with it."""
        settings, found = self.ring, self.descriptor
        kept = Signal(8 * BYTES, reset_less=True)
        failed = Signal(reset_less=True)
        with m.If(self.valid):
            m.d.sync += [kept.eq(self.data), failed.eq(self.failed)]
        wanted = self.head ^ SEED
        for place, turns in enumerate(TURNS):
            for turn in turns:
                wanted = wanted ^ kept.word_select(place, CHECK).rotate_left(turn)
        low = (self.params.beat - 1).bit_length()
        places = found.input, found.output
        first, last = settings.ring_first[low:], settings.ring_last[low:]
        m.d.comb += found.as_value().eq(kept)
        with m.If(failed):      # whatever its tag is, it did not come
            m.d.comb += found.tag.eq(self.head)
        wrong = {Refusal.BUS: failed, Refusal.CHECK: found.check != wanted, Refusal.RESERVED: found.reserved.any(),
                 Refusal.MISALIGNED: Cat(place[:low] for place in places).any(),
                 Refusal.OUTSIDE: Cat((place[low:] < first) | (place[low:] > last) for place in places).any()}
        for cause in reversed(Refusal):
            with m.If(wrong[cause]):
                m.d.comb += self.why.eq(cause)
        m.d.comb += [self.good.eq(came & ~self.why.any()), self.refused.eq(came & self.why.any())]
