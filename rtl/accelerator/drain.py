"""The unit drain: results from the core to V, factors and biases from V to the core."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import Opcode

from ..lib.component import Component
from ..lib.layout import index
from ..lib.names import parameter
from ..lib.skew import delay
from ..lib.stages import Stages
from ..number.streams import beat_of_results
from .layouts import ADDRESS_BITS, v_layout
from .loops import Loops
from .signatures import unit_members, v_read, v_write
from .sizes import Sizes

#: Cycles from one in which a core with registers is ready for an operand to the next: ``vector`` of
#: :class:`~rtl.core.credit_drain.CreditDrain` where columns have a lane each.
PULSE = 3


class DrainToV(Component):
    """Writes the rows that leave the core to V, a row a cycle; gives the core its factors and biases.

    A row on ``i`` is taken in the cycle in which its write is granted. The next instruction is taken with the last row,
    so that there is no pause between instructions. Of wide commands two have words in turns: the even columns of the
    first go to even lanes, those of the second to odd ones. If the instruction is *diagonal*, a row of the outer loop's
    round n is written to lanes n and on alone.

    When the core asks for an operand (``o_v.ready``), its read is on the port of V; one cycle after the grant its word
    is on ``o_v``, and the core takes it. While the factors are taken, the biases are read, so that both take the core
    three cycles instead of two. A core with registers is ready in one cycle of :data:`PULSE`, again and again until it
    has its operand, while rows of the command before may still be on their way: the operand is read in time for the
    next such cycle.

    A side unit with fewer lanes than columns takes an operand in several cycles: it ``asks`` for it, and its word is
    read in each of them, since the port of V keeps none. V grants these reads before all others.

    ``done`` is high in the cycle after the last row's write. A ``last`` of the core that comes with another row than
    the last of a column tile, or does not come with that, sets ``fault``, which stays high until reset.

    Members
    -------
    instruction, held, done, fault :
        :func:`~rtl.accelerator.signatures.unit_members`.
    i : ``In(stream)``
        The core's ``o``.
    o_v : ``Out(stream)``
        The core's ``i_v``. Without ``asks``, ``ready`` must not depend on ``valid``, and must stay, or come again,
        until an operand is taken.
    asks : ``In(1)``
        Only where ``turns`` is more than 1: the core's.
    read, write : ``Out(v_read)``, ``Out(v_write)``
    """
    kind, area, apart = "drain_to_v", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        pulsed: bool = parameter("pulsed", False)
        turns: int = parameter("t", 1)
        wide: bool = parameter("wide", False)

        @classmethod
        def of(cls, system):
            """The parameters of an accelerator's drain."""
            return cls(system.lanes, Stages.of(system.core).free, system.core.side_turns, bool(system.core.wide))

    @staticmethod
    def ports(params):
        members = unit_members(Opcode.DRAIN, ("wide",) if params.wide else ())
        return members | ({"asks": In(1)} if params.turns > 1 else {}) | {
            "i": In(stream.Signature(beat_of_results(params.lanes, unsigned(32)))),
            "o_v": Out(stream.Signature(v_layout(params))), "read": Out(v_read(params)), "write": Out(v_write(params))}

    def body(self, platform):
        m = Module()
        new, held = self.instruction.payload, self.held
        active, start, step = (Signal(name=name) for name in ("active", "start", "step"))
        loops = Loops(m, "loop", (12, 12, 12), start, step)
        loops.count((held.rows0, held.rows1, held.columns))
        odd = held.wide & loops.counter[2][0] if self.params.wide else None
        first = Signal(index(self.params.lanes))    # lane that is written
        m.d.comb += first.eq(Mux(held.diagonal, loops.counter[1], 0))
        address = loops.follow("address", ADDRESS_BITS, new.base, (
            held.row0, held.row1, Mux(held.wide & ~odd, 0, held.column) if self.params.wide else held.column))
        m.d.comb += [
            self.write.en.eq(active & self.i.valid), self.write.addr.eq(address),
            *self._lanes(self.i.payload.value, odd, first), step.eq(self.write.en & self.write.grant),
            self.i.ready.eq(step),
            self.instruction.ready.eq(~active | (step & loops.last)),
            start.eq(self.instruction.valid & self.instruction.ready),
        ]
        ends = loops.ends[0] & loops.ends[1]
        with m.If(step & loops.last):
            m.d.sync += active.eq(0)
        with m.If(step & (ends != self.i.payload.last)):
            m.d.sync += self.fault.eq(1)
        with m.If(start):
            m.d.sync += [active.eq(1)]
        m.d.sync += self.done.eq(step & loops.last)
        if self.params.pulsed:
            self._pulsed(m, held, active, start)
        else:
            self._operands(m, held, active, loops.counter[2])
        return m

    def _lanes(self, value, odd, first):
        """What is written of a word, and which lanes.

        Those from ``first`` on; of wide commands even columns alone, to even lanes or to odd ones.
        """
        lanes = self.params.lanes
        behind = Cat(*(first <= lane for lane in range(lanes - 1)), Const(1, 1))
        if odd is None:
            return self.write.mask.eq(behind), self.write.data.eq(value)
        wide, pairs = self.held.wide, lanes // 2
        return (self.write.mask.eq(Mux(wide, Cat(~odd, odd).replicate(pairs), behind)),
                *(self.write.data[lane].eq(Mux(wide, value[lane - 1], value[lane]) if lane % 2 else value[lane])
                  for lane in range(lanes)))

    def _operand(self, m, column):
        """Give the core what is read of an operand's word; the word's place behind that of the first column's.

        Of wide commands every other one takes the odd lanes, to even columns.
        """
        if not self.params.wide:
            m.d.comb += self.o_v.payload.eq(self.read.data)
            return column
        m.d.comb += [self.o_v.payload[lane].eq(self.read.data[lane]) for lane in range(1, self.params.lanes, 2)]
        odd = self.held.wide & column[0]
        m.d.comb += [self.o_v.payload[lane].eq(Mux(odd, self.read.data[lane + 1], self.read.data[lane]))
                     for lane in range(0, self.params.lanes, 2)]
        return Mux(self.held.wide, column >> 1, column)

    def _operands(self, m, held, active, column):
        """The core takes an operand in the cycle after its grant: then all rows before it have left."""
        there, taken, bias, got = (Signal(name=name) for name in ("there", "taken", "bias", "got"))
        asks, place = self.o_v.ready if self.params.turns == 1 else self.asks, self._operand(m, column)
        m.d.comb += [
            taken.eq(there & self.o_v.ready), bias.eq(~held.scale | got | taken),
            # Of two operands the second is asked for while the core takes the first.
            self.read.en.eq(active & asks & (~taken | held.scale & held.bias & ~got)),
            self.read.addr.eq((Mux(bias, held.bias_base, held.scale_base) + place)[:ADDRESS_BITS]),
            self.o_v.valid.eq(there),
        ]
        m.d.sync += there.eq(self.read.en & self.read.grant)
        with m.If(taken):    # the factors are there, and the biases not yet
            m.d.sync += got.eq(held.scale & held.bias & ~got)
        return m

    def _pulsed(self, m, held, active, start):
        """The same for a core with registers: columns are counted by their operands, not by their rows."""
        column = Signal(12, name="operand_column", reset_less=True)
        there, taken, got, both, over = (Signal(name=name) for name in ("there", "taken", "got", "both", "over"))
        if self.params.turns == 1:    # it is ready now and then
            asks, bias = delay(m, self.o_v.ready & ~over, PULSE - 1, "soon", reset_less=False), got
        else:
            asks, bias = self.asks & ~over, got | taken
        place = self._operand(m, column)
        m.d.comb += [
            both.eq(held.scale & held.bias), taken.eq(there & self.o_v.ready), over.eq(taken & (got | ~both)),
            self.read.en.eq(asks & active & (held.scale | held.bias) & (column != held.columns)),
            self.read.addr.eq((Mux(~held.scale | bias, held.bias_base, held.scale_base) + place)[:ADDRESS_BITS]),
            self.o_v.valid.eq(there),
        ]
        m.d.sync += there.eq(self.read.en & self.read.grant)
        with m.If(taken):
            m.d.sync += got.eq(both & ~got)
        with m.If(over):
            m.d.sync += column.eq(column + 1)
        with m.If(start):
            m.d.sync += column.eq(0)
