"""Numbers from one place in a beat to another: a rotator, and the lanes that a run covers."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import ArrayLayout, index
from ..lib.names import parameter


class Rotate(Component):
    """Rotates a word: lane j of ``o`` is lane (j - ``by``) mod ``lanes`` of ``i``. Combinational.

    Parameters
    ----------
    lanes : int
        A power of two.

    Members
    -------
    i, o : ``In``, ``Out(ArrayLayout(32, lanes))``
    by : ``In``
    """
    kind, area, apart = "rotate", "transfers", True

    @dataclass(frozen=True)
    class Parameters:
        lanes: int = parameter("l")

    @staticmethod
    def ports(params):
        word = ArrayLayout(32, params.lanes)
        return {"i": In(word), "by": In(index(params.lanes)), "o": Out(word)}

    def body(self, platform):
        m, lanes = Module(), self.params.lanes
        word = [self.i[lane] for lane in range(lanes)]
        for bit in range(len(self.by)):
            turned = [Signal(32, name=f"turned{bit}_{lane}") for lane in range(lanes)]
            m.d.comb += [turned[lane].eq(Mux(self.by[bit], word[(lane - (1 << bit)) % lanes], word[lane]))
                         for lane in range(lanes)]
            word = turned
        m.d.comb += Cat(self.o).eq(Cat(word))
        return m


def _above(value, lane):
    """Whether ``value`` is more than a lane's number."""
    return value > lane if lane < (1 << len(value)) - 1 else Const(0, 1)


def covered(lanes, upper, first, end):
    """A bit for each lane of the first of two words, of the second if ``upper``: those from ``first`` to ``end``."""
    inside = [_above(end, place) & ~_above(first, place) for place in range(2 * lanes)]
    return Mux(upper, Cat(inside[lanes:]), Cat(inside[:lanes]))
