"""A column of 2 x 2 switches."""

from dataclasses import dataclass

from amaranth import Cat, Module
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.names import parameter
from .pick import Pick


class Column(Component):
    """Each output gives, a cycle later, what comes in at its own label or at that which differs in one bit.

    Parameters
    ----------
    ports, width : int
        See :class:`golden.spec.networks.NetworkUnit`.
    bit : int
        The bit of the label that is chosen.
    direct, gated : bool
        See :class:`~rtl.pods.pick.Pick`.

    Members
    -------
    i, o : ``In(width).array(ports)``, ``Out(width).array(ports)``
    select : ``In(ports)``
        Of each output, the bit of the label at which its payload comes in.
    enable : ``In(ports)``
        Where it is gated: whether the outputs give anything.
    load : ``In(1)``
        Take ``select`` and ``enable`` over.
    """
    kind, apart = "column", False

    @dataclass(frozen=True)
    class Parameters:
        ports: int = parameter("n")
        width: int = parameter("w")
        bit: int = parameter("b")
        direct: bool = parameter("direct", False)
        gated: bool = parameter("gated", False)

    @staticmethod
    def ports(params):
        lanes = {"i": In(params.width).array(params.ports), "o": Out(params.width).array(params.ports)}
        enable = {"enable": In(params.ports)} if params.gated else {}
        return {**lanes, "select": In(params.ports), **enable, "load": In(1)}

    @property
    def latencies(self):
        """``result``: from a payload to it."""
        return {"result": 1}

    def body(self, platform):
        m, params = Module(), self.params
        side = 1 << params.bit
        for label in range(params.ports):
            m.submodules[f"pick{label}"] = pick = Pick(2, params.width, params.direct, params.gated)
            m.d.comb += [pick.i.eq(Cat(self.i[label & ~side], self.i[label | side])), pick.load.eq(self.load),
                         pick.select.eq(self.select[label]), self.o[label].eq(pick.o)]
            if params.gated:
                m.d.comb += pick.enable.eq(self.enable[label])
        return m
