"""FP32 -> HBFP: largest exponent, align, round."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from .buffer import Ram
from .cell import Cell
from .lanes import exponent_shape, lane_shape
from .layout import ArrayLayout, StructLayout
from .lfsr import Xorshift32

FIELD, FRACTION = 8, 23    # bits of an FP32 exponent field and fraction
SIGNIFICAND = FRACTION + 1


def encoded_layout(design):
    """One beat of a converted block."""
    return StructLayout({"mantissa": ArrayLayout(lane_shape(design), design.encode_lanes),
                         "exponent": exponent_shape(design), "invalid": 1})


class EncodeLane(Cell):
    """One FP32 to one mantissa, given the block's exponent field; combinational.

    Members
    -------
    i : ``In(32)``
        FP32 bits.
    top : ``In``
        Shared exponent E, plus 126.
    noise : ``In(noise_bits)``
        Only if rounding is stochastic.
    o : ``Out(signed mantissa)``
    """
    kind = "encode_lane"

    def __init__(self, design):
        self.fmt = fmt = design.format
        members = {"i": In(32), "top": In(FIELD), "o": Out(lane_shape(design))}
        if fmt.rounding == "stochastic":
            members["noise"] = In(fmt.noise_bits)
        tail = {"r": fmt.rounding} | ({"n": fmt.noise_bits} if fmt.rounding == "stochastic" else {})
        super().__init__(members, m=fmt.mantissa, e=min(fmt.exponent, 9), s=fmt.subnormals, **tail)

    def body(self, platform):
        m = Module()
        fmt, bits = self.fmt, self.fmt.magnitude
        field, fraction = self.i[FRACTION:FRACTION + FIELD], self.i[:FRACTION]
        normal, significand = Signal(), Signal(SIGNIFICAND)
        m.d.comb += normal.eq(field.any())
        if fmt.subnormals == "flush":
            m.d.comb += significand.eq(Cat(fraction & normal.replicate(FRACTION), normal))
        else:    # no hidden one, and the weight of field 1: a place further left
            m.d.comb += significand.eq(Mux(normal, Cat(fraction, Const(1, 1)), Cat(Const(0, 1), fraction)))

        distance = Signal(FIELD + 1)
        m.d.comb += distance.eq(self.top - field)    # negative only where a narrow exponent was clamped
        below = distance[-1] if fmt.exponent < 9 else Const(0, 1)

        # `bits` integer bits, then what rounding looks at: guard (and sticky), or the noise's bits.
        kept = {"rne": 1, "truncate": 0, "stochastic": fmt.noise_bits}[fmt.rounding]
        shown = min(kept, SIGNIFICAND - bits)
        width = bits + kept
        value = Signal(width + 1, name="aligned")
        lowest = significand[:SIGNIFICAND - bits - shown]
        m.d.comb += value.eq(Cat(lowest.any() if fmt.rounding == "rne" else Const(0, 1),
                                 Const(0, kept - shown), significand[SIGNIFICAND - bits - shown:]))
        sticky = value[0]
        word = value[1:]
        stages = width.bit_length()
        for stage in range(stages):
            step = 1 << stage
            moved, lost = Signal(width, name=f"shift{stage}"), Signal(name=f"lost{stage}")
            m.d.comb += [moved.eq(Mux(distance[stage], word >> step, word)),
                         lost.eq(sticky | (distance[stage] & word[:step].any()))]
            word, sticky = moved, lost
        gone = distance[stages:FIELD].any()
        magnitude, final = Signal(bits + 1), Signal(width)
        m.d.comb += final.eq(Mux(gone, 0, word))
        if fmt.rounding == "rne":
            up = Signal()
            m.d.comb += [up.eq(final[0] & (sticky | final[1])), magnitude.eq(final[1:] + up)]
        elif fmt.rounding == "stochastic":
            m.d.comb += magnitude.eq((final + self.noise) >> kept)
        else:
            m.d.comb += magnitude.eq(final)
        limited = Signal(bits)
        m.d.comb += limited.eq(Mux(magnitude[-1] | below, fmt.limit, magnitude))
        m.d.comb += self.o.eq(Mux(self.i[-1], -limited, limited))
        return m


class Encode(Cell):
    """FP32 stream to block stream: ``encode_beats`` beats of ``encode_lanes`` elements are a block, in row-major order.

    One beat a cycle. Golden twin: :func:`golden.bfp.encode`.

    Parameters
    ----------
    design : golden.spec.config.Design

    Members
    -------
    i : ``In(stream)``
        FP32 elements.
    o : ``Out(stream)``
        The same beats converted, each with the block's exponent and flag; mantissas of an invalid block are 0.
    i_seed : ``In(stream)``
        Only if rounding is stochastic: restarts every lane's random stream from this seed (initially 1). Offer it
        while no beat is in flight.
    """
    kind = "encode"

    def __init__(self, design):
        self.design = design
        fmt = design.format
        members = {"i": In(stream.Signature(ArrayLayout(32, design.encode_lanes))),
                   "o": Out(stream.Signature(encoded_layout(design)))}
        if fmt.rounding == "stochastic":
            members["i_seed"] = In(stream.Signature(32))
        tail = {"r": fmt.rounding} | ({"n": fmt.noise_bits} if fmt.rounding == "stochastic" else {})
        super().__init__(members, m=fmt.mantissa, e=fmt.exponent, l=design.encode_lanes, b=design.encode_beats,
                         s=fmt.subnormals, **tail)

    @staticmethod
    def latency(design):
        """Cycles from the last beat of a block to its first converted beat."""
        return 1 if design.encode_beats == 1 else 3

    def body(self, platform):
        m = Module()
        design, fmt = self.design, self.design.format
        lanes, beats = design.encode_lanes, design.encode_beats
        largest, bad = self._largest(m, self.i.payload)
        move = Signal()    # the output register takes a beat
        m.d.comb += move.eq(~self.o.valid | self.o.ready)
        if beats == 1:
            word, field, invalid, there = self.i.payload, largest, bad, self.i.valid
            m.d.comb += self.i.ready.eq(move)
        else:
            word, field, invalid, there = self._gather(m, largest, bad, move)

        top, exponent = self._exponent(m, field)
        with m.If(move):
            m.d.sync += self.o.valid.eq(there)
        with m.If(move & there):
            m.d.sync += [self.o.payload.exponent.eq(exponent), self.o.payload.invalid.eq(invalid)]
        for n in range(lanes):
            m.submodules[f"lane{n}"] = lane = EncodeLane(design)
            m.d.comb += [lane.i.eq(word[n]), lane.top.eq(top)]
            with m.If(move & there):
                m.d.sync += self.o.payload.mantissa[n].eq(Mux(invalid, 0, lane.o))
            if fmt.rounding == "stochastic":
                m.submodules[f"random{n}"] = random = Xorshift32(n)
                m.d.comb += [random.step.eq(move & there), random.load.eq(self.i_seed.valid),
                             random.start.eq(self.i_seed.payload), lane.noise.eq(random.o[-fmt.noise_bits:])]
        if fmt.rounding == "stochastic":
            m.d.comb += self.i_seed.ready.eq(1)
        return m

    def _largest(self, m, values):
        """Maximum exponent field of a beat, by a tree, and whether any is Inf or NaN."""
        fields = [values[n][FRACTION:FRACTION + FIELD] for n in range(len(values))]
        level = 0
        while len(fields) > 1:
            nxt = []
            for n in range(0, len(fields) - 1, 2):
                larger = Signal(FIELD, name=f"largest{level}_{n // 2}")
                m.d.comb += larger.eq(Mux(fields[n] > fields[n + 1], fields[n], fields[n + 1]))
                nxt.append(larger)
            fields = nxt + fields[len(nxt) * 2:]
            level += 1
        largest, bad = Signal(FIELD), Signal()
        m.d.comb += [largest.eq(fields[0]), bad.eq(largest.all())]
        return largest, bad

    def _exponent(self, m, field):
        """E + 126 for the lanes, and E itself, clamped to its field."""
        fmt = self.design.format
        low, high = fmt.exponent_range
        top, exponent = Signal(FIELD), Signal(exponent_shape(self.design))
        m.d.comb += top.eq(field)
        if low + 126 > 0:
            with m.If(field < low + 126):
                m.d.comb += top.eq(low + 126)
        if high + 126 < 2 ** FIELD - 1:
            with m.If(field > high + 126):
                m.d.comb += top.eq(high + 126)
        m.d.comb += exponent.eq(top - 126)
        return top, exponent

    def _gather(self, m, largest, bad, move):
        """Hold the beats of a block until its largest exponent is known; two blocks in flight."""
        lanes, beats = self.design.encode_lanes, self.design.encode_beats
        size = 2 * beats
        m.submodules.held = ram = Ram(size, 32 * lanes)
        write, read = Signal(range(size)), Signal(range(size))
        count = Signal(range(beats))
        running, final = Signal(FIELD), Signal(FIELD)
        known = Signal(range(3))    # complete blocks not yet read
        tops = [Signal(FIELD, name=f"top_{n}", reset_less=True) for n in range(2)]
        slot, out_slot = Signal(), Signal()
        space = Signal(range(size + 1), init=size)
        taken, complete = Signal(), Signal()
        fetch, released = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(space != 0), taken.eq(self.i.valid & self.i.ready),
            final.eq(Mux(largest > running, largest, running)), complete.eq(taken & (count == beats - 1)),
            ram.w_en.eq(taken), ram.w_addr.eq(write), ram.w_data.eq(self.i.payload),
        ]
        with m.If(taken):
            m.d.sync += [running.eq(final), count.eq(count + 1), write.eq(write + 1)]
            with m.If(write == size - 1):
                m.d.sync += write.eq(0)
            with m.If(complete):
                m.d.sync += [running.eq(0), count.eq(0), slot.eq(~slot)]
                for n in range(2):
                    with m.If(slot == n):
                        m.d.sync += tops[n].eq(final)
        # Read a word ahead of the lanes; `there` says that they have one.
        there, last = Signal(), Signal()
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
        return word, field, invalid, there
