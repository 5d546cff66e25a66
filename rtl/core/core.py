"""The core: weights, array, accumulation, side unit, converter; see docs/design/01-core.md."""

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hbfp.design import ConflictError, Design

from ..accumulate.accumulator import Lanes
from ..accumulate.beat import beat_layout
from ..accumulate.fold import Fold
from ..accumulate.fold_control import FoldControl
from ..accumulate.partial import Partial, pass_layout
from ..array.array import Array
from ..array.weights import WeightBuffer
from ..convert.encode import Encode, encoded_layout
from ..fixed.scales import Scales, scale_offset
from ..lib.cell import Cell
from ..lib.layout import ArrayLayout, index
from ..lib.memory import Ram
from ..lib.skew import delay
from ..number.streams import exponent_bits, operand_layout, result_layout, scale_layout
from .drain import Drain
from .sequencer import Sequencer, command_layout


def interval(design):
    """Fewest cycles from a row of a pass to the same row of the next, however few rows it has."""
    lanes = Partial.INTERVAL if design.share > 1 else Lanes.Parameters.of(design).interval
    return max(lanes, WeightBuffer.Parameters.of(design).interval)


def latencies(design):
    """Cycles of a design's core by name: see :attr:`Core.latencies`."""
    accumulate = (FoldControl if design.share > 1 else Lanes).Parameters.of(design)
    result = {"interval": interval(design),
              "array": Array.Parameters.of(design).latency + design.group_cols - 1,
              "accumulate": accumulate.latency, "drain": Drain.Parameters.of(design).latency,
              "release": WeightBuffer.Parameters.of(design).release}
    if design.blocked:
        result["encode"] = Encode.Parameters.of(design).latency
    return result


