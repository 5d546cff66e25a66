"""A dot-product unit by itself: a block of FP32 terms converted, multiplied, summed and accumulated in one step.

The scope that published areas of dot products have: converters for all terms, multipliers, one tree, conversion of the
sum and an FP32 accumulator. Its FP32 counterpart is a chain of as many multiply-adds. What is counted:
docs/design/06-area.md.
"""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from hbfp.design import ConflictError
from hbfp.format import HBFPFormat

from ..convert.encode_lane import FIELD, EncodeLane, clamped_field, lane_format, largest_field, least_field
from ..fixed.sign_magnitude import SignMagnitudeDot
from ..fp32.arith import Add
from ..fp32.convert import IntToFp32
from ..fp32.multiply_add import MulAdd
from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout
from ..lib.names import parameter


def block_layout(fmt, terms):
    """One operand: a block as signs and magnitudes with E + 126, or FP32 numbers if there is no format."""
    if fmt is None:
        return StructLayout({"value": ArrayLayout(32, terms)})
    return StructLayout({"negative": terms, "magnitude": ArrayLayout(fmt.magnitude, terms), "top": FIELD,
                         "invalid": 1})


class EncodeBlock(Component):
    """FP32 terms to one block of signs and magnitudes, combinational. Golden twin: :func:`golden.bfp.encode`.

    Parameters
    ----------
    format : HBFPFormat
        Its block is of no account.
    terms : int

    Members
    -------
    i : ``In(terms x 32)``
    o : ``Out(block_layout)``
        ``invalid`` blocks may have any mantissas.
    """
    kind, area, apart = "encode_block", "converter", True

    @dataclass(frozen=True)
    class Parameters:
        format: HBFPFormat = parameter("")
        terms: int = parameter("t")

    @staticmethod
    def ports(params):
        return {"i": In(ArrayLayout(32, params.terms)), "o": Out(block_layout(params.format, params.terms))}

    def body(self, platform):
        m = Module()
        fmt, terms = self.params.format, self.params.terms
        largest = Signal(FIELD)
        m.d.comb += largest.eq(largest_field(m, self.i))
        top = clamped_field(m, fmt, largest)
        least = least_field(m, fmt, top)
        m.d.comb += [self.o.top.eq(top), self.o.invalid.eq(largest.all()),
                     self.o.negative.eq(Cat(self.i[n][-1] for n in range(terms)))]
        for n in range(terms):
            m.submodules[f"lane{n}"] = lane = EncodeLane(fmt, sign=False)
            m.d.comb += [lane.i.eq(self.i[n]), lane.top.eq(top), lane.least.eq(least),
                         self.o.magnitude[n].eq(lane.o)]
        return m


class BlockAccumulate(Component):
    """The sum of a pair of blocks, converted and added to an FP32 number, combinational.

    Parameters
    ----------
    width : int
        Bits of ``sum``.
    magnitude : int
        Bits of the magnitude of a mantissa.

    Members
    -------
    sum : ``In(signed(width))``
        Integer dot product.
    a_top, b_top, a_invalid, b_invalid : ``In``
        E + 126 and flags of the two blocks.
    acc, o : ``In(32)``, ``Out(32)``
    """
    kind, area, apart = "block_accumulate", "accumulation", True

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("s")
        magnitude: int = parameter("m")

    @staticmethod
    def ports(params):
        return {"sum": In(signed(params.width)), "a_top": In(FIELD), "b_top": In(FIELD), "a_invalid": In(1),
                "b_invalid": In(1), "acc": In(32), "o": Out(32)}

    def body(self, platform):
        m = Module()
        scale = Signal(signed(FIELD + 2))
        m.submodules.convert = convert = IntToFp32(len(self.sum), len(scale))
        m.submodules.add = add = Add(subnormals="flush", underflow="positive")
        m.d.comb += [
            scale.eq(self.a_top + self.b_top - 2 * (126 + self.params.magnitude)),
            convert.i.eq(self.sum), convert.exponent.eq(scale), convert.invalid.eq(self.a_invalid | self.b_invalid),
            add.a.eq(self.acc), add.b.eq(convert.o), self.o.eq(add.o),
        ]
        return m


class MultiplyAddChain(Component):
    """``acc + a[0] * b[0] + a[1] * b[1] + ...`` in FP32, each product and each sum rounded, combinational."""
    kind, area, apart = "chain", "elements", True

    @dataclass(frozen=True)
    class Parameters:
        terms: int = parameter("t")
        multiplier: str = parameter("", "plain")

    @staticmethod
    def ports(params):
        numbers = ArrayLayout(32, params.terms)
        return {"a": In(numbers), "b": In(numbers), "acc": In(32), "o": Out(32)}

    def body(self, platform):
        m, params = Module(), self.params
        total = self.acc
        for n in range(params.terms):
            m.submodules[f"term{n}"] = term = MulAdd(underflow="positive", multiplier=params.multiplier)
            m.d.comb += [term.a.eq(self.a[n]), term.b.eq(self.b[n]), term.c.eq(total)]
            total = term.o
        m.d.comb += self.o.eq(total)
        return m


