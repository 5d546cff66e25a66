"""A Benes network behind a copy network."""

from amaranth import Module

from hbfp.golden.spec.networks import BenesUnit

from .column import Column
from .network import Network, Round


class Benes(Network):
    """Brings every input to any outputs in 4 log2 N - 1 columns: pack, copy, and the Benes network proper.

    Parameters
    ----------
    ports, width : int
        See :class:`golden.spec.networks.BenesUnit`.

    Members
    -------
    i, o, route, start
        See :class:`~rtl.pods.network.Network`.
    """
    kind = "benes"
    Parameters = BenesUnit

    @property
    def latencies(self):
        """``result``: from an input to an output."""
        return {"result": len(self.params.columns)}

    def body(self, platform):
        m, unit = Module(), self.params
        round_ = Round(m, self)
        beats = [self.i[label] for label in range(unit.ports)]
        for stage, bit in enumerate(unit.columns):
            load, route = round_.reaches(stage)
            gated = stage == len(unit.columns) - 1
            m.submodules[f"column{stage}"] = column = Column(unit.ports, unit.width, bit, stage == 0, gated)
            first = stage * unit.ports
            m.d.comb += [column.load.eq(load), column.select.eq(route.switch.as_value()[first:first + unit.ports])]
            m.d.comb += [column.i[label].eq(beat) for label, beat in enumerate(beats)]
            if gated:
                m.d.comb += column.enable.eq(route.enable)
            beats = [column.o[label] for label in range(unit.ports)]
        m.d.comb += [self.o[label].eq(beat) for label, beat in enumerate(beats)]
        return m