class Core(Cell):
    """An HBFP core, or a baseline with the same dataflow.

    Ports, order of events and manifest: docs/design/01-core.md. Golden twin: :func:`golden.matmul.matmul`. Its
    parameters are a design, and the name of its module is the design's.

    Parameters
    ----------
    format, rows, ... :
        As of :class:`hbfp.design.Design`.

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
            "i_x": In(stream.Signature(operand_layout(design, design.rows, design.segments))),
            "i_w": In(stream.Signature(operand_layout(design, design.cols, design.cols))),
            "o": Out(stream.Signature(result_layout(design))),
        }
        if design.arithmetic != "int":
            members["i_v"] = In(stream.Signature(ArrayLayout(32, design.cols)))
        if design.blocked:
            members["i_q"] = In(stream.Signature(ArrayLayout(32, design.encode_lanes)))
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
        bank. ``drain``: from a bank's last write to its first row on ``o``; each step with an operand adds one.
        ``release``: from a pass's start until its weights may be overwritten. ``encode``: from a block's last beat to
        its first converted one.
        """
        return latencies(self.params)

    def body(self, platform):
        m, design = Module(), self.params
        m.submodules.sequencer = sequencer = Sequencer.of(design, interval(design))
        m.submodules.weights = weights = WeightBuffer.of(design)
        m.submodules.array = array = Array.of(design)
        m.submodules.drain = drain = Drain.of(design)
        connect(m, flipped(self.i_cmd), sequencer.i_cmd)
        connect(m, flipped(self.i_w), weights.i)
        connect(m, drain.o, flipped(self.o))
        if design.arithmetic != "int":
            connect(m, flipped(self.i_v), drain.i_v)
        m.d.comb += [
            self.error.eq(sequencer.error), sequencer.x_valid.eq(self.i_x.valid),
            self.i_x.ready.eq(sequencer.x_ready), sequencer.weights.eq(weights.ready), sequencer.free.eq(drain.free),
            weights.start.eq(sequencer.start),
            array.x.eq(self.i_x.payload.mantissa), array.swap.eq(sequencer.start),
            *(into.eq(word) for into, word in zip(array.weight, weights.weight, strict=True)),
            drain.begins.eq(sequencer.begins), drain.bank.eq(sequencer.beat.bank), drain.rows.eq(sequencer.rows),
            drain.steps.eq(sequencer.steps),
        ]
        (self._fold if design.share > 1 else self._accumulate)(m, sequencer, weights, array, drain)

        if design.blocked:
            m.submodules.encode = encode = Encode.of(design)
            connect(m, flipped(self.i_q), encode.i)
            connect(m, encode.o, flipped(self.o_q))
            if design.format.rounding == "stochastic":
                connect(m, flipped(self.i_seed), encode.i_seed)
        return m

    def _address(self, m, beat):
        """Word of a row, counted here, where it is needed, and not delayed."""
        address, following = (Signal(index(self.params.depth), name=name) for name in ("address", "following"))
        with m.If(~beat.top):
            m.d.comb += address.eq(following)
        with m.If(beat.valid):
            m.d.sync += following.eq(address + 1)
        return address

    def _accumulate(self, m, sequencer, weights, array, drain):
        """Lanes from west to east; what belongs to a row of X reaches them with its sums."""
        design = self.params
        per_segment = design.height // design.group[0]
        beat = delay(m, sequencer.beat, array.params.latency, "beat", reset_less=False)
        west = {"west": beat, "address": self._address(m, beat)}
        if design.blocked:
            for s in range(design.segments):
                exponent = Signal(signed(Scales.of(design).row), name=f"x_{s}")
                m.d.comb += exponent.eq(self.i_x.payload.exponent[s] - scale_offset(design))
                cycles = (s + 1) * per_segment
                west[f"x_{s}"] = delay(m, exponent, cycles, f"x_{s}")
                west[f"nan_{s}"] = delay(m, self.i_x.payload.invalid[s], cycles, f"nan_{s}")
            west["load"] = Cat(delay(m, sequencer.start, (s + 1) * per_segment - 1, f"load_{s}", reset_less=False)
                               for s in range(design.segments))

        for j in range(design.group_cols):
            m.submodules[f"lanes{j}"] = lanes = Lanes.of(design)
            for name, value in west.items():
                m.d.comb += getattr(lanes, name).eq(value)
                west[name] = getattr(lanes, "east" if name == "west" else f"{name}_east")
            m.d.comb += [lanes.draining.eq(drain.draining), lanes.drain_en.eq(drain.en),
                         lanes.drain_address.eq(drain.address), drain.value[j].eq(lanes.o)]
            for s in range(design.segments):
                m.d.comb += lanes.sums[s].eq(array.sums[s][j])
                if design.blocked:
                    m.d.comb += lanes.w[s].eq(weights.scale[s][j])

        # The last column group's last row completes a bank; `east` is a cycle later than its `west`.
        arrived = Signal(beat_layout())
        m.d.comb += arrived.eq(delay(m, lanes.east, lanes.params.latency - 1, "arrived", reset_less=False))
        with m.If(arrived.valid & arrived.last):
            m.d.comb += drain.done.eq(1 << arrived.bank)

    def _fold(self, m, sequencer, weights, array, drain):
        """Partial sums from west to east; when a row has all its totals, columns fold them in turns."""
        design, kc = self.params, self.params.group[1]
        m.submodules.control = control = FoldControl.of(design)
        per_segment = design.height // design.group[0]
        early = delay(m, sequencer.beat, per_segment - 1, "early", reset_less=False)
        beat = delay(m, early, 1, "beat", reset_less=False)
        m.d.comb += [
            control.beat.eq(sequencer.beat), control.pass_end.eq(sequencer.pass_end),
            control.command_end.eq(sequencer.command_end), control.row.eq(sequencer.row),
            sequencer.room.eq(control.room),
            control.exponent.eq(self.i_x.payload.exponent[0] - scale_offset(design)),
            control.invalid.eq(self.i_x.payload.invalid[0]),
            drain.place.eq(control.place), control.vacant.eq(drain.vacant), drain.done.eq(control.done),
        ]
        # The exponents of the columns, of the block that is folded and of the next one.
        size = weights.scale[0][0].shape().size
        slot = Signal()
        m.submodules.scales = scales = Ram(2, size * design.group_cols)
        m.d.comb += [scales.w_en.eq(early.valid & early.top & early.closes), scales.w_addr.eq(slot),
                     scales.w_data.eq(Cat(weights.scale[0])), scales.r_en.eq(control.fold_en),
                     scales.r_addr.eq(control.slot)]
        m.d.sync += slot.eq(slot ^ scales.w_en)

        west = Signal(pass_layout())
        address = self._address(m, beat)
        m.d.comb += [getattr(west, name).eq(getattr(beat, name)) for name in pass_layout().members]
        sums, exponents, invalid = [], [], []
        for j in range(design.group_cols):
            m.submodules[f"partial{j}"] = partial = Partial.of(design)
            m.d.comb += [partial.west.eq(west), partial.address.eq(address), partial.sums.eq(array.sums[0][j]),
                         partial.fold_en.eq(control.fold_en), partial.fold_address.eq(control.fold_address)]
            west, address = partial.east, partial.address_east
            word = data.View(scale_layout(exponent_bits(design), kc), scales.r_data.word_select(j, size))
            for column in range(kc):
                sums.append(partial.o[column])
                exponents.append(word.exponent[column])
                invalid.append(word.invalid[column])
        m.d.comb += control.closed.eq(west.valid & west.closes)

        values = [drain.value[n // kc][n % kc] for n in range(design.cols)]
        for n in range(0, design.cols, design.share):
            m.submodules[f"fold{n // design.share}"] = fold = Fold.of(design)
            mine = slice(n, n + design.share)
            m.d.comb += [
                fold.sums.eq(Cat(sums[mine])), fold.w.exponent.eq(Cat(exponents[mine])),
                fold.w.invalid.eq(Cat(invalid[mine])), fold.row.eq(control.target),
                fold.drain_en.eq(drain.en), fold.drain_address.eq(drain.address),
                *(getattr(fold, name).eq(getattr(control, name)) for name in (
                    "x", "nan", "column", "fresh", "read_address", "keep", "write_address", "result")),
                *(into.eq(fold.o[place]) for place, into in enumerate(values[mine])),
            ]
