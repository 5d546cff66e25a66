"""The rounds of a program: when each begins."""

from dataclasses import dataclass

from amaranth import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.names import parameter

#: Bits of the length of a round, in cycles.
LENGTH_BITS = 16


def run_layout(depth, rounds):
    """A run: ``key`` of its program's machine, ``rounds``, their ``length`` in cycles, ``rows`` of a tile.

    Rounds are not shorter than the manifest's ``round``, and longer than ``rows``.
    """
    return StructLayout({"key": 32, "rounds": index(rounds + 1), "length": LENGTH_BITS, "rows": index(depth + 1)})


class Rounds(Component):
    """Begins the rounds of a program, those of the weights one round ahead.

    Parameters
    ----------
    key : int
        32 bits that tell this machine from others.
    depth, rounds : int
        Rows of a bank; words of a schedule memory.
    tail : int
        Cycles after the last round until all that is on its way has arrived.

    Members
    -------
    i : ``In(stream.Signature(run_layout))``
        Taken while nothing runs. A run for another machine is taken and not begun, and ``error`` goes high until one
        begins.
    go_w, go : ``Out(1)``
        A round of the weights begins, a round of all else begins.
    rewind : ``Out(1)``
        In the cycle in which a run is taken.
    rows : ``Out``
        Rows of a tile.
    busy, error : ``Out(1)``
    """
    kind, area = "rounds", "control"

    @dataclass(frozen=True)
    class Parameters:
        key: int = parameter("key")
        depth: int = parameter("d")
        rounds: int = parameter("t")
        tail: int = parameter("e")

    @staticmethod
    def ports(params):
        return {"i": In(stream.Signature(run_layout(params.depth, params.rounds))), "go_w": Out(1), "go": Out(1),
                "rewind": Out(1), "rows": Out(index(params.depth + 1)), "busy": Out(1), "error": Out(1)}

    @property
    def latencies(self):
        """``tail``: cycles after the last round until ``busy`` is low."""
        return {"tail": self.params.tail}

    def body(self, platform):
        m, params = Module(), self.params
        run = Signal(run_layout(params.depth, params.rounds), reset_less=True)
        period = Signal(index(params.rounds + 2))    # the first is of weights alone
        cycle = Signal(LENGTH_BITS)
        ending = Signal(range(params.tail + 1))
        wrong = Signal()
        begins = Signal()
        running = Signal()
        m.d.comb += [
            self.i.ready.eq(~self.busy), self.rewind.eq(self.i.valid & self.i.ready),
            wrong.eq(self.i.payload.key != params.key), self.rows.eq(run.rows), self.busy.eq(running | ending.any()),
            begins.eq(running & (cycle == 0)), self.go_w.eq(begins & (period != run.rounds)),
            self.go.eq(begins & period.any()),
        ]
        with m.If(self.rewind):
            m.d.sync += [run.eq(self.i.payload), running.eq(~wrong), self.error.eq(wrong), period.eq(0), cycle.eq(0)]
        with m.Elif(running):
            m.d.sync += cycle.eq(cycle + 1)
            with m.If(cycle == run.length - 1):
                m.d.sync += [cycle.eq(0), period.eq(period + 1)]
                with m.If(period == run.rounds):
                    m.d.sync += [running.eq(0), ending.eq(params.tail)]
        with m.Elif(ending.any()):
            m.d.sync += ending.eq(ending - 1)
        return m
