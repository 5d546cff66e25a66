"""FP32 -> HBFP with registers all the way: nothing stalls."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.hdl import Value
from amaranth.lib.data import View

from hbfp.format import HBFPFormat

from ..lib.component import Component
from ..lib.credits import CreditQueue
from ..lib.fanout import branches
from ..lib.layout import ArrayLayout
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.skew import delay
from ..lib.stages import Stages
from .encode import Encode
from .encode_lane import FIELD, EncodeLane, clamped_field, element_format, largest_field, least_field
from .noise import Xorshift32, clears

#: Lanes that one copy of a block's exponent drives.
FANOUT = 8


class CreditEncode(Component):
    """The converter of :class:`~rtl.convert.encode.Encode`, with the same bits: a block enters only when there is room
    for it behind the lanes.

    Registers stand in the search for the largest exponent, behind it, and in a tree that brings it to the lanes.

    Parameters
    ----------
    format, lanes, beats, narrow : HBFPFormat, int, int, int
        See :class:`~rtl.convert.encode.Encode`.
    search, lane : int
        Registers in the search, 0 to 7, and inside each lane, 0 or 1.

    Members
    -------
    i, o, i_seed
        See :class:`~rtl.convert.encode.Encode`.
    """
    kind, area, apart = "credit_encode", "converter", True
    blocked = True
    @dataclass(frozen=True)
    class Parameters:
        format: HBFPFormat = parameter("")
        lanes: int = parameter("l")
        beats: int = parameter("b", 1)
        narrow: int = parameter("n", 0)
        search: int = parameter("s", 0)
        lane: int = parameter("r", 0, rare=True)

        def __post_init__(self):
            object.__setattr__(self, "format", element_format(self.format))

        @property
        def through(self):
            """Cycles from an element's word, beside the block's exponent, to the queue."""
            return 2 + self.lane

        @property
        def latency(self):
            """Cycles from the last beat of a block to its first converted beat."""
            return self.search + (1 if self.beats == 1 else 2) + self.through + 2

        @classmethod
        def of(cls, design):
            """The converter of a design."""
            stages = Stages.of(design)
            return cls(design.widest, design.encode_lanes, design.encode_beats,
                       design.format.mantissa if design.wide else 0, stages.search, stages.lane)

    ports, latencies = staticmethod(Encode.ports), Encode.latencies

    def body(self, platform):
        m, params = Module(), self.params
        offered = self.i.payload.value if params.narrow else self.i.payload
        wide = self.i.payload.wide if params.narrow else Const(0, 1)
        whole = 1 if params.beats == 1 else 0    # a beat that starts is a block
        cycles = params.through + (params.search + 1 if whole else 1)
        m.submodules.queue = queue = CreditQueue(CreditQueue.words(cycles), Value.cast(self.o.payload).shape().width)
        largest = Signal(FIELD)
        m.d.comb += largest.eq(largest_field(m, offered, self._cuts(m)))
        if whole:
            taken = Signal()
            m.d.comb += [self.i.ready.eq(queue.room), taken.eq(self.i.valid & queue.room), queue.starts.eq(taken)]
            there = delay(m, taken, params.search + 1, "there", reset_less=False)
            word = delay(m, offered, params.search + 1, "word")
            field, wide = delay(m, largest, 1, "field"), delay(m, wide, params.search + 1, "wide")
        else:
            word, field, there, wide = self._gather(m, queue, offered, largest, wide)
        self._convert(m, queue, word, field, there, wide)
        m.d.comb += [Value.cast(self.o.payload).eq(queue.o.payload), self.o.valid.eq(queue.o.valid),
                     queue.o.ready.eq(self.o.ready)]
        return m

    def _cuts(self, m):
        """Registers in the search, evenly among its bits: a function for :func:`largest_field`."""
        places = {round((n + 1) * FIELD / (self.params.search + 1)) for n in range(self.params.search)}

        def cut(place, values):
            if place not in places:
                return values
            return [value if isinstance(value, Const) else delay(m, value, 1, f"search{place}_{n}")
                    for n, value in enumerate(values)]
        return cut

    def _convert(self, m, queue, word, field, there, wide):
        """From elements and their block's largest field to the queue."""
        params = self.params
        fmt, lanes = params.format, params.lanes
        top = clamped_field(m, fmt, field)
        exponent = Signal(signed(fmt.exponent))
        base = top
        if params.narrow:
            base = Signal(FIELD + 1)
            m.d.comb += base.eq(top + Mux(wide, 0, fmt.mantissa - params.narrow))
        least = least_field(m, fmt, base)
        m.d.comb += exponent.eq(top - 126)
        about = delay(m, Cat(exponent, field.all()), params.through, "about")
        arrives = delay(m, there, params.through, "arrives", reset_less=False)
        if fmt.rounding == "stochastic":
            seed = self.i_seed.payload
            cleared = clears(m, seed, lanes)
            m.d.comb += self.i_seed.ready.eq(1)
        groups = -(-lanes // FANOUT)
        copies = branches(m, Cat(top, least, base, wide, ~field.all()), groups, "field")
        steps = branches(m, there, groups, "step", reset=True) if fmt.rounding == "stochastic" else None
        valid = [delay(m, copy[-1], params.lane, f"valid{n}") for n, copy in enumerate(copies)]
        word = delay(m, word, 1, "late")
        mantissas = []
        for n in range(lanes):
            m.submodules[f"lane{n}"] = lane = EncodeLane(fmt, narrow=params.narrow, registers=params.lane)
            copy = copies[n // FANOUT]
            bits = copy[2 * FIELD:2 * FIELD + len(base)]
            m.d.comb += [lane.i.eq(word[n]), lane.top.eq(copy[:FIELD]), lane.least.eq(copy[FIELD:2 * FIELD])]
            if params.narrow:
                m.d.comb += [lane.base.eq(bits), lane.wide.eq(copy[-2])]
            if fmt.rounding == "stochastic":
                m.submodules[f"random{n}"] = random = Xorshift32(n)
                m.d.comb += [random.step.eq(steps[n // FANOUT]), random.load.eq(self.i_seed.valid),
                             random.seed.eq(seed), random.clear.eq(cleared[n]),
                             lane.noise.eq(random.o[-fmt.noise_bits:])]
            mantissa = Signal(len(lane.o), name=f"mantissa{n}", reset_less=True)
            m.d.sync += mantissa.eq(lane.o & valid[n // FANOUT].replicate(len(lane.o)))
            mantissas.append(mantissa)
        m.d.comb += [queue.w_en.eq(arrives), queue.w_data.eq(Cat(mantissas, about))]

    def _gather(self, m, queue, offered, largest, wide):
        """Hold the beats of a block until its largest exponent is known."""
        params = self.params
        lanes, beats = params.lanes, params.beats
        size = 2 * beats + params.search + 1
        blocks = -(-size // beats)
        m.submodules.held = ram = Ram(size, 32 * lanes)
        write, read = (Signal(range(size), name=name) for name in ("write", "read"))
        count, place = (Signal(range(beats), name=name) for name in ("count", "place"))
        slot, out_slot = (Signal(range(blocks), name=name) for name in ("slot", "out_slot"))
        tops = [Signal(FIELD + 1, name=f"top_{n}", reset_less=True) for n in range(blocks)]
        running = Signal(FIELD)
        maximum = Signal(FIELD)
        known = Signal(range(blocks + 1))    # complete blocks not yet read
        space = Signal(range(size + 1), init=size)
        taken = Signal()
        complete = Signal()
        fetch = Signal()
        last = Signal()
        m.d.comb += [self.i.ready.eq(space != 0), taken.eq(self.i.valid & self.i.ready),
                     ram.w_en.eq(taken), ram.w_addr.eq(write), ram.w_data.eq(offered),
                     ram.r_en.eq(fetch), ram.r_addr.eq(read)]
        # The search is so many cycles late.
        late = delay(m, taken, params.search, "taken", reset_less=False)
        late_wide = delay(m, wide, params.search, "wide")
        m.d.comb += [maximum.eq(Mux(largest > running, largest, running)), complete.eq(late & (count == beats - 1)),
                     fetch.eq(queue.room & (known != 0)), last.eq(place == beats - 1), queue.starts.eq(fetch)]
        for where, moves, words in ((write, taken, size), (read, fetch, size), (count, late, beats),
                                    (place, fetch, beats), (slot, complete, blocks), (out_slot, fetch & last, blocks)):
            with m.If(moves):
                m.d.sync += where.eq(Mux(where == words - 1, 0, where + 1))
        with m.If(late):
            m.d.sync += running.eq(Mux(complete, 0, maximum))
        m.d.sync += [known.eq(known + complete - (fetch & last)), space.eq(space - taken + fetch)]
        chosen = Signal(FIELD + 1)
        for n in range(blocks):
            with m.If(complete & (slot == n)):
                m.d.sync += tops[n].eq(Cat(maximum, late_wide))
        with m.Switch(out_slot):
            for n in range(blocks):
                # The last for what is left, so that the cases are complete where their number is no power of two.
                with m.Case(n) if n < blocks - 1 else m.Default():
                    m.d.comb += chosen.eq(tops[n])
        chosen = delay(m, chosen, 1, "field")
        return (View(ArrayLayout(32, lanes), ram.r_data), chosen[:FIELD],
                delay(m, fetch, 1, "there", reset_less=False), chosen[-1])
