"""Cores side by side that share one stream of rows of X, and own separate columns."""

from dataclasses import dataclass, replace

from amaranth import Module, Value

from hbfp.design import Design

from ..lib.component import Component
from .array_core import ArrayCore


class Arrays(Component):
    """Several :class:`~rtl.accelerator.array_core.ArrayCore` that behave as one core with the columns of all.

    Commands and rows of X go to all of them in the same cycle; a row of weights, of operands or of results is cut into
    as many equal parts, the first core's lowest. When a core is ready, and when its results come, depends on nothing
    but when it is given what, and all are given everything in the same cycles: they stay in step, and the first one's
    handshakes are those of all.

    Bits are those of one core of all columns. Cycles are those of a single one of the cores (``latencies``): sums
    pass fewer columns from west to east than in the wide one.

    Members
    -------
    i_cmd, error, i_x, i_w, o, i_v, asks :
        Of an ``ArrayCore`` of all columns; there is ``asks`` where the cores have it.
    """
    kind, area = "arrays", "control"

    @dataclass(frozen=True)
    class Parameters:
        core: Design
        arrays: int

    @classmethod
    def of(cls, system):
        """The cores of an accelerator; of one core that itself."""
        return cls(system.core, system.arrays) if system.arrays > 1 else ArrayCore.made(system.core)

    @staticmethod
    def ports(params):
        several = ArrayCore.ports(replace(params.core, cols=params.core.cols * params.arrays, side_lanes=0))
        return ArrayCore.ports(params.core) | several

    @property
    def module(self):
        """Name of the Verilog module."""
        return f"{self.params.core.name}_arrays{self.params.arrays}"

    @property
    def latencies(self):
        """Cycles of a core's parts."""
        return ArrayCore.made(self.params.core).latencies

    def body(self, platform):
        m = Module()
        shared, owned = ("i_cmd", "i_x"), ("i_w", "i_v") if hasattr(self, "i_v") else ("i_w",)
        cores = [ArrayCore.made(self.params.core) for _ in range(self.params.arrays)]
        for place, core in enumerate(cores):
            m.submodules[f"core{place}"] = core
            for name in (*shared, *owned):
                m.d.comb += getattr(core, name).valid.eq(getattr(self, name).valid)
            for name in shared:
                m.d.comb += getattr(core, name).payload.eq(getattr(self, name).payload)
            for name in self.i_w.payload.shape().members:
                m.d.comb += Value.cast(core.i_w.payload[name]).eq(self._part(self.i_w.payload[name], place))
            if hasattr(self, "i_v"):
                m.d.comb += Value.cast(core.i_v.payload).eq(self._part(self.i_v.payload, place))
            m.d.comb += [core.o.ready.eq(self.o.ready),
                         self._part(self.o.payload.value, place).eq(Value.cast(core.o.payload.value))]
        first = cores[0]
        m.d.comb += [getattr(self, name).ready.eq(getattr(first, name).ready) for name in (*shared, *owned)]
        m.d.comb += [self.o.valid.eq(first.o.valid), self.o.payload.last.eq(first.o.payload.last),
                     self.error.eq(first.error)]
        if hasattr(self, "asks"):
            m.d.comb += self.asks.eq(first.asks)
        return m

    def _part(self, row, place):
        """What belongs to a core of a row of all columns."""
        bits = Value.cast(row)
        return bits.word_select(place, len(bits) // self.params.arrays)
