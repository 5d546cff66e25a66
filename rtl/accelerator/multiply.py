"""The unit multiply: addresses of rows of X, blocks of zeros, commands of the core."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import Out

from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode

from ..core.sequencer import STEPS, command_of, wide_layout
from ..lib.component import Component
from ..lib.names import parameter
from .layouts import ADDRESS_BITS, x_row_layout
from .loops import Loops
from .signatures import unit_members, x_read
from .sizes import Sizes

#: Bits of a coordinate: x + 4095 * 255 + 255 * 255 is below 2^21.
COORDINATE_BITS = 22


class Multiply(Component):
    """Sends the rows of passes from X to the core, a row a cycle, and the commands that they belong to.

    Two stages. In *issue* a row's address is on the port of X; a row outside its bounds needs no grant. One cycle later
    its word, or the block of zeros, is on ``o_x``, until the core takes it. A row is issued when there is none on
    ``o_x`` or the core takes it in this cycle. The next instruction is taken with the issue of the last row, so that
    there is no pause between instructions; if there is none, its first row is issued in the cycle after it is taken.

    A command is on ``o_cmd`` from the cycle in which its first row is the next to be issued, until it is taken: with
    the instruction's start, and with each further column tile's. Neither begins while the last command waits there.

    A row of wide mantissas is two words, the high digits first; each is issued as a row is. A row of a sparse command
    is several words side by side, which X gives at once.

    ``done`` is high in the cycle after the core has taken the instruction's last row. An instruction that begins a
    command of more rows than the core's depth is refused: ``fault`` stays high until reset, nothing else is done.

    Members
    -------
    instruction, held, done, fault :
        :func:`~rtl.accelerator.signatures.unit_members`.
    x : ``Out(x_read)``
        Its data must stay until this port's next grant: X has no other reader.
    o_cmd, o_x : ``Out(stream)``
        The core's ``i_cmd`` and ``i_x``.
    """
    kind, area, apart = "multiply", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        mantissa: int = parameter("m")
        exponent: int = parameter("e")
        depth: int = parameter("d")
        segments: int = parameter("s", 1)
        wide: int = parameter("wide", 0)
        spread: int = parameter("sp", 1, rare=True)
        word_pieces: int = parameter("wp", 1, rare=True)
        row_pieces: int = parameter("rp", 1, rare=True)

    @staticmethod
    def ports(params):
        sparse = params.spread > 1
        command = command_of(params.depth, side=True, wide=bool(params.wide), sparse=sparse)
        extras = (("wide",) if params.wide else ()) + (("sparse",) if sparse else ())
        return unit_members(Opcode.MULTIPLY, extras) | {
            "x": Out(x_read(params)), "o_cmd": Out(stream.Signature(command)),
            "o_x": Out(stream.Signature(x_row_layout(params)))}

    def body(self, platform):
        m, params = Module(), self.params
        new, held = self.instruction.payload, self.held
        active, there, zero, ending = (Signal(name=name) for name in ("active", "there", "zero", "ending"))
        start, step, room = (Signal(name=name) for name in ("start", "step", "room"))
        digits = [1] if params.wide else []    # the innermost loop, of the digits of a row
        loops = Loops(m, "loop", (*digits, 12, 12, 12, 8, 8, 12), start, step)
        m.d.comb += [loops.ends[place].eq(loops.counter[place] == held.wide_x) for place, _ in enumerate(digits)]
        loops.count((held.rows0, held.rows1, held.passes0, held.passes1, held.passes2, held.columns), len(digits))
        address = loops.follow("address", ADDRESS_BITS, new.base, (
            *[held.low for _ in digits], held.row0, held.row1, held.pass0, held.pass1, held.pass2, None))
        none = [None for _ in digits]
        x = loops.follow("x", COORDINATE_BITS, new.x, (*none, held.x_row, None, None, held.x_pass, None, None))
        y = loops.follow("y", COORDINATE_BITS, new.y, (*none, None, held.y_row, None, None, held.y_pass, None))

        # Issue. A negative coordinate is a large one.
        outside = Signal()
        free = Signal()
        again = Signal()
        m.d.comb += [
            outside.eq(held.bounded & ((x >= held.width) | (y >= held.height))),
            again.eq(loops.carry[-1]), free.eq(~self.o_cmd.valid | self.o_cmd.ready),
            room.eq(active & (~there | self.o_x.ready) & (free | ~again)),
            self.x.en.eq(room & ~outside), self.x.addr.eq(address), step.eq(room & (outside | self.x.grant)),
        ]
        with m.If(step):
            m.d.sync += [there.eq(1), zero.eq(outside), ending.eq(loops.last)]
        with m.Elif(self.o_x.ready):
            m.d.sync += there.eq(0)
        with m.If(step & loops.last):
            m.d.sync += active.eq(0)

        # Take an instruction; begin commands.
        rows = Signal(24)
        refused = Signal()
        m.d.comb += [
            self.instruction.ready.eq((~active | (step & loops.last)) & free & ~self.fault),
            start.eq(self.instruction.valid & self.instruction.ready), rows.eq(new.rows0 * new.rows1),
            refused.eq(start & new.first & (rows > params.depth)),
        ]
        with m.If(self.o_cmd.ready):
            m.d.sync += self.o_cmd.valid.eq(0)
        with m.If(step & again):
            m.d.sync += self.o_cmd.valid.eq(1)
        with m.If(start):
            m.d.sync += [active.eq(~refused), self.fault.eq(refused)]
            with m.If(new.first & ~refused):
                m.d.sync += [self.o_cmd.valid.eq(1), self.o_cmd.payload.rows.eq(rows),
                             self.o_cmd.payload.tiles.eq(new.tiles),
                             *(self.o_cmd.payload[name].eq(new[name]) for name in (
                                 *STEPS, *(wide_layout().members if params.wide else ()),
                                 *(("sparse",) if params.spread > 1 else ())))]

        # The row for the core.
        zeros = x_row_layout(params).const(None)
        if params.exponent:
            least, _ = HBFPFormat(exponent=params.exponent).exponent_range
            zeros = x_row_layout(params).const({"exponent": [max(-126, least)] * params.segments})
        m.d.comb += [self.o_x.valid.eq(there), self.o_x.payload.eq(Mux(zero, zeros, self.x.data))]
        m.d.sync += self.done.eq(there & self.o_x.ready & ending)
        return m
