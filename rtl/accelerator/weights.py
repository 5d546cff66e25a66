"""The unit weights: rows of tiles from W to the core."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import Out

from hbfp.isa.instructions import Opcode

from ..lib.component import Component
from ..lib.names import parameter
from .layouts import ADDRESS_BITS, weights_layout
from .loops import Loops
from .signatures import unit_members, w_read
from .sizes import Sizes


class Weights(Component):
    """Sends tiles of weights from W to the core, a row a cycle.

    Two stages, as of :class:`~rtl.accelerator.multiply.Multiply`: a row's address is on the port of W; one cycle later
    its word is on ``o_w``, until the core takes it. A row is issued when there is none on ``o_w`` or the core takes it
    in this cycle. The next instruction is taken with the issue of the last row; if there is none, its first row is
    issued in the cycle after it is taken.

    ``done`` is high in the cycle after the core has taken the instruction's last row. An instruction whose base is no
    multiple of the core's rows is refused: ``fault`` stays high until reset, nothing else is done.

    Members
    -------
    instruction, held, done, fault :
        :func:`~rtl.accelerator.signatures.unit_members`.
    w : ``Out(w_read)``
        Its data must stay until this port's next grant: W has no other reader.
    o_w : ``Out(stream)``
        The core's ``i_w``.
    """
    kind, area, apart = "feed_weights", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        mantissa: int = parameter("m")
        exponent: int = parameter("e")
        index: int = parameter("ix", 0, rare=True)
        word_pieces: int = parameter("wp", 1, rare=True)
        row_pieces: int = parameter("rp", 1, rare=True)

    @staticmethod
    def ports(params):
        return unit_members(Opcode.WEIGHTS) | {
            "w": Out(w_read(params)), "o_w": Out(stream.Signature(weights_layout(params)))}

    def body(self, platform):
        rows = self.params.lanes // self.params.word_pieces * self.params.row_pieces
        m, side = Module(), (rows - 1).bit_length()
        new, held = self.instruction.payload, self.held
        active, there, ending, start, step, room = (
            Signal(name=name) for name in ("active", "there", "ending", "start", "step", "room"))
        loops = Loops(m, "loop", (16 + side, 16), start, step)
        loops.count((Cat(Const(0, side), held.tiles), held.repeats))
        address = loops.follow("address", ADDRESS_BITS, new.base, (1, None))
        refused = new.base[:side].any()
        m.d.comb += [
            room.eq(active & (~there | self.o_w.ready)), self.w.en.eq(room), self.w.addr.eq(address),
            step.eq(self.w.en & self.w.grant),
            self.instruction.ready.eq((~active | (step & loops.last)) & ~self.fault),
            start.eq(self.instruction.valid & self.instruction.ready),
            self.o_w.valid.eq(there), self.o_w.payload.mantissa.eq(self.w.data),
        ]
        if self.params.exponent:
            m.d.comb += [self.o_w.payload.exponent.eq(self.w.scales.exponent),
                         self.o_w.payload.invalid.eq(self.w.scales.invalid)]
        if self.params.index:
            m.d.comb += self.o_w.payload.index.eq(self.w.index)
        with m.If(step):
            m.d.sync += [there.eq(1), ending.eq(loops.last)]
        with m.Elif(self.o_w.ready):
            m.d.sync += there.eq(0)
        with m.If(step & loops.last):
            m.d.sync += active.eq(0)
        with m.If(start):
            m.d.sync += [active.eq(~refused), self.fault.eq(refused)]
        m.d.sync += self.done.eq(there & self.o_w.ready & ending)
        return m
