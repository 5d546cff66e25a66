"""FP32 side unit of the core: scale, bias and ReLU on the way out."""

from dataclasses import dataclass

from amaranth import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..fp32.arith import Add, Mul
from ..fp32.convert import IntToFp32
from ..fp32.raw import is_nan
from ..lib.component import Component
from ..lib.names import parameter
from ..lib.skew import delay
from ..lib.stages import Stages
from .sequencer import steps_layout


class SideLane(Component):
    """One column's way out: ``relu(value * scale + bias)``, each step rounded and optional; integers as FP32 first.

    ReLU gives +0 for negative numbers and for -0, and passes NaN on. One value a cycle; :attr:`Parameters.latency`
    cycles. All registers are held while ``en`` is low, but for a ``free`` lane, which never stalls.

    Parameters
    ----------
    shared : bool
        Whether several columns share the lane: each value brings its operands, and none are kept.
    free : bool
        Whether registers never hold; only then may there be some inside multiplier and adder.
    multiply, add : int
        Registers inside the multiplier, and inside the adder.
    chain : bool
        Whether their adders are carry chains.
    multiplier : str
        How products are formed, as in :class:`~rtl.fp32.arith.Mul`; those without registers inside that columns share
        follow the design.
    integer : bool
        Whether ``i`` is a signed integer.

    Members
    -------
    en : ``In(1)``
        Not in a free lane.
    steps : ``In(steps_layout)``
        Steps to take; they hold for a whole command.
    load_scale, load_bias : ``In(1)``
        Take ``v`` as factor or bias; not where columns share the lane.
    v : ``In(32)``
    scale, bias : ``In(32)``
        Only there: factor and bias of the value that was taken one cycle, and ``2 + multiply`` cycles, before.
    i, o : ``In(32)``, ``Out(32)``
    """
    kind, area, apart = "side", "side unit", True
    #: Cycles from ``i`` to ``o`` without registers inside multiplier and adder.
    LATENCY = 3

    @dataclass(frozen=True)
    class Parameters:
        shared: bool = parameter("shared", False)
        free: bool = parameter("free", False)
        multiply: int = parameter("m", 0)
        add: int = parameter("a", 0)
        chain: bool = parameter("chain", False, rare=True)
        multiplier: str = parameter("", "plain", rare=True)
        integer: bool = parameter("integer", False, rare=True)

        @property
        def latency(self):
            """Cycles from ``i`` to ``o``."""
            return SideLane.LATENCY + self.multiply + self.add

        @classmethod
        def of(cls, design):
            """The lane of a design."""
            stages = Stages.of(design)
            shared = 0 < design.side_lanes < design.cols
            return cls(shared, stages.free, stages.multiply, stages.add, design.on_fpga,
                       design.multiplier if shared and not stages.free else "plain", bool(design.number.sums))

    @staticmethod
    def ports(params):
        operands = {"scale": In(32), "bias": In(32)} if params.shared else {
            "load_scale": In(1), "load_bias": In(1), "v": In(32)}
        enable = {} if params.free else {"en": In(1)}
        return {**enable, "steps": In(steps_layout()), **operands, "i": In(32), "o": Out(32)}

    @property
    def latencies(self):
        """``result``: from ``i`` to ``o``."""
        return {"result": self.params.latency}

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.mul = mul = Mul(subnormals="flush", pipeline=params.multiply, enable=False, chain=params.chain,
                                   multiplier=params.multiplier)
        m.submodules.add = add = Add(subnormals="flush", pipeline=params.add, enable=False, chain=params.chain)
        if self.params.shared:
            scale, bias = self.scale, self.bias
        else:
            scale, bias = self._kept(m)
        taken, scaled, biased = (Signal(32, name=name, reset_less=True) for name in ("taken", "scaled", "biased"))
        nan = Signal()
        given = self.i
        if params.integer:
            m.submodules.convert = convert = IntToFp32(32, enable=False)
            m.d.comb += convert.i.eq(self.i)
            given = convert.o
        m.d.comb += [
            mul.a.eq(taken), mul.b.eq(scale), add.a.eq(scaled), add.b.eq(bias),
            nan.eq(is_nan(biased)),
            self.o.eq(Mux(self.steps.relu & biased[31] & ~nan, 0, biased)),
        ]
        with m.If(Const(1) if params.free else self.en):
            m.d.sync += [taken.eq(given),
                         scaled.eq(Mux(self.steps.scale, mul.o, delay(m, taken, params.multiply, "taken"))),
                         biased.eq(Mux(self.steps.bias, add.o, delay(m, scaled, params.add, "scaled")))]
        return m

    def _kept(self, m):
        """Factor and bias of the lane's column."""
        scale, bias = (Signal(32, name=name, reset_less=True) for name in ("scale", "bias"))
        with m.If(self.load_scale):
            m.d.sync += scale.eq(self.v)
        with m.If(self.load_bias):
            m.d.sync += bias.eq(self.v)
        return scale, bias
