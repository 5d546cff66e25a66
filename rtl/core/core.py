"""The core: weights, array, accumulation, side unit, converter; see docs/design/01-core.md."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hbfp.design import ConflictError, Design

from ..accumulate.accumulator import Accumulator
from ..accumulate.block_sum import BlockSum, exponents_ahead, shared_scales
from ..accumulate.shared_accumulator import SharedAccumulator
from ..accumulate.shared_control import SharedControl
from ..accumulate.signatures import DIGITS, beat_layout
from ..accumulate.turn import Turn
from ..array.array import Array
from ..array.sparse_weights import SparseWeightBuffer
from ..array.weights import WeightBuffer
from ..convert.credit_encode import CreditEncode
from ..convert.encode import Encode, elements_layout, encoded_layout
from ..fixed.scales import Scales, scale_offset
from ..lib.compass import west_to_east
from ..lib.component import Component
from ..lib.layout import ArrayLayout, index
from ..lib.memory import Ram
from ..lib.skew import delay
from ..lib.stages import Stages
from ..number.kinds import accumulation_of
from ..number.streams import (
    activations_layout,
    block_scale_layout,
    exponent_bits,
    result_layout,
    scale_layout,
    weights_layout,
)
from .credit_drain import CreditDrain
from .drain import Drain
from .placement import Placement
from .sequencer import Sequencer, command_layout


def interval(design):
    """Fewest cycles from a row of a pass to the same row of the next, however few rows it has."""
    sums = BlockSum.INTERVAL if design.share > 1 else Accumulator.Parameters.of(design).interval
    return max(sums, WeightBuffer.Parameters.of(design).interval)


def way_out(design):
    """The component that empties the banks: one that never stalls where there are registers."""
    return CreditDrain if Stages.of(design).free else Drain


def converter(design):
    """The component that converts; likewise."""
    return CreditEncode if Stages.of(design).free else Encode


def through(design):
    """Cycles from a row's acceptance to its beat at the last column group."""
    return int(Stages.of(design).free) + Array.Parameters.of(design).latency + design.group_cols - 1


def held(design):
    """Cycles for which a shared accumulator leaves totals alone that are there.

    Totals are read 2 cycles after their beat, and a row of the next block is accepted after that: its turn at a column
    comes late enough if these cycles, and those of the array, last until the earlier turn's sum is kept.
    """
    return max(Turn.of(design).apart - 3 - through(design), 0)


def latencies(design):
    """Cycles of a design's core by name: see :attr:`Core.latencies`."""
    if design.share > 1:
        accumulate = held(design) + SharedControl.Parameters.of(design).latency
    else:
        accumulate = Accumulator.Parameters.of(design).latency
    drain, weights = way_out(design).Parameters.of(design), WeightBuffer.of(design)
    entry, weights = int(Stages.of(design).free) - weights.params.registered, weights.latencies
    result = {"interval": interval(design), "array": through(design), "accumulate": accumulate,
              "drain": drain.latency, "row": drain.turns, "vector": drain.vector, "apart": drain.apart,
              "release": entry + weights["release"]}
    if "word" in weights:
        result["word"] = weights["word"]
    if design.share > 1:
        result["turn"] = Turn.of(design).result
    if design.blocked:
        result["encode"] = converter(design).Parameters.of(design).latency
    return result


