"""The way out of a core with registers: nothing stalls, and no signal drives many loads."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..accumulate.signatures import read_signature
from ..lib.component import Component
from ..lib.credits import CreditQueue
from ..lib.fanout import branches
from ..lib.layout import ArrayLayout, index
from ..lib.names import parameter
from ..lib.skew import delay
from ..number.kinds import accumulation_of
from ..number.streams import beat_of_results
from .sequencer import steps_layout
from .side import SideLane
from .side_turns import FreeTurns


class CreditDrain(Component):
    """Empties the banks in turn, as :class:`~rtl.core.drain.Drain` does; a row leaves its bank only when there is room
    for it behind the side unit.

    What goes to all columns passes a tree of registers (:mod:`rtl.lib.fanout`): reading, steps, and the loading of
    operands, for which a beat of ``i_v`` waits.

    Parameters
    ----------
    cols, group, depth, shared, lanes : int, int, int, bool, int
        See :class:`~rtl.core.drain.Drain`.
    late : int
        Registers between the word that a bank gives and ``value``.
    lane : rtl.core.side.SideLane.Parameters
        Parameters of a lane of the side unit.
    banks : int
        See :class:`~rtl.core.drain.Drain`.

    Members
    -------
    begins, bank, rows, steps, done, free, place, vacant, i_v, asks, o
        As of :class:`~rtl.core.drain.Drain`, but that a beat of ``i_v`` stays until it is taken; a row that ``vacant``
        says is read, is read at the latest in that cycle.
    draining, read : ``Out(2).array``, ``Out(read_signature).array``
        By column group, a copy each.
    value : ``In.array``
        The word by column group, ``1 + late`` cycles after ``read``.
    """
    kind, area, apart = "credit_drain", "control", True

    @dataclass(frozen=True)
    class Parameters:
        cols: int = parameter("c")
        group: int = parameter("g")
        depth: int = parameter("d")
        shared: bool = parameter("shared", False)
        lanes: int = parameter("s", 0)
        late: int = parameter("l", 0)
        lane: SideLane.Parameters = parameter("", SideLane.Parameters())
        banks: int = parameter("k", 2)

        @property
        def groups(self):
            """Column groups."""
            return self.cols // self.group

        @property
        def turns(self):
            """Cycles that a row takes to leave."""
            return self.cols // self.lanes if self.lanes else 1

        @property
        def apart(self):
            """Cycles from a command's last read to the first of the next one, whose steps may be others."""
            return 2 + self.late + self.lane.latency + self.turns - 1

        @property
        def vector(self):
            """Cycles that a beat of factors or biases takes."""
            return 3 if self.turns == 1 else self.turns + 1

        @property
        def latency(self):
            """Cycles from a bank's last write to its first row on ``o``, without factors and biases."""
            return 4 + self.apart

        @classmethod
        def of(cls, design):
            """The way out of a design."""
            lane = SideLane.Parameters.of(design)
            return cls(design.cols, design.group[1], design.depth, design.share > 1,
                       design.side_lanes if lane.shared else 0,
                       accumulation_of(design).leaving + design.on_fpga if design.share == 1 else 0, lane,
                       design.banks)

    @staticmethod
    def ports(params):
        members = {
            "begins": In(1), "bank": In(1), "rows": In(range(params.depth + 1)), "steps": In(steps_layout()),
            "done": In(2), "free": Out(2, init=3), "draining": Out(2).array(params.groups),
            "read": Out(read_signature(params.depth)).array(params.groups),
            "value": In(ArrayLayout(32, params.group)).array(params.groups),
            "i_v": In(stream.Signature(ArrayLayout(32, params.cols))),
            "o": Out(stream.Signature(beat_of_results(params.cols, unsigned(32)))),
        }
        if params.shared or params.banks == 1:
            members |= {"place": In(index(params.depth)), "vacant": Out(1)}
        if params.turns > 1:
            members["asks"] = Out(1)
        return members

    @property
    def latencies(self):
        """``result``: from a bank's last write to its first row on ``o``, without factors and biases; ``row``: cycles
        from a row to the next; ``vector``: that a beat of ``i_v`` takes; ``apart``: from a command's last read to the
        first of the next."""
        params = self.params
        return {"result": params.latency, "row": params.turns, "vector": params.vector, "apart": params.apart}

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.queue = queue = CreditQueue(CreditQueue.words(params.apart, params.turns),
                                                 32 * params.cols + params.turns, params.turns)
        rows = [Signal(range(params.depth + 1), name=f"rows_{n}", reset_less=True) for n in range(2)]
        steps = [Signal(steps_layout(), name=f"steps_{n}", reset_less=True) for n in range(2)]
        for n in range(2):
            with m.If(self.begins & (self.bank == n)):
                m.d.sync += [rows[n].eq(self.rows), steps[n].eq(self.steps)]

        # Read: a row at a time, where there is room behind the side unit.
        complete = Signal(2)
        current = Signal()
        row = Signal(index(params.depth))
        reading = Signal()
        issue = Signal()
        last = Signal()
        over = Signal()    # all rows were read
        leaves = Signal()
        freed = Signal(2)
        start = Signal()
        m.d.comb += [last.eq(row + 1 == Mux(current, rows[1], rows[0])), queue.starts.eq(issue),
                     issue.eq(reading & ~over & queue.room & self._pace(m, issue)),
                     leaves.eq(delay(m, issue & last, params.turns - 1, "leaves", reset_less=False))]
        m.d.sync += [complete.eq((complete | self.done) & ~(leaves << current)), freed.eq(leaves << current),
                     self.free.eq((self.free & ~(self.begins << self.bank)) | freed)]
        m.d.sync += current.eq(current ^ leaves)
        with m.If(issue):
            m.d.sync += [row.eq(row + 1), over.eq(last)]
        with m.If(leaves):    # the word stays on `value` for all turns
            m.d.sync += [reading.eq(0), over.eq(0)]
        with m.If(start):
            m.d.sync += [reading.eq(1), row.eq(0)]
        asked = Cat(reading << current if params.banks > 1 else Cat(reading, Const(0, 1)), issue, row)
        for n, copy in enumerate(branches(m, asked, params.groups, "read")):
            m.d.comb += [self.draining[n].eq(copy[:2]), self.read[n].en.eq(copy[2]), self.read[n].address.eq(copy[3:])]

        # Rows on their way to the queue, and which of them is its command's last.
        on_way, final = [issue], [last]
        for stage in range(1, params.apart + 1):
            on_way.append(Signal(name=f"valid_{stage}"))
            final.append(Signal(name=f"last_{stage}", reset_less=True))
            m.d.sync += [on_way[-1].eq(on_way[-2]), final[-1].eq(final[-2])]
        if params.shared:    # rows that have been read; the command after the next one waits for its bank
            m.d.comb += self.vacant.eq(~complete.any() | (reading & ((self.place < row) | over)))
        elif params.banks == 1:
            m.d.comb += self.vacant.eq(Mux(reading, (self.place < row) | over, freed.any()))
        pending = Signal()
        m.d.comb += pending.eq(Mux(current, complete[1], complete[0]) & ~reading
                               & ~Cat(on_way[1:params.apart - 1]).any())
        want, active = self._operands(m, start, pending, Mux(current, Cat(steps[1]), Cat(steps[0])))
        (self._lanes if params.turns == 1 else self._turns)(m, queue, want, active, on_way)
        self._leave(m, queue, final[-1])
        return m

    def _leave(self, m, queue, last):
        """The queue's words: parts of a row, each with the same flag."""
        params = self.params
        size = len(queue.w_data) // params.turns
        for part in range(params.turns):
            word = queue.o.payload.word_select(part, size)
            m.d.comb += [queue.w_data.word_select(part, size)[-1].eq(last),
                         self.o.payload.value.as_value().word_select(part, size - 1).eq(word[:-1])]
        m.d.comb += [self.o.payload.last.eq(queue.o.payload[-1]), self.o.valid.eq(queue.o.valid),
                     queue.o.ready.eq(self.o.ready)]

    def _pace(self, m, issue):
        """Whether a row may be read, ``turns`` cycles after the last one."""
        if self.params.turns == 1:
            return 1
        rest = Signal(range(self.params.turns))
        m.d.sync += rest.eq(Mux(issue, self.params.turns - 1, Mux(rest == 0, 0, rest - 1)))
        return rest == 0

    def _operands(self, m, start, pending, steps):
        """Rows in the side unit share their operands: the last command's have to be past them first.

        Which operand is asked for, if any (factor, bias), and the steps of the rows.
        """
        wanted = Signal(steps_layout())
        active = Signal(steps_layout(), reset_less=True)
        got = Signal(2)
        want = Signal(2)
        m.d.comb += [Cat(wanted).eq(steps), want.eq(Cat(wanted.scale, wanted.bias) & ~got),
                     start.eq(pending & ~want.any())]
        with m.If(self.i_v.valid & self.i_v.ready):
            m.d.sync += got.eq(got | Mux(want[0], 1, 2))
        with m.If(start):
            m.d.sync += [got.eq(0), active.eq(wanted)]
        asks = Signal(2)
        m.d.comb += asks.eq(Cat(want[0], want[1] & ~want[0]) & pending.replicate(2))
        return asks, active

    def _values(self):
        """The row that was read, column by column."""
        return [value[n] for value in self.value for n in range(self.params.group)]

    def _lanes(self, m, queue, asks, active, on_way):
        """A lane for every column, with its own factor and bias: they load what is offered, until it is a beat."""
        params = self.params
        load = Signal(2)
        loaded = Signal()
        m.d.sync += [load.eq(asks & ~(load.any() | loaded).replicate(2)), loaded.eq(load.any())]
        m.d.comb += self.i_v.ready.eq(loaded)
        copies = branches(m, Cat(load, active), params.cols, "side")
        for column, value in enumerate(self._values()):
            m.submodules[f"lane{column}"] = lane = SideLane.made(params.lane)
            copy = copies[column]
            m.d.comb += [
                lane.load_scale.eq(copy[0]), lane.load_bias.eq(copy[1]), Cat(lane.steps).eq(copy[2:]),
                lane.v.eq(self.i_v.payload[column]), lane.i.eq(value), queue.w_data.word_select(column, 32).eq(lane.o),
            ]
        m.d.comb += queue.w_en.eq(on_way[-1])

    def _turns(self, m, queue, asks, active, on_way):
        """Lanes for a part of the columns."""
        params = self.params
        m.submodules.turns = turns = FreeTurns(cols=params.cols, lanes=params.lanes, lane=params.lane)
        m.d.comb += [
            self.asks.eq(asks.any()), turns.steps.eq(delay(m, active, 1, "active")),
            turns.load.eq(asks & self.i_v.valid.replicate(2)),
            turns.v.eq(self.i_v.payload),
            self.i_v.ready.eq(turns.loaded), turns.valid.eq(on_way[2 + params.late]), turns.i.eq(Cat(self._values())),
            queue.w_en.eq(turns.w_en),
        ]
        for part in range(params.turns):
            m.d.comb += queue.w_data.word_select(part, len(turns.o) + 1)[:-1].eq(turns.o)
