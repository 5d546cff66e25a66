"""A crossbar."""

from amaranth import Cat, Module, Signal

from hbfp.golden.spec.networks import CrossbarUnit

from .network import Network
from .pick import Pick


class Crossbar(Network):
    """Every output takes any input.

    Parameters
    ----------
    ports, width : int
        See :class:`golden.spec.networks.CrossbarUnit`.

    Members
    -------
    i, o, route, start
        See :class:`~rtl.pods.network.Network`.
    """
    kind = "crossbar"
    Parameters = CrossbarUnit

    @property
    def latencies(self):
        """``result``: from an input to an output."""
        return {"result": 1}

    def body(self, platform):
        m, unit = Module(), self.params
        beats = Signal(unit.ports * unit.width)
        m.d.comb += beats.eq(Cat(self.i[label] for label in range(unit.ports)))
        for label in range(unit.ports):
            m.submodules[f"pick{label}"] = pick = Pick(unit.ports, unit.width, True, True)
            m.d.comb += [pick.i.eq(beats), pick.load.eq(self.start), pick.select.eq(self.route.source[label]),
                         pick.enable.eq(self.route.enable[label]), self.o[label].eq(pick.o)]
        return m
