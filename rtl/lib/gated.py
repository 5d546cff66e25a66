"""Registers behind a gated clock."""

from dataclasses import dataclass

from amaranth import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib.wiring import In, Out

from .component import Component
from .names import parameter


class Gated(Component):
    """A word of registers whose clock stands still but where ``load`` is high: no bit has a multiplexer.

    The gate is a flip-flop of the falling edge, which keeps ``load`` through the high half of the clock, and an AND; no
    library has to have a cell for it. ``load`` has half a cycle to come. In Verilog there is no race: the gated clock
    rises in the same step as the clock, before any register that the clock moves has changed.

    Amaranth's own simulator updates a register before what the gated clock samples, so there, where no platform places
    cells, the same word holds by an enable.

    Parameters
    ----------
    width : int

    Members
    -------
    load : ``In(1)``
    i, o : ``In(width)``, ``Out(width)``
        ``o`` is the ``i`` of the last cycle in which ``load`` was high.
    """
    kind, apart = "gated", False

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("w")

    @staticmethod
    def ports(params):
        return {"load": In(1), "i": In(params.width), "o": Out(params.width)}

    def body(self, platform):
        m = Module()
        held = Signal(self.params.width, reset_less=True)
        m.d.comb += self.o.eq(held)
        if not getattr(platform, "place", None):
            with m.If(self.load):
                m.d.sync += held.eq(self.i)
            return m
        m.domains.falling = ClockDomain(clk_edge="neg", reset_less=True, local=True)
        m.domains.gated = ClockDomain(reset_less=True, local=True)
        open_ = Signal(name="open", reset_less=True)
        m.d.falling += open_.eq(self.load)
        m.d.gated += held.eq(self.i)
        m.d.comb += [ClockSignal("falling").eq(ClockSignal()), ClockSignal("gated").eq(ClockSignal() & open_)]
        return m
