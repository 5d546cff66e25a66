"""A dot-product unit by itself: a block of FP32 terms converted, multiplied, summed and accumulated in one step.

The scope that published areas of dot products have: converters for all terms, multipliers, one tree, conversion of the
sum and an FP32 accumulator. Its FP32 counterpart is a chain of as many multiply-adds. What is counted:
docs/design/06-area.md.
"""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.config import ConflictError

from .cell import Cell
from .encode_lane import FIELD, EncodeLane, clamped_field, largest_field, least_field
from .fp32.arith import Add, MulAdd
from .fp32.convert import IntToFp32
from .layout import ArrayLayout, StructLayout
from .magnitude import MagnitudeDot


def block_layout(design):
    """One operand: a block as signs and magnitudes with E + 126, or FP32 numbers."""
    terms = design.format.terms
    if not design.blocked:
        return StructLayout({"value": ArrayLayout(32, terms)})
    return StructLayout({"negative": terms, "magnitude": ArrayLayout(design.format.magnitude, terms),
                         "top": FIELD, "invalid": 1})


class EncodeBlock(Cell):
    """FP32 terms to one block of signs and magnitudes, combinational. Golden twin: :func:`golden.bfp.encode`.

    Members
    -------
    i : ``In(terms x 32)``
    o : ``Out(block_layout)``
        ``invalid`` blocks may have any mantissas.
    """
    kind = "encode_block"

    def __init__(self, design):
        self.design, fmt = design, design.format
        super().__init__({"i": In(ArrayLayout(32, fmt.terms)), "o": Out(block_layout(design))},
                         m=fmt.mantissa, e=min(fmt.exponent, 9), t=fmt.terms, s=fmt.subnormals, r=fmt.rounding)

    def body(self, platform):
        m = Module()
        fmt = self.design.format
        largest = Signal(FIELD)
        m.d.comb += largest.eq(largest_field(m, self.i))
        top = clamped_field(m, fmt, largest)
        least = least_field(m, fmt, top)
        m.d.comb += [self.o.top.eq(top), self.o.invalid.eq(largest.all()),
                     self.o.negative.eq(Cat(self.i[n][-1] for n in range(fmt.terms)))]
        for n in range(fmt.terms):
            m.submodules[f"lane{n}"] = lane = EncodeLane(self.design, signed=False)
            m.d.comb += [lane.i.eq(self.i[n]), lane.top.eq(top), lane.least.eq(least),
                         self.o.magnitude[n].eq(lane.o)]
        return m


class BlockAccumulate(Cell):
    """The sum of a pair of blocks, converted and added to an FP32 number, combinational.

    Members
    -------
    sum : ``In(signed)``
        Integer dot product.
    a_top, b_top, a_invalid, b_invalid : ``In``
        E + 126 and flags of the two blocks.
    acc, o : ``In(32)``, ``Out(32)``
    """
    kind = "block_accumulate"

    def __init__(self, fmt):
        self.fmt = fmt
        width = fmt.sum_width(fmt.terms)
        super().__init__({"sum": In(signed(width)), "a_top": In(FIELD), "b_top": In(FIELD), "a_invalid": In(1),
                          "b_invalid": In(1), "acc": In(32), "o": Out(32)}, s=width, m=fmt.mantissa)

    def body(self, platform):
        m = Module()
        scale = Signal(signed(FIELD + 2))
        m.submodules.convert = convert = IntToFp32(len(self.sum), len(scale))
        m.submodules.add = add = Add(subnormals="flush", underflow="positive")
        m.d.comb += [
            scale.eq(self.a_top + self.b_top - 2 * (126 + self.fmt.magnitude)),
            convert.i.eq(self.sum), convert.exponent.eq(scale), convert.invalid.eq(self.a_invalid | self.b_invalid),
            add.a.eq(self.acc), add.b.eq(convert.o), self.o.eq(add.o),
        ]
        return m


class MultiplyAddChain(Cell):
    """``acc + a[0] * b[0] + a[1] * b[1] + ...`` in FP32, each product and each sum rounded, combinational."""
    kind = "chain"

    def __init__(self, terms, multiplier):
        self.terms, self.multiplier = terms, multiplier
        numbers = ArrayLayout(32, terms)
        super().__init__({"a": In(numbers), "b": In(numbers), "acc": In(32), "o": Out(32)}, t=terms, x=multiplier)

    def body(self, platform):
        m = Module()
        total = self.acc
        for n in range(self.terms):
            m.submodules[f"term{n}"] = term = MulAdd(underflow="positive", multiplier=self.multiplier)
            m.d.comb += [term.a.eq(self.a[n]), term.b.eq(self.b[n]), term.c.eq(total)]
            total = term.o
        m.d.comb += self.o.eq(total)
        return m


class DotProduct(Cell):
    """Accumulates dot products of FP32 blocks in one step each.

    Golden twin: :func:`golden.matmul.matmul` of a row and a column, a block of K at a time.

    Parameters
    ----------
    design : golden.spec.config.Design
        ``hbfp`` or ``fp32``; the terms are those of a block ``(1, terms)``.
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
    kind = "dot_product"

    def __init__(self, design, both=False):
        fmt = design.format
        if design.arithmetic not in ("hbfp", "fp32"):
            raise ConflictError("arithmetic", design.arithmetic, "must be hbfp or fp32 for a dot-product unit")
        if fmt.square:
            raise ConflictError("block", "{},{}".format(*fmt.block), "must be 1,B for a dot-product unit of B terms")
        if design.blocked and fmt.rounding == "stochastic":
            raise ConflictError("rounding", fmt.rounding, "must be rne or truncate for a dot-product unit")
        self.design, self.both = design, both
        numbers = ArrayLayout(32, fmt.terms)
        members = {"i": In(numbers), **({"i_b": In(numbers)} if both else {"load": In(1)}),
                   "step": In(1), "first": In(1), "o": Out(32)}
        params = {"m": fmt.mantissa, "e": min(fmt.exponent, 9), "s": fmt.subnormals, "r": fmt.rounding} \
            if design.blocked else {"x": design.multiplier}
        super().__init__(members, **{design.arithmetic: fmt.terms}, **params, b=2 if both else 1)

    def body(self, platform):
        m = Module()
        layout = block_layout(self.design)
        a = self._operand(m, "a", self.i, layout)
        b = Signal(layout, reset_less=True)
        if self.both:
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
        if self.design.blocked:
            m.submodules[f"encode_{name}"] = encode = EncodeBlock(self.design)
            m.d.comb += [encode.i.eq(values), operand.eq(encode.o)]
        else:
            m.d.comb += operand.value.eq(values)
        return operand

    def _sum(self, m, a, b, acc):
        fmt = self.design.format
        if not self.design.blocked:
            m.submodules.chain = chain = MultiplyAddChain(fmt.terms, self.design.multiplier)
            m.d.comb += [chain.a.eq(a.value), chain.b.eq(b.value), chain.acc.eq(acc)]
            return chain.o
        m.submodules.dot = dot = MagnitudeDot(fmt.magnitude, fmt.terms)
        m.submodules.accumulate = accumulate = BlockAccumulate(fmt)
        m.d.comb += [
            dot.a_negative.eq(a.negative), dot.a.eq(a.magnitude), dot.b_negative.eq(b.negative), dot.b.eq(b.magnitude),
            accumulate.sum.eq(dot.o), accumulate.a_top.eq(a.top), accumulate.b_top.eq(b.top),
            accumulate.a_invalid.eq(a.invalid), accumulate.b_invalid.eq(b.invalid), accumulate.acc.eq(acc),
        ]
        return accumulate.o
