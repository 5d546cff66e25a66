"""The way out: reads complete banks, row by row, through the side unit."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Shape, Signal, unsigned
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..accumulate.signatures import read_signature
from ..lib.component import Component
from ..lib.layout import ArrayLayout, index
from ..lib.names import parameter
from ..number.kinds import accumulation_of
from ..number.streams import beat_of_results
from .sequencer import steps_layout
from .side import SideLane
from .side_turns import SideTurns


class Drain(Component):
    """Empties the banks in turn; a bank is free again when its last row has been read.

    Parameters
    ----------
    cols, group : int
        Columns, and how many of them a column group has.
    depth : int
        Words of a bank.
    element : Shape
        Shape of a result.
    side : bool
        Whether there is a side unit: results are FP32, not integers.
    shared : bool
        Whether columns share an accumulator.
    lanes : int
        Lanes of the side unit, a divisor of the columns; 0: as many. A row takes ``turns`` cycles to leave, columns
        over lanes, and so does a beat of factors or biases to be taken.
    banks : int
        Accumulator banks, 1 or 2. With one, two commands have it in turns, and a bank's number says which.
    multiplier : str
        Of a lane that columns share.
    integer : bool
        Whether the side unit's lanes make FP32 of integers.

    Members
    -------
    begins : ``In(1)``
        A command starts to fill ``bank``, with ``rows`` rows, for the side unit's ``steps``.
    bank, rows, steps : ``In``
    done : ``In(2)``
        The bank is complete.
    free : ``Out(2)``
        Banks that hold nothing.
    draining, read : ``Out(2).array``, ``Out(read_signature).array``
        Bank to read, by bit, and its word, by column group the same; ``en`` is high while the way out moves.
    place, vacant : ``In``, ``Out(1)``
        Only where results have one bank. Where columns share an accumulator: whether word ``place`` may be written;
        else, while the command before that of ``bank`` is not read out: whether its row ``place`` is.
    value : ``In.array``
        The word by column group, one cycle later.
    i_v : ``In(stream)``
        Factors, then biases, as the steps ask.
    asks : ``Out(1)``
        Only where a beat of ``i_v`` takes several cycles: one is waited for. It is taken part by part while it is
        there, may come and go, and ``ready`` is high with the last part.
    o : ``Out(stream)``
        Rows of results.
    """
    kind, area, apart = "drain", "control", True

    @dataclass(frozen=True)
    class Parameters:
        cols: int = parameter("c")
        group: int = parameter("g")
        depth: int = parameter("d")
        element: Shape = parameter("w", unsigned(32))
        side: bool = parameter("int", True)
        shared: bool = parameter("shared", False)
        lanes: int = parameter("s", 0)
        banks: int = parameter("k", 2)
        multiplier: str = parameter("", "plain", rare=True)
        integer: bool = parameter("integer", False, rare=True)

        @property
        def groups(self):
            """Column groups."""
            return self.cols // self.group

        @property
        def turns(self):
            """Cycles that a row takes to leave."""
            return self.cols // self.lanes if self.lanes else 1

        @property
        def latency(self):
            """Cycles from a bank's last write to its first row on ``o``, without factors and biases."""
            return 3 + (SideLane.LATENCY if self.side else 0) + self.turns - 1

        @property
        def vector(self):
            """Cycles that a beat of factors or biases takes."""
            return self.turns

        @property
        def apart(self):
            """Cycles from a command's last read to the first of the next one: its last row has left."""
            return self.latency

        @classmethod
        def of(cls, design):
            """The way out of a design."""
            accumulation, lane = accumulation_of(design), SideLane.Parameters.of(design)
            return cls(design.cols, design.group[1], design.depth, accumulation.result_shape,
                       accumulation.float_results, design.share > 1, design.side_lanes, design.banks,
                       lane.multiplier, lane.integer)

    @staticmethod
    def ports(params):
        word = index(params.depth)
        members = {
            "begins": In(1), "bank": In(1), "rows": In(range(params.depth + 1)), "steps": In(steps_layout()),
            "done": In(2), "free": Out(2, init=3), "draining": Out(2).array(params.groups),
            "read": Out(read_signature(params.depth)).array(params.groups),
            "value": In(ArrayLayout(params.element.width, params.group)).array(params.groups),
            "o": Out(stream.Signature(beat_of_results(params.cols, params.element))),
        }
        if params.shared or params.banks == 1:
            members |= {"place": In(word), "vacant": Out(1)}
        if params.side:
            members["i_v"] = In(stream.Signature(ArrayLayout(32, params.cols)))
        if params.side and params.turns > 1:
            members["asks"] = Out(1)
        return members

    @property
    def latencies(self):
        """``result``: from a bank's last write to its first row on ``o``, without factors and biases; ``row``: cycles
        from a row to the next."""
        return {"result": self.params.latency, "row": self.params.turns}

    def body(self, platform):
        m, params = Module(), self.params
        rows = [Signal(range(params.depth + 1), name=f"rows_{n}", reset_less=True) for n in range(2)]
        steps = [Signal(steps_layout(), name=f"steps_{n}", reset_less=True) for n in range(2)]
        complete = Signal(2)
        current = Signal()
        row = Signal(index(params.depth))
        pending = Signal()
        start = Signal()
        reading = Signal()
        last = Signal()
        move = Signal()
        step = move if params.turns == 1 else Signal(name="step")    # the row that was read has had all its turns
        freed = Signal(2)
        for n in range(2):
            with m.If(self.begins & (self.bank == n)):
                m.d.sync += [rows[n].eq(self.rows), steps[n].eq(self.steps)]
        m.d.comb += [
            last.eq(row + 1 == Mux(current, rows[1], rows[0])), move.eq(~self.o.valid | self.o.ready),
            *(read.en.eq(step) for read in self.read), *(read.address.eq(row) for read in self.read),
        ]
        m.d.sync += [complete.eq((complete | self.done) & ~freed),
                     self.free.eq((self.free & ~(self.begins << self.bank)) | freed)]
        with m.If(start):
            m.d.sync += [reading.eq(1), row.eq(0)]
        with m.If(reading & step):
            m.d.sync += row.eq(row + 1)
            with m.If(last):
                m.d.sync += reading.eq(0)

        # A row is on `value` one cycle after its address, and on `o` when it has passed the side unit.
        stages = 1 + (SideLane.LATENCY if params.side else 0)
        flags = [(reading, last)]
        for stage in range(stages):
            valid, final = Signal(name=f"valid_{stage}"), Signal(name=f"last_{stage}", reset_less=True)
            with m.If(move if stage else step):
                m.d.sync += [valid.eq(flags[-1][0]), final.eq(flags[-1][1])]
            flags.append((valid, final))
        # The bank holds a row until the next stage has it: only then is it done with the last one.
        held = flags[1][0]
        leaves = Signal()
        shown = Signal(2)    # the bank that is read out
        m.d.comb += [
            leaves.eq(held & flags[1][1] & step), freed.eq(leaves << current),
            pending.eq(Mux(current, complete[1], complete[0]) & ~reading & ~held),
            shown.eq((reading | held) << (current if params.banks > 1 else 0)),
            *(draining.eq(shown) for draining in self.draining),
        ]
        with m.If(leaves):
            m.d.sync += current.eq(~current)
        if params.shared:    # rows that have been read; the command after the next one waits for its bank
            m.d.comb += self.vacant.eq(~complete.any() | Mux(reading, self.place < row, held))
        elif params.banks == 1:
            m.d.comb += self.vacant.eq(Mux(reading, self.place < row, held))
        m.d.comb += self.o.payload.last.eq(flags[-1][1])
        if params.turns == 1:
            m.d.comb += self.o.valid.eq(flags[-1][0])

        if not params.side:
            m.d.comb += [start.eq(pending), self.o.payload.value.eq(Cat(self.value))]
            return m

        taken, factor, active = self._operands(m, start, pending, Mux(current, Cat(steps[1]), Cat(steps[0])), flags)
        if params.turns == 1:
            self._lanes(m, move, taken, factor, active)
        else:
            self._turns(m, move, step, taken, factor, active, held)
        return m

    def _operands(self, m, start, pending, steps, flags):
        """Rows in the side unit share their operands: the last command's have to leave first.

        Whether a beat of them is there and wanted, whether it has factors, and the steps of the rows.
        """
        wanted = Signal(steps_layout())
        active = Signal(steps_layout())
        got = Signal(2)
        want = Signal(2)
        empty = Signal()
        m.d.comb += [
            empty.eq(~Cat(valid for valid, _ in flags[1:]).any()),
            Cat(wanted).eq(steps),
            want.eq(Cat(wanted.scale, wanted.bias) & ~got),
            start.eq(pending & empty & ~want.any()),
        ]
        factor = Signal()
        taken = Signal()
        asks = pending & empty & want.any()
        m.d.comb += [factor.eq(want[0]), taken.eq(self.i_v.valid & asks)]
        with m.If(self.i_v.valid & self.i_v.ready):
            m.d.sync += got.eq(got | Mux(factor, 1, 2))
        with m.If(start):
            m.d.sync += [got.eq(0), active.eq(wanted)]
        m.d.comb += (self.i_v.ready if self.params.turns == 1 else self.asks).eq(asks)
        return taken, factor, active

    def _values(self):
        """The row that was read, column by column."""
        return [value[n] for value in self.value for n in range(self.params.group)]

    def _lanes(self, m, move, taken, factor, active):
        """A lane for every column, with its own factor and bias."""
        for column, value in enumerate(self._values()):
            m.submodules[f"lane{column}"] = lane = SideLane(integer=self.params.integer)
            m.d.comb += [
                lane.en.eq(move), lane.steps.eq(active), lane.v.eq(self.i_v.payload[column]),
                lane.load_scale.eq(taken & factor), lane.load_bias.eq(taken & ~factor),
                lane.i.eq(value), self.o.payload.value[column].eq(lane.o),
            ]

    def _turns(self, m, move, step, taken, factor, active, held):
        """Lanes for a part of the columns; ``held``: a row was read."""
        params = self.params
        m.submodules.turns = turns = SideTurns(cols=params.cols, lanes=params.lanes, multiplier=params.multiplier,
                                                     integer=params.integer)
        m.d.comb += [
            turns.en.eq(move), turns.steps.eq(active), turns.load.eq(taken), turns.factor.eq(factor),
            turns.v.eq(self.i_v.payload), self.i_v.ready.eq(turns.loaded), turns.valid.eq(held),
            turns.i.eq(Cat(self._values())), step.eq(move & turns.taken),
            self.o.valid.eq(turns.done), self.o.payload.value.eq(turns.o),
        ]
