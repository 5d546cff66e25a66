"""FP32 -> HBFP: largest exponent, align, round."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import stream
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hbfp.format import HBFPFormat

from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout
from ..lib.memory import Ram
from ..lib.names import parameter
from .encode_lane import FIELD, EncodeLane, clamped_field, element_format, largest_field, least_field
from .noise import Xorshift32, clears


def encoded_layout(design):
    """One beat of a converted block of a design."""
    return block_beat(design.widest, design.encode_lanes)


def elements_layout(lanes, wide=False):
    """One beat of FP32 elements, and, where mantissas may be ``wide``, whether those of the block are to be."""
    value = ArrayLayout(32, lanes)
    return StructLayout({"value": value, "wide": 1}) if wide else value


def block_beat(fmt, lanes):
    """One beat of a converted block: ``lanes`` mantissas, and what belongs to the whole block."""
    return StructLayout({"mantissa": ArrayLayout(signed(fmt.mantissa), lanes), "exponent": signed(fmt.exponent),
                         "invalid": 1})


class Encode(Component):
    """FP32 stream to block stream: ``beats`` beats of ``lanes`` elements are a block, in row-major order.

    One beat a cycle. Golden twin: :func:`golden.bfp.encode`.

    Parameters
    ----------
    format : HBFPFormat
        Its block is of no account: it has ``lanes`` times ``beats`` elements.
    lanes, beats : int
    cut : bool
        Whether a register stands between the largest exponent and the lanes; blocks of several beats have one anyway.
        Beside the vector unit (:class:`rtl.vector.hbfp.VectorHBFP`), whose design has registers: a core that has them
        converts with :class:`~rtl.convert.credit_encode.CreditEncode`.
    narrow : int
        Mantissa bits, fewer than the format's, of blocks that are not wide; 0 if all have those of the format.
    spare : int
        Words that hold beats beyond those of a block: with one, a beat a cycle goes through. 0: as many as a block has,
        so that more may come while the converter is stalled.

    Members
    -------
    i : ``In(stream)``
        FP32 elements; with ``narrow``, ``wide`` says how wide mantissas are. It counts with a block's last beat.
    o : ``Out(stream)``
        The same beats converted, each with the block's exponent and flag; mantissas of an invalid block are 0.
    i_seed : ``In(stream)``
        Only if rounding is stochastic: restarts every lane's random stream from this seed, mixed by the host
        (:func:`golden.noise.mix`); a reset stands for the seed 1. Offer it while no beat is in flight.
    """
    kind, area, apart = "encode", "converter", True
    blocked = True

    @dataclass(frozen=True)
    class Parameters:
        format: HBFPFormat = parameter("")
        lanes: int = parameter("l")
        beats: int = parameter("b", 1)
        cut: bool = parameter("cut", False)
        narrow: int = parameter("n", 0)
        spare: int = parameter("w", 0)

        def __post_init__(self):
            object.__setattr__(self, "format", element_format(self.format))

        @property
        def latency(self):
            """Cycles from the last beat of a block to its first converted beat."""
            return 1 + self.cut if self.beats == 1 else 3

        @classmethod
        def of(cls, design):
            """The converter of a design that may stall. With one register in the adders it is not yet the slowest."""
            return cls(design.widest, design.encode_lanes, design.encode_beats,
                       design.pipeline > 1 and design.encode_beats == 1, design.format.mantissa if design.wide else 0,
                       int(design.convert_lanes > 0 and design.encode_beats > 1))

    @staticmethod
    def ports(params):
        fmt = params.format
        members = {"i": In(stream.Signature(elements_layout(params.lanes, bool(params.narrow)))),
                   "o": Out(stream.Signature(block_beat(fmt, params.lanes)))}
        if fmt.rounding == "stochastic":
            members["i_seed"] = In(stream.Signature(32))
        return members

    @property
    def latencies(self):
        """``result``: from the last beat of a block to its first converted beat."""
        return {"result": self.params.latency}

    def body(self, platform):
        m, params = Module(), self.params
        fmt, lanes, beats = params.format, params.lanes, params.beats
        largest = Signal(FIELD)
        bad = Signal()
        offered = self.i.payload.value if params.narrow else self.i.payload
        wide = self.i.payload.wide if params.narrow else None
        m.d.comb += [largest.eq(largest_field(m, offered)), bad.eq(largest.all())]
        move = Signal()    # the output register takes a beat
        m.d.comb += move.eq(~self.o.valid | self.o.ready)
        if params.cut:
            word, field, there, wide = self._hold(m, offered, largest, wide, move)
            invalid = field.all()
        elif beats == 1:
            word, field, invalid, there = offered, largest, bad, self.i.valid
            m.d.comb += self.i.ready.eq(move)
        else:
            word, field, invalid, there, wide = self._gather(m, offered, largest, wide, move)

        top = clamped_field(m, fmt, field)
        exponent = Signal(signed(fmt.exponent))
        m.d.comb += exponent.eq(top - 126)
        with m.If(move):
            m.d.sync += self.o.valid.eq(there)
        with m.If(move & there):
            m.d.sync += [self.o.payload.exponent.eq(exponent), self.o.payload.invalid.eq(invalid)]
        # One AND-OR holds a bit and clears it in an invalid block.
        take = Signal()
        hold = Signal()
        m.d.comb += [take.eq(move & there & ~invalid), hold.eq(~move)]
        base = top if wide is None else self._base(m, top, wide)
        least = least_field(m, fmt, base)
        if fmt.rounding == "stochastic":
            seed = self.i_seed.payload
            cleared = clears(m, seed, lanes)
            m.d.comb += self.i_seed.ready.eq(1)
        for n in range(lanes):
            m.submodules[f"lane{n}"] = lane = EncodeLane(fmt, narrow=params.narrow)
            mantissa = Signal(len(lane.o), name=f"mantissa{n}", reset_less=True)
            m.d.sync += mantissa.eq((lane.o & take.replicate(len(lane.o))) | (mantissa & hold.replicate(len(lane.o))))
            m.d.comb += [lane.i.eq(word[n]), lane.top.eq(top), lane.least.eq(least),
                         self.o.payload.mantissa[n].eq(mantissa)]
            if wide is not None:
                m.d.comb += [lane.base.eq(base), lane.wide.eq(wide)]
            if fmt.rounding == "stochastic":
                m.submodules[f"random{n}"] = random = Xorshift32(n)
                m.d.comb += [random.step.eq(move & there), random.load.eq(self.i_seed.valid),
                             random.seed.eq(seed), random.clear.eq(cleared[n]),
                             lane.noise.eq(random.o[-fmt.noise_bits:])]
        return m

    def _base(self, m, top, wide):
        """The field that elements are aligned to: above the largest by the bits that narrow mantissas have less."""
        base = Signal(FIELD + 1)
        m.d.comb += base.eq(top + Mux(wide, 0, self.params.format.mantissa - self.params.narrow))
        return base

    def _hold(self, m, offered, largest, wide, move):
        """A block, its largest exponent, and whether it is wide, a cycle later."""
        word = Signal.like(offered, reset_less=True)
        field = Signal(FIELD, reset_less=True)
        there = Signal()
        m.d.comb += self.i.ready.eq(~there | move)
        with m.If(self.i.ready):
            m.d.sync += [word.eq(offered), field.eq(largest), there.eq(self.i.valid)]
        if wide is not None:
            late = Signal(name="wide", reset_less=True)
            with m.If(self.i.ready):
                m.d.sync += late.eq(wide)
            wide = late
        return word, field, there, wide

    def _gather(self, m, offered, largest, wide, move):
        """Hold the beats of a block until its largest exponent is known; two blocks in flight."""
        lanes, beats = self.params.lanes, self.params.beats
        size = beats + (self.params.spare or beats)
        m.submodules.held = ram = Ram(size, 32 * lanes)
        write = Signal(range(size))
        read = Signal(range(size))
        count = Signal(range(beats))
        running = Signal(FIELD)
        maximum = Signal(FIELD)
        known = Signal(range(3))    # complete blocks not yet read
        tops = [Signal(FIELD, name=f"top_{n}", reset_less=True) for n in range(2)]
        slot = Signal()
        out_slot = Signal()
        space = Signal(range(size + 1), init=size)
        taken = Signal()
        complete = Signal()
        fetch = Signal()
        released = Signal()
        m.d.comb += [
            self.i.ready.eq(space != 0), taken.eq(self.i.valid & self.i.ready),
            maximum.eq(Mux(largest > running, largest, running)), complete.eq(taken & (count == beats - 1)),
            ram.w_en.eq(taken), ram.w_addr.eq(write), ram.w_data.eq(offered),
        ]
        with m.If(taken):
            m.d.sync += [running.eq(maximum), count.eq(count + 1), write.eq(write + 1)]
            with m.If(write == size - 1):
                m.d.sync += write.eq(0)
            with m.If(complete):
                m.d.sync += [running.eq(0), count.eq(0), slot.eq(~slot)]
                for n in range(2):
                    with m.If(slot == n):
                        m.d.sync += tops[n].eq(maximum)
        # Read a word ahead of the lanes; `there` says that they have one.
        there = Signal()
        last = Signal()
        place = Signal(range(beats))
        advance = Signal()
        m.d.comb += [advance.eq(~there | move), fetch.eq(advance & (known != 0)), last.eq(place == beats - 1),
                     ram.r_en.eq(advance), ram.r_addr.eq(read), released.eq(fetch)]
        m.d.sync += [known.eq(known + complete - (fetch & last)), space.eq(space - taken + released)]
        field = Signal(FIELD, reset_less=True)
        with m.If(advance):
            m.d.sync += there.eq(fetch)
        with m.If(fetch):
            m.d.sync += [place.eq(place + 1), read.eq(read + 1), field.eq(Mux(out_slot, tops[1], tops[0]))]
            with m.If(last):
                m.d.sync += [place.eq(0), out_slot.eq(~out_slot)]
            with m.If(read == size - 1):
                m.d.sync += read.eq(0)
        word = View(ArrayLayout(32, lanes), ram.r_data)
        invalid = Signal()
        m.d.comb += invalid.eq(field.all())
        if wide is not None:
            wides = [Signal(name=f"wide_{n}", reset_less=True) for n in range(2)]
            late = Signal(name="wide", reset_less=True)
            for n in range(2):
                with m.If(complete & (slot == n)):
                    m.d.sync += wides[n].eq(wide)
            with m.If(fetch):
                m.d.sync += late.eq(Mux(out_slot, wides[1], wides[0]))
            wide = late
        return word, field, invalid, there, wide
