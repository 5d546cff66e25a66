"""What all networks between pods and banks have in common: their ports, and when settings come into force."""

from amaranth import Signal
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.networks import NetworkUnit

from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout


def settings_layout(unit):
    """The settings of a round, :attr:`golden.spec.networks.NetworkUnit.settings`."""
    return StructLayout({name: ArrayLayout(bits, count) for name, (bits, count) in unit.settings.items()})


class Network(Component):
    """Brings payloads from inputs to outputs, as the settings of a round say.

    One payload enters at each input in each cycle, without back-pressure; whether it means anything is the user's to
    say, by a bit of it. An output that a round does not use gives zeros, and so do all from reset to the first round.

    Parameters
    ----------
    ports, width : int
        See :class:`golden.spec.networks.NetworkUnit`.

    Members
    -------
    i, o : ``In(width).array(ports)``, ``Out(width).array(ports)``
        What enters leaves ``latencies["result"]`` cycles later.
    route : ``In(settings_layout)``
        The settings of a round; ``golden/perf/pods/settings.py`` makes them from routes.
    start : ``In(1)``
        What enters in this cycle, and all after it, goes as ``route`` says in this cycle. What entered before goes on
        as it was. Starts are at least ``latencies["result"]`` cycles apart.
    """
    Parameters = NetworkUnit

    @staticmethod
    def ports(unit):
        return {"i": In(unit.width).array(unit.ports), "route": In(settings_layout(unit)), "start": In(1),
                "o": Out(unit.width).array(unit.ports)}


class Round:
    """The settings of a round as they reach stage after stage.

    Stage 0 works on what enters in this cycle and has to look at ``route`` itself; each later one loads its settings in
    the cycle before the first payload of the round reaches it, stage 1 from ``route`` and the others from a register.
    """

    def __init__(self, m, network):
        self.m, self.route, self.starts = m, network.route, [network.start]
        self.held = Signal.like(network.route, name="held", reset_less=True)
        with m.If(network.start):
            m.d.sync += self.held.eq(self.route)

    def reaches(self, stage):
        """For a stage: when to load, and what."""
        while len(self.starts) < stage:
            later = Signal(name=f"start_{len(self.starts)}")
            self.m.d.sync += later.eq(self.starts[-1])
            self.starts.append(later)
        return self.starts[max(stage - 1, 0)], self.route if stage < 2 else self.held
