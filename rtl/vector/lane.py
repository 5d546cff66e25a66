"""One lane of the vector unit: the two steps of an instruction, and the lane's part of a reduction."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.tables import FUNCTIONS
from hbfp.golden.spec.vector import Op

from ..fp32.arith import Add, Mul
from ..fp32.compare import Maximum
from ..fp32.functions.unit import Function
from ..fp32.raw import is_nan
from ..lib.component import Component
from ..lib.names import parameter

LOWEST, NEGATIVE_ZERO = 0xFF800000, 0x80000000


def is_positive(x: Value):
    """Whether x > 0; false for NaN, zeros and subnormals."""
    return ~x[31] & x[23:31].any() & ~is_nan(x)


def evaluator(m, name, functions, pipeline, multiplier, en, select, a):
    """The functions of a lane, or of several in turns: the chosen one of ``a``, ``pipeline`` cycles later."""
    m.submodules[name] = function = Function(functions, multiplier, pipeline=pipeline)
    m.d.comb += function.a.eq(a)
    if pipeline:
        m.d.comb += function.en.eq(en)
    if len(functions) > 1:
        m.d.comb += function.select.eq(select)
    return function.o


def adder(registers):
    """An adder of lanes and reductions; one with registers is for an FPGA."""
    return Add(subnormals="flush", pipeline=registers, chain=registers > 0)


def later(m, en, name, value, cycles):
    """A value of 32 bits, so many cycles later; it holds while ``en`` is low."""
    for stage in range(cycles):
        held = Signal(32, name=f"{name}_{stage}", reset_less=True)
        with m.If(en):
            m.d.sync += held.eq(value)
        value = held
    return value


class VectorLane(Component):
    """``o = post(op(a, b, c))``, ``latency`` cycles later, one a cycle.

    Parameters
    ----------
    functions : tuple of str
        Functions of the second step.
    pipeline : int
        Registers inside the functions; none where there is no function.
    holds : bool
        The value that leaves stays until ``take``, for evaluators that several lanes share.
    multiplier : str
        How products are formed, as in :class:`~rtl.fp32.arith.Mul`.
    product, sum : int
        Registers inside the multiplier and the adder.

    Members
    -------
    en : ``In(1)``
        While low every register holds.
    take : ``In(1)``
        Only if it ``holds``: the first step's result becomes the value.
    a, b, c : ``In(32)``
    op, negate_a, negate_c : ``In``
        First step, with the operands, see :class:`golden.spec.vector.Op`.
    other : ``In(1)``
        With the last register but one of the first step, a cycle after the operands at least: it is no multiply-add.
    relu : ``In(1)``
        Second step, a cycle later: ReLU. Without it the value passes.
    select : ``In``
        Position in ``functions``, if there are any, with ``relu``.
    use_function : ``In(1)``
        With the result: it is the function's.
    o : ``Out(32)``
    """
    kind, area = "vector_lane", "control"

    @dataclass(frozen=True)
    class Parameters:
        functions: tuple[str, ...] = parameter("", FUNCTIONS)
        pipeline: int = parameter("p", 0)
        holds: bool = parameter("h", False)
        multiplier: str = parameter("", "plain", rare=True)
        product: int = parameter("pr", 0, rare=True)
        sum: int = parameter("su", 0, rare=True)

        def __post_init__(self):
            if not self.functions:
                object.__setattr__(self, "pipeline", 0)

        @property
        def latency(self):
            """Cycles from operands to result."""
            return 2 + self.product + self.sum + self.pipeline

    @staticmethod
    def ports(params):
        return {"en": In(1), "a": In(32), "b": In(32), "c": In(32), "op": In(3), "negate_a": In(1),
                "negate_c": In(1), "other": In(1), "relu": In(1), "o": Out(32),
                **({"use_function": In(1), "select": In(4)} if params.functions else {}),
                **({"take": In(1)} if params.holds else {})}

    @property
    def latencies(self):
        """``result``: from operands to result."""
        return {"result": self.params.latency}

    def body(self, platform):
        m, functions, pipeline = Module(), self.params.functions, self.params.pipeline
        m.submodules.mul = mul = Mul(subnormals="flush", multiplier=self.params.multiplier,
                                     pipeline=self.params.product)
        m.submodules.add = add = adder(self.params.sum)
        for each in (mul, add):
            if each.latencies["result"]:
                m.d.comb += each.en.eq(self.en)
        a = Signal(32, name="a_signed")
        product, addend, other, value = (Signal(32, name=name, reset_less=True)
                                         for name in ("product", "addend", "other", "value"))
        m.d.comb += [a.eq(Cat(self.a[:31], self.a[31] ^ self.negate_a)), mul.a.eq(a), mul.b.eq(self.b),
                     add.a.eq(product), add.b.eq(addend)]
        m.submodules.maximum = maximum = Maximum(subnormals="flush")
        m.d.comb += [maximum.a.eq(a), maximum.b.eq(self.b)]
        gated = Mux(is_positive(a), self.b, 0)
        before = later(m, self.en, "addend", Cat(self.c[:31], self.c[31] ^ self.negate_c), self.params.product)
        beside = Mux(self.op == Op.MAX, maximum.o, gated)
        beside = later(m, self.en, "beside", beside, self.params.product + self.params.sum)
        with m.If(self.en):
            m.d.sync += [product.eq(mul.o), addend.eq(before), other.eq(beside)]
        with m.If(self.en & self.take if self.params.holds else self.en):
            m.d.sync += value.eq(Mux(self.other, other, add.o))

        bypass = Mux(self.relu & ~is_positive(value) & ~is_nan(value), Const(0, 32), value)
        if not functions:
            m.d.comb += self.o.eq(bypass)
            return m
        function = evaluator(m, "functions", functions, pipeline, self.params.multiplier, self.en, self.select,
                             value)
        m.d.comb += self.o.eq(Mux(self.use_function, function, later(m, self.en, "bypass", bypass, pipeline)))
        return m


class Reduction(Component):
    """A lane's running sum or maximum; with ``tree`` that of two other lanes' instead.

    Parameters
    ----------
    sum : int
        Registers inside the adder: what a step takes in is in the total so many cycles later than else, and has to be
        there before the next step.

    Members
    -------
    en : ``In(1)``
        Only with registers: while low they hold, and there is no step.
    start : ``In(1)``
        Forget: -0 for a sum, -Inf for a maximum.
    step : ``In(1)``
        Take ``x`` in, or with ``tree`` replace by ``left`` and ``right`` together.
    maximum, tree : ``In(1)``
    x, left, right : ``In(32)``
    o : ``Out(32)``
        Total so far.
    """
    kind, area, apart = "reduction", "accumulation", True

    @dataclass(frozen=True)
    class Parameters:
        sum: int = parameter("su", 0, rare=True)

    @staticmethod
    def ports(params):
        return {**({"en": In(1)} if params.sum else {}), "start": In(1), "step": In(1), "maximum": In(1),
                "tree": In(1), "x": In(32), "left": In(32), "right": In(32), "o": Out(32)}

    def body(self, platform):
        m, registers = Module(), self.params.sum
        m.submodules.add = add = adder(registers)
        total = Signal(32, reset_less=True)
        m.d.comb += [add.a.eq(Mux(self.tree, self.left, total)), add.b.eq(Mux(self.tree, self.right, self.x)),
                     self.o.eq(total)]
        m.submodules.largest = largest = Maximum(subnormals="flush")
        m.d.comb += [largest.a.eq(add.a), largest.b.eq(add.b)]
        step, found = self.step, largest.o
        if registers:
            m.d.comb += add.en.eq(self.en)
            steps = Signal(registers)
            with m.If(self.en):
                m.d.sync += steps.eq(Cat(step, steps)[:registers])
            step, found = steps[-1] & self.en, later(m, self.en, "largest", found, registers)
        with m.If(step):
            m.d.sync += total.eq(Mux(self.maximum, found, add.o))
        with m.If(self.start):
            m.d.sync += total.eq(Mux(self.maximum, LOWEST, NEGATIVE_ZERO))
        return m