class DotProduct(Component):
    """Accumulates dot products of FP32 blocks in one step each.

    Golden twin: :func:`golden.matmul.matmul` of a row and a column, a block of K at a time.

    Parameters
    ----------
    terms : int
        Elements of a block.
    format : HBFPFormat
        The format of a block's elements; None for FP32.
    multiplier : str
        The multiplier of FP32 elements: see :class:`rtl.fp32.arith.Mul`.
    both : bool
        Convert both operands in every step, instead of keeping one.

    Members
    -------
    i : ``In(terms x 32)``
        One operand, FP32.
    load : ``In(1)``
        Keep ``i``, converted, as the other operand of the steps from the next cycle on. Not with ``both``.
    i_b : ``In(terms x 32)``
        The other operand, only with ``both``.
    step : ``In(1)``
        Add the dot product to ``o``.
    first : ``In(1)``
        ... or to +0 instead.
    o : ``Out(32)``
        The accumulator.
    """
    kind, area = "dot_product", "weight load"

    @dataclass(frozen=True)
    class Parameters:
        terms: int = parameter("t")
        format: HBFPFormat | None = parameter("", None)
        multiplier: str = parameter("", "plain")
        both: bool = parameter("both", False)

        @classmethod
        def of(cls, design, both=False):
            """The unit for a design's numbers, ``hbfp`` or ``fp32``; the terms are those of a block ``(1, terms)``.

            Raises
            ------
            ConflictError
                If the design has other numbers, square blocks, stochastic rounding, wide mantissas or sparse weights.
            """
            fmt = design.format
            if design.arithmetic not in ("hbfp", "fp32"):
                raise ConflictError("arithmetic", design.arithmetic, "must be hbfp or fp32 for a dot-product unit")
            if design.wide:
                raise ConflictError("wide", design.wide, "must be 0 for a dot-product unit")
            if design.takes_sparse:
                raise ConflictError("sparse", "{},{}".format(*design.sparse), "must be 1,1 for a dot-product unit")
            if fmt.square:
                raise ConflictError("block", "{},{}".format(*fmt.block),
                                    "must be 1,B for a dot-product unit of B terms")
            if design.blocked and fmt.rounding == "stochastic":
                raise ConflictError("rounding", fmt.rounding, "must be rne or truncate for a dot-product unit")
            if design.blocked:
                return cls(fmt.terms, lane_format(fmt), both=both)
            return cls(fmt.terms, multiplier=design.multiplier, both=both)

    @staticmethod
    def ports(params):
        numbers = ArrayLayout(32, params.terms)
        return {"i": In(numbers), **({"i_b": In(numbers)} if params.both else {"load": In(1)}),
                "step": In(1), "first": In(1), "o": Out(32)}

    @property
    def latencies(self):
        """``result``: from a step to its result on ``o``."""
        return {"result": 1}

    def body(self, platform):
        m, params = Module(), self.params
        layout = block_layout(params.format, params.terms)
        a = self._operand(m, "a", self.i, layout)
        b = Signal(layout, reset_less=True)
        if params.both:
            m.d.comb += b.eq(self._operand(m, "b", self.i_b, layout))
        else:
            with m.If(self.load):
                m.d.sync += b.eq(a)
        acc = Signal(32)
        total = self._sum(m, a, b, Mux(self.first, 0, acc))
        with m.If(self.step):
            m.d.sync += acc.eq(total)
        m.d.comb += self.o.eq(acc)
        return m

    def _operand(self, m, name, values, layout):
        operand = Signal(layout, name=name)
        if self.params.format:
            m.submodules[f"encode_{name}"] = encode = EncodeBlock(self.params.format, self.params.terms)
            m.d.comb += [encode.i.eq(values), operand.eq(encode.o)]
        else:
            m.d.comb += operand.value.eq(values)
        return operand

    def _sum(self, m, a, b, acc):
        fmt, terms = self.params.format, self.params.terms
        if fmt is None:
            m.submodules.chain = chain = MultiplyAddChain(terms, self.params.multiplier)
            m.d.comb += [chain.a.eq(a.value), chain.b.eq(b.value), chain.acc.eq(acc)]
            return chain.o
        m.submodules.dot = dot = SignMagnitudeDot(fmt.magnitude, terms)
        m.submodules.accumulate = accumulate = BlockAccumulate(fmt.sum_width(terms), fmt.magnitude)
        m.d.comb += [
            dot.a_negative.eq(a.negative), dot.a.eq(a.magnitude), dot.b_negative.eq(b.negative), dot.b.eq(b.magnitude),
            accumulate.sum.eq(dot.o), accumulate.a_top.eq(a.top), accumulate.b_top.eq(b.top),
            accumulate.a_invalid.eq(a.invalid), accumulate.b_invalid.eq(b.invalid), accumulate.acc.eq(acc),
        ]
        return accumulate.o
