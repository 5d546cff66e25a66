"""One output of a switch."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter


class Pick(Component):
    """Gives one of its inputs, a cycle later; which one is kept from round to round.

    Parameters
    ----------
    inputs : int
        A power of two, at least 2.
    width : int
        Bits of a payload.
    direct : bool
        Whether the new choice counts from the cycle of ``load`` on, not only from the next one.
    gated : bool
        Whether it can give zeros instead: it does so from reset until the first choice.

    Members
    -------
    i, o : ``In(inputs payloads)``, ``Out(width)``
    select : ``In(log2 inputs)``
    enable : ``In(1)``
        Where it is gated: 0 for zeros. It is loaded with ``select``.
    load : ``In(1)``
        Take ``select`` over.
    """
    kind, apart = "pick", True

    @dataclass(frozen=True)
    class Parameters:
        inputs: int = parameter("i")
        width: int = parameter("w")
        direct: bool = parameter("direct", False)
        gated: bool = parameter("gated", False)

        @property
        def choice(self):
            """Bits of a choice."""
            return self.inputs.bit_length() - 1

    @staticmethod
    def ports(params):
        enable = {"enable": In(1)} if params.gated else {}
        return {"i": In(ArrayLayout(params.width, params.inputs)), "select": In(params.choice), **enable, "load": In(1),
                "o": Out(params.width)}

    @property
    def latencies(self):
        """``result``: from a payload to it."""
        return {"result": 1}

    def body(self, platform):
        m, params = Module(), self.params
        kept = Signal(params.choice, reset_less=True)
        choice = Signal(params.choice)
        with m.If(self.load):
            m.d.sync += kept.eq(self.select)
        m.d.comb += choice.eq(Mux(self.load, self.select, kept) if params.direct else kept)
        beats = [self.i[n] for n in range(params.inputs)]
        for bit in choice:    # the lowest bit chooses within pairs
            beats = [Mux(bit, odd, even) for even, odd in zip(beats[::2], beats[1::2], strict=True)]
        chosen = beats[0]
        if params.gated:
            enabled = Signal()
            with m.If(self.load):
                m.d.sync += enabled.eq(self.enable)
            passes = Mux(self.load, self.enable, enabled) if params.direct else enabled
            chosen = chosen & passes.replicate(params.width)
        beat = Signal(params.width, reset_less=not params.gated)
        m.d.sync += beat.eq(chosen)
        m.d.comb += self.o.eq(beat)
        return m