class Core(Component):
    """An HBFP core, or a baseline with the same dataflow.

    Ports, order of events and manifest: docs/design/01-core.md. Golden twin: :func:`golden.matmul.matmul`. Its
    parameters are a design, and the name of its module is the design's.

    Parameters
    ----------
    format, rows, ... :
        See :class:`hbfp.design.Design`.

    Raises
    ------
    ConflictError
        If the format is to keep subnormals: only the converter alone can.
    """
    kind, area = "core", "control"
    Parameters = Design

    @classmethod
    def of(cls, design):
        """The core of a design."""
        return cls.made(design)

    @staticmethod
    def ports(params):
        design = params
        if design.blocked and design.format.subnormals != "flush":
            raise ConflictError("subnormals", design.format.subnormals, "must be flush: the core's sums are")
        members = {
            "i_cmd": In(stream.Signature(command_layout(design))), "error": Out(1),
            "i_x": In(stream.Signature(activations_layout(design))),
            "i_w": In(stream.Signature(weights_layout(design))),
            "o": Out(stream.Signature(result_layout(design))),
        }
        if accumulation_of(design).float_results:
            members["i_v"] = In(stream.Signature(ArrayLayout(32, design.cols)))
        if design.blocked:
            members["i_q"] = In(stream.Signature(elements_layout(design.encode_lanes, bool(design.wide))))
            members["o_q"] = Out(stream.Signature(encoded_layout(design)))
            if design.format.rounding == "stochastic":
                members["i_seed"] = In(stream.Signature(32))
        return members

    @property
    def module(self):
        """Name of the Verilog module: the design's."""
        return self.params.name

    @property
    def latencies(self):
        """``interval``: fewest from a row of a pass to the same row of the next, however few rows it has.

        ``array``: from a row's acceptance to its beat at the last column group. ``accumulate``: from there to the
        bank. ``drain``: from a bank's last write to its first row on ``o``; each step with an operand adds ``vector``.
        ``row``: from a row on ``o`` to the next. ``apart``: from a command's last read to the first of the next one.
        ``release``: from a pass's start until its weights may be overwritten; with ``--weight-tiles 1`` those of the
        first word, a row of groups, and the next ones ``word`` apart. ``encode``: from a block's last beat to
        its first converted one. ``turn``, where columns share an accumulator: from a
        column's turn to its result.
        """
        return latencies(self.params)

    def body(self, platform):
        m, design = Module(), self.params
        m.submodules.sequencer = sequencer = Sequencer.of(design, interval(design))
        m.submodules.weights = weights = (SparseWeightBuffer if design.takes_sparse else WeightBuffer).of(design)
        m.submodules.array = array = Array.of(design)
        m.submodules.drain = drain = way_out(design).of(design)
        entry = int(Stages.of(design).free)    # registers between the sequencer, the row of X, and all that they reach
        self._taken = delay(m, self.i_x.payload, entry, "entry_x")
        self._beat = delay(m, sequencer.beat, entry, "entry", reset_less=False)
        self._start = delay(m, sequencer.start, entry, "entry_start", reset_less=False)
        self._wide = delay(m, sequencer.wide, entry, "entry_wide") if design.wide else None
        self._sparse = delay(m, sequencer.sparse, entry, "entry_sparse") if design.takes_sparse else None
        self._row = self._take_sparse(m, weights, array) if design.takes_sparse else self._taken
        connect(m, flipped(self.i_cmd), sequencer.i_cmd)
        connect(m, flipped(self.i_w), weights.i)
        connect(m, drain.o, flipped(self.o))
        if hasattr(drain, "i_v"):
            connect(m, flipped(self.i_v), drain.i_v)
        m.d.comb += [
            self.error.eq(sequencer.error), sequencer.x_valid.eq(self.i_x.valid),
            self.i_x.ready.eq(sequencer.x_ready), sequencer.weights.eq(weights.ready), sequencer.free.eq(drain.free),
            weights.start.eq(sequencer.start if weights.params.registered else self._start),
            array.x.eq(self._row.mantissa), array.swap.eq(self._start),
            *(into.eq(word) for into, word in zip(array.weight, weights.weight, strict=True)),
            drain.begins.eq(sequencer.begins), drain.bank.eq(sequencer.beat.bank), drain.rows.eq(sequencer.rows),
            drain.steps.eq(sequencer.steps),
        ]
        if design.banks == 1:
            m.d.comb += [drain.place.eq(sequencer.row), sequencer.vacant.eq(drain.vacant)]
        self._offset = self._scale_offset(m)
        (self._share if design.share > 1 else self._accumulate)(m, sequencer, weights, array, drain)

        if design.blocked:
            self._convert(m)
        return m

    def _convert(self, m):
        """The converter, which meets the rest outside the core."""
        m.submodules.encode = encode = converter(self.params).of(self.params)
        connect(m, flipped(self.i_q), encode.i)
        connect(m, encode.o, flipped(self.o_q))
        if self.params.format.rounding == "stochastic":
            connect(m, flipped(self.i_seed), encode.i_seed)

    def _address(self, m, beat):
        """Word of a row, counted here, where it is needed, and not delayed."""
        address, following = (Signal(index(self.params.depth), name=name) for name in ("address", "following"))
        with m.If(~beat.top):
            m.d.comb += address.eq(following)
        with m.If(beat.valid):
            m.d.sync += following.eq(address + 1)
        return address

    def _scale_offset(self, m):
        """What is taken off the exponents of X; with wide mantissas, by the mode of the command."""
        design = self.params
        ahead = exponents_ahead(design) if design.share > 1 else 0
        if not design.wide:
            return scale_offset(design) - ahead
        none, one, two = (scale_offset(design, wide) - ahead for wide in range(3))
        offset = Signal(range(min(none, 0), two + 1))
        wide = self._wide
        m.d.comb += offset.eq(Mux(wide.wide_x & wide.wide_w, two, Mux(wide.wide_x | wide.wide_w, one, none)))
        return offset

    def _row_scale(self, m, segment):
        """Exponent, with the offset of every sum, and flag of this cycle's row of X in a segment."""
        scales = shared_scales(self.params) if self.params.share > 1 else Scales.of(self.params)
        scale = Signal(block_scale_layout(scales.row), name=f"row_scale{segment}")
        m.d.comb += [scale.exponent.eq(self._row.exponent[segment] - self._offset),
                     scale.invalid.eq(self._row.invalid[segment])]
        return scale

    def _take_sparse(self, m, weights, array):
        """What a command does otherwise if it is sparse, up to the sums of segments; the row of X for the array."""
        m.submodules.placement = placement = Placement.of(self.params)
        m.d.comb += [array.sparse.eq(self._sparse), placement.sparse.eq(self._sparse), placement.i.eq(self._taken)]
        if array.params.joined > 1:
            m.d.comb += array.joins.eq(~self._sparse)
        if weights.params.head is not None:
            m.d.comb += [into.eq(head) for segment, heads in zip(array.head, weights.head, strict=True)
                         for into, head in zip(segment, heads, strict=True)]
        return placement.o

    def _accumulate(self, m, sequencer, weights, array, drain):
        """Accumulators from west to east; what belongs to a row of X reaches them with its sums."""
        design = self.params
        per_segment = design.height // design.group[0]
        chain = [Accumulator.of(design) for _ in range(design.group_cols)]
        for j, accumulator in enumerate(chain):
            m.submodules[f"accumulator{j}"] = accumulator
            m.d.comb += [accumulator.draining.eq(drain.draining[j]), drain.value[j].eq(accumulator.o)]
            connect(m, drain.read[j], accumulator.read)
            for s in range(design.segments):
                m.d.comb += accumulator.sums[s].eq(array.sums[s][j])
                if design.blocked:
                    m.d.comb += accumulator.w[s].eq(weights.scale[s][j])

        west = chain[0].west.signature.flip().create(path=("west",))
        beat = delay(m, self._beat, array.params.latency, "beat", reset_less=False)
        m.d.comb += [west.beat.eq(beat), west.address.eq(self._address(m, beat))]
        for s in range(design.segments if design.blocked else 0):
            cycles = array.params.number.lead + (s + 1) * per_segment
            m.d.comb += [
                west.exponent[s].eq(delay(m, self._row_scale(m, s).exponent, cycles, f"scale{s}_exponent")),
                west.invalid[s].eq(delay(m, self._row.invalid[s], cycles, f"scale{s}_invalid")),
                west.load[s].eq(delay(m, self._start, cycles, f"load{s}", reset_less=False)),
            ]
            if (s + 1) % design.joined:    # a dense block goes on in the next segment
                m.d.comb += west.skip[s].eq(delay(m, ~self._sparse, cycles, f"skip{s}"))
        east = west_to_east(m, west, chain)

        # The last column group's last row completes a bank; `east` is a cycle later than its `west`.
        arrived = Signal(beat_layout(bool(design.wide)))
        m.d.comb += arrived.eq(delay(m, east.beat, chain[-1].params.latency - 1, "arrived", reset_less=False))
        with m.If(arrived.valid & arrived.last):
            m.d.comb += drain.done.eq(1 << arrived.bank)

    def _share(self, m, sequencer, weights, array, drain):
        """Block sums from west to east; when a row has all its totals, columns accumulate them in turns."""
        design, kc = self.params, self.params.group[1]
        m.submodules.control = control = SharedControl.of(design)
        ahead = array.params.latency - 1    # of the first column's sums
        early = delay(m, self._beat, ahead, "early", reset_less=False)
        beat = delay(m, early, 1, "beat", reset_less=False)
        m.d.comb += [
            Value.cast(control.beat).eq(Value.cast(sequencer.beat)), control.pass_end.eq(sequencer.pass_end),
            control.command_end.eq(sequencer.command_end), control.row.eq(sequencer.row),
            sequencer.room.eq(control.room),
            control.scale.eq(self._row_scale(m, 0)),
            drain.place.eq(control.place), control.vacant.eq(drain.vacant), drain.done.eq(control.done),
        ]
        # The exponents of the columns, of the block that is accumulated and of the next one.
        size = weights.scale[0][0].shape().size
        slot = Signal()
        m.submodules.scales = scales = Ram(2, size * design.group_cols)
        opened = early.valid & early.top & early.closes
        if design.wide:    # the exponents come with the first beat, and the row may be complete much later
            opened = delay(m, self._start & self._beat.closes, ahead, "opened", reset_less=False)
        m.d.comb += [scales.w_en.eq(opened), scales.w_addr.eq(slot),
                     scales.w_data.eq(Cat(weights.scale[0])), scales.r_en.eq(control.read.en),
                     scales.r_addr.eq(control.slot)]
        m.d.sync += slot.eq(slot ^ scales.w_en)

        chain = [BlockSum.of(design) for _ in range(design.group_cols)]
        west = chain[0].west.signature.flip().create(path=("west",))
        m.d.comb += [west.address.eq(self._address(m, beat)), west.beat.valid.eq(beat.valid),
                     west.beat.opens.eq(beat.opens), west.beat.closes.eq(beat.closes)]
        if design.wide:
            m.d.comb += [west.beat[name].eq(beat[name]) for name in DIGITS]
        east = west_to_east(m, west, chain)
        m.d.comb += control.closed.eq(delay(m, east.beat.valid & east.beat.closes, held(design), "closed",
                                            reset_less=False))
        connect(m, control.read, *(block_sum.read for block_sum in chain))
        sums, exponents, invalid = [], [], []
        for j, block_sum in enumerate(chain):
            m.submodules[f"block_sum{j}"] = block_sum
            m.d.comb += block_sum.sums.eq(array.sums[0][j])
            word = data.View(scale_layout(exponent_bits(design), kc), scales.r_data.word_select(j, size))
            for column in range(kc):
                sums.append(block_sum.o[column])
                exponents.append(word.exponent[column])
                invalid.append(word.invalid[column])

        values = [drain.value[n // kc][n % kc] for n in range(design.cols)]
        accumulators = [SharedAccumulator.of(design) for _ in range(design.cols // design.share)]
        connect(m, control.turn, *(shared.turn for shared in accumulators))
        for n, shared in enumerate(accumulators):
            m.submodules[f"shared{n}"] = shared
            connect(m, drain.read[n * design.share // kc], shared.read)
            mine = slice(n * design.share, (n + 1) * design.share)
            m.d.comb += [
                shared.sums.eq(Cat(sums[mine])), shared.w.exponent.eq(Cat(exponents[mine])),
                shared.w.invalid.eq(Cat(invalid[mine])),
                *(into.eq(shared.o[place]) for place, into in enumerate(values[mine])),
            ]
