"""The core of an accelerator: without the converter, which stands before the memories."""

from amaranth.lib.wiring import Out

from ..core.core import Core


class ArrayCore(Core):
    """A :class:`~rtl.core.core.Core` of blocks without converter: no ``i_q``, ``o_q`` and ``i_seed``.

    Where the side unit has fewer lanes than there are columns, ``asks`` is that of :class:`~rtl.core.drain.Drain`.
    Bits and cycles of all else are the core's.
    """
    kind = "array_core"

    @staticmethod
    def ports(params):
        asks = {"asks": Out(1)} if params.side_turns > 1 else {}
        return asks | {name: member for name, member in Core.ports(params).items()
                       if name not in ("i_q", "o_q", "i_seed")}

    @property
    def module(self):
        """Name of the Verilog module."""
        return f"{self.params.name}_array"

    @property
    def latencies(self):
        """Cycles of the core's parts, without ``encode``."""
        return {name: cycles for name, cycles in super().latencies.items() if name != "encode"}

    def body(self, platform):
        m = super().body(platform)
        if self.params.side_turns > 1:
            m.d.comb += self.asks.eq(m.submodules.drain.asks)
        return m

    def _convert(self, m):
        pass
