"""Which requests of the queue are older than a difference of two times can tell."""

from amaranth import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.dispatch import DispatchUnit

from ..lib.component import Component
from ..lib.layout import index


class Ages(Component):
    """Keeps where the queue ended when the last two periods of 2^time cycles began.

    The dispatcher's clock has time + 1 bits, so that differences tell ages below two periods. Requests are in the order
    of their arrival: those before the end that was kept two periods ago are older than one period, which is as much
    as any timeout, and all others are younger than two. So no age wraps, however long a request waits.

    Parameters
    ----------
    depth, address, tag, time, counter : int
        See :class:`golden.spec.dispatch.DispatchUnit`.

    Members
    -------
    turns : ``In(1)``
        The last cycle of a period.
    waits : ``In(1)``
        A request waits, or comes in this cycle.
    tail, head : ``In``
        Places, after this cycle: of the request that comes next, of the oldest that was not handed over.
    early : ``In(1)``
        What comes in this cycle counts from the period before.
    moves : ``In(1)``
        A request is handed over in this cycle.
    takes : ``In(1)``
        The oldest requests become a batch in this cycle.
    waiting, running : ``Out(1)``
        The oldest request that waits, and the oldest of the last batch, is older than a period.
    border : ``Out``
        The place of the oldest request that is not.
    """
    kind = "dispatch_ages"
    Parameters = DispatchUnit

    @staticmethod
    def ports(unit):
        place = index(unit.depth)
        return {"turns": In(1), "waits": In(1), "tail": In(place), "head": In(place), "early": In(1), "moves": In(1),
                "takes": In(1), "waiting": Out(1), "running": Out(1), "border": Out(place)}

    def body(self, platform):
        m, place = Module(), index(self.params.depth)
        border = Signal(place, reset_less=True)
        later = Signal(place, reset_less=True)    # the end that was kept last, and whether requests before it wait
        later_waiting = Signal()
        later_running = Signal()
        stay = Signal()
        later_stay = Signal()
        kept = Signal(place)
        runs = Signal()
        later_runs = Signal()
        m.d.comb += [
            stay.eq(self.waiting & ~(self.moves & (self.head == border))),
            later_stay.eq(later_waiting & ~(self.moves & (self.head == later)) | self.early),
            kept.eq(Mux(self.early, self.tail, later)),
            self.border.eq(border), runs.eq(Mux(self.takes, self.waiting, self.running)),
            later_runs.eq(Mux(self.takes, later_waiting, later_running)),
        ]
        with m.If(self.turns):
            m.d.sync += [border.eq(kept), later.eq(self.tail), self.waiting.eq(later_stay),
                         later_waiting.eq(self.waits), self.running.eq(later_runs), later_running.eq(1)]
        with m.Else():
            m.d.sync += [later.eq(kept), self.waiting.eq(stay), later_waiting.eq(later_stay), self.running.eq(runs),
                         later_running.eq(later_runs)]
        return m
