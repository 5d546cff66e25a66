"""A float plus a scaled integer, in two steps that fit together: nothing is packed between them."""

from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.floats import FP32, FloatFormat

from ..fixed.prefix import add_chain, add_prefix
from ..lib.component import Component
from ..lib.cuts import Pipeline, choose_cuts
from ..lib.layout import StructLayout
from ..lib.names import parameter
from .operation import Operation
from .raw import Raw, limits, named, normalise, pack, round_quick, round_up, shift_right_sticky


def rounded(m, significand, up):
    """The fraction of a significand after rounding, and the carry out of it."""
    total = named(m, significand[:-1] + up, "rounded")
    return total[:-1], total[-1]


def add_carry(a, b, carry):
    """``a + b + carry``, the last one bit, by one adder."""
    a, b = (Cat(low, value).as_signed() if value.shape().signed else Cat(low, value)
            for low, value in ((Const(1, 1), a), (carry, b)))
    total = a + b
    return total[1:].as_signed() if total.shape().signed else total[1:]


def term_layout(fmt, fraction):
    """What an integer is before it is added: sign, exponent field, the ``fraction`` upper bits of its fraction.

    ``zero``, ``inf``, ``nan`` override the others, the last one first.
    """
    return StructLayout({"fraction": fraction, "exponent": fmt.exponent, "sign": 1, "zero": 1, "inf": 1, "nan": 1})


class Term(Component):
    """A scaled integer made ready for :class:`ScaledAdd`: ``i * 2^(exponent - offset)``, rounded to the format,
    ``pipeline`` cycles later.

    Parameters
    ----------
    width, exponent_width : int
        Bits of the integer, 3 or more, and of its exponent. The integer -2^(width - 1) never comes.
    fmt : FloatFormat
        The format of the sum.
    pipeline : int
        Registers between input and output, 0 (combinational) to the number of :attr:`CUTS`.

    Members
    -------
    i, exponent : ``In(signed)``
        Integer, and power of two of its last bit plus :attr:`offset`.
    invalid : ``In(1)``
        The term is NaN.
    o : ``Out(term_layout)``
    """
    kind = "term"
    #: Cut name -> share of the combinational delay before it; none behind the term, where its user has a register.
    CUTS = {"magnitude": 0.35, "normalise": 0.7}

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("w")
        exponent_width: int = parameter("e")
        fmt: FloatFormat = parameter("", FP32)
        pipeline: int = parameter("p", 0)

        @property
        def exact(self):
            """Whether no integer has more bits than a significand, so that none is rounded."""
            return self.width - 1 <= self.fmt.precision

        @property
        def fraction(self):
            """Bits of the fraction that may be other than zero."""
            return max(min(self.width - 1, self.fmt.precision) - 1, 1)

        @property
        def offset(self):
            """What the exponent is ahead of the power of two, so that the place of the leading one completes it."""
            return self.fmt.bias + self.width - 1 - (1 << (self.width - 2).bit_length())

    @staticmethod
    def ports(params):
        return {"i": In(signed(params.width)), "exponent": In(signed(params.exponent_width)), "invalid": In(1),
                "o": Out(term_layout(params.fmt, params.fraction))}

    @property
    def latencies(self):
        """``result``: from the integer to the term."""
        return {"result": self.params.pipeline}

    def body(self, platform):
        m, params, fmt = Module(), self.params, self.params.fmt
        pipe = Pipeline(m, choose_cuts(self.CUTS, params.pipeline), Const(1))
        sign = self.i[-1]
        # -i, bit by bit: a bit flips if a one lies below it.
        below = [Const(0, 1)]
        for k in range(1, params.width - 1):
            below.append(named(m, below[-1] | sign & self.i[k - 1], f"below{k}"))
        magnitude = named(m, self.i[:-1] ^ Cat(below), "magnitude")
        magnitude, scale, sign, invalid = pipe.cut("magnitude", magnitude, self.exponent, sign, self.invalid)
        keep = len(magnitude) if params.exact else fmt.precision + 1
        normal, scale, sign, invalid = pipe.cut("normalise", normalise(m, magnitude, keep), scale, sign, invalid)
        if params.exact:
            fraction, carry = normal.value[:-1], Const(0, 1)
        else:
            significand = normal.value[1:]
            up = round_up(m, significand, normal.value[0], normal.below)
            fraction, carry = rounded(m, significand, up)
        # The offset less the count of leading zeros is another offset plus its complement.
        width = max(params.exponent_width, len(normal.count) + 1, fmt.exponent + 1) + 1
        exponent = Signal(signed(width), name="biased")
        short = ~normal.count if len(normal.count) else Const(0, 1)    # of one bit there is nothing to count
        m.d.comb += exponent.eq(add_carry(scale, short, carry))
        under, over = limits(m, fmt, exponent)
        m.d.comb += [
            self.o.sign.eq(sign), self.o.exponent.eq(exponent), self.o.fraction.eq(fraction),
            self.o.zero.eq(~normal.value[-1] | under), self.o.inf.eq(over & normal.value[-1]),
            self.o.nan.eq(invalid),
        ]
        return m


class ScaledAdd(Operation):
    """Sum of a float and a :class:`Term`: ``o = a + b``, rounded once; below the normal numbers it is +0.

    Parameters
    ----------
    width : int
        Bits of the integer behind the term.

    Members
    -------
    a : ``In(width)``
        As this unit gives it: no subnormals, zero is +0, the fraction of Inf is 0 and NaN is the format's one NaN.
    b : ``In(term_layout)``
    o : ``Out(width)``
    """
    SUBNORMALS = ("flush",)
    #: With the reading of a bank before it.
    CUTS = {"read": 0.1, "swap": 0.23, "align": 0.34, "sum": 0.48, "left": 0.63, "normalise": 0.72, "round": 0.955,
            "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Operation.Parameters):
        width: int = parameter("w")

    @classmethod
    def data_ports(cls, params):
        term = Term.Parameters(params.width, 1, params.fmt)
        return {"a": In(params.fmt.width), "b": In(term_layout(params.fmt, term.fraction)), "o": Out(params.fmt.width)}

    def datapath(self, m, pipe):
        fmt, a, b = self.fmt, self.a, self.b
        if "read" in pipe.active:
            a, word = pipe.cut("read", a, named(m, b.as_value(), "term"))
            b = View(b.shape(), word)
        a_fraction, a_exponent, a_sign = a[:fmt.fraction], a[fmt.fraction:-1], a[-1]
        a_top = named(m, a_exponent.all(), "a_top")
        a_nan, a_inf = a_top & a[fmt.fraction - 1], a_top & ~a[fmt.fraction - 1]
        x = named(m, Cat(a_fraction, a_exponent.any()), "x")
        y = named(m, Cat(Const(0, fmt.fraction - len(b.fraction)), b.fraction, Const(1, 1)), "y")
        difference = named(m, (a_exponent - b.exponent).as_signed(), "difference")
        # Only exponents decide which operand is shifted, but zero always is. A difference that turns out negative is
        # negated without an adder: its complement is one less, and that one is a shift in the same multiplexer.
        behind = difference[-1]
        swap = named(m, behind & ~b.zero, "swap")
        larger = named(m, Mux(swap, y, x), "larger")
        exponent = named(m, Mux(swap, b.exponent, a_exponent), "large_exponent")
        smaller = named(m, Mux(swap, x, Cat(Const(0, 1), y)), "smaller")
        sign = named(m, Mux(swap, b.sign, a_sign), "sign")
        subtract = named(m, a_sign ^ b.sign, "subtract")
        kept = fmt.precision + 2
        stages = kept.bit_length()
        amount = difference[:-1] ^ behind.replicate(fmt.exponent)
        # What is far is shifted as far as can be: nothing is left of it.
        far = named(m, amount[stages:].any() | b.zero, "far")
        amount = named(m, Cat(amount, Const(0, stages))[:stages] | far.replicate(stages), "amount")
        nan = named(m, a_nan | b.nan | a_inf & b.inf & subtract, "any_nan")
        inf = named(m, a_inf | b.inf, "any_inf")
        inf_sign = named(m, Mux(b.inf, b.sign, a_sign), "inf_sign")
        counts = ~b.zero

        larger, exponent, smaller, amount, sign, subtract, nan, inf, inf_sign, counts = pipe.cut(
            "swap", larger, exponent, smaller, amount, sign, subtract, nan, inf, inf_sign, counts)
        shifted, sticky = shift_right_sticky(m, smaller, amount, kept)
        sticky = named(m, sticky & counts, "sticky_counts")
        if pipe.active:
            shifted = named(m, shifted ^ subtract.replicate(kept), "flipped")

        larger, exponent, shifted, sticky, sign, subtract, nan, inf, inf_sign = pipe.cut(
            "align", larger, exponent, shifted, sticky, sign, subtract, nan, inf, inf_sign)
        # {carry or sign, significand, guard, round}; the sticky bit below borrows from them.
        addend = Cat(shifted, subtract) if pipe.active else \
            named(m, Cat(shifted, Const(0, 1)) ^ subtract.replicate(kept + 1), "addend")
        borrow = named(m, subtract & ~sticky, "borrow")
        larger = Cat(Const(0, 2), larger)
        add = add_chain if pipe.chain else add_prefix
        total = named(m, add(m, Cat(larger, Const(0, 1)), addend, "sum", borrow)[:kept + 1] if pipe.active else
                      add_carry(larger, addend, borrow)[:kept + 1], "total")

        total, exponent, sticky, sign, subtract, nan, inf, inf_sign = pipe.cut(
            "sum", total, exponent, sticky, sign, subtract, nan, inf, inf_sign)
        negative = named(m, total[-1] & subtract, "negative")
        # -total = ~total + 0.111...: with ones shifted in below, the rounding completes the negation.
        magnitude = named(m, Cat(sticky | negative, total ^ negative.replicate(kept + 1)), "magnitude")
        beside = pipe.cut("left", exponent, sign, negative, nan, inf, inf_sign)
        normal = normalise(m, magnitude, fmt.precision + 1, fill=negative,
                           cut=partial(pipe.cut, "left"))
        exponent, sign, negative, nan, inf, inf_sign = beside
        significand = normal.value[1:]
        up = round_up(m, significand, normal.value[0], normal.below)
        zero = named(m, ~significand[-1], "zero")
        sign = named(m, Mux(inf, inf_sign, sign ^ negative), "sum_sign")

        significand, up, exponent, count, zero, sign, nan, inf = pipe.cut(
            "normalise", significand, up, exponent, normal.count, zero, sign, nan, inf)
        # One more, less the count, and the carry: 1 - count is the complement of count - 2.
        more = [~count[0], *(bit ^ count[1:n].any() if n > 1 else bit for n, bit in enumerate(count) if n),
                count[1:].any()]
        size = max(fmt.exponent, len(count)) + 2
        if pipe.active:
            high, low = Cat(exponent, Const(0, size))[:size], Cat(more, count[1:].any().replicate(size))[:size]
            exponents = tuple(named(m, add(m, high, low, f"raise{n}", n)[:size].as_signed(), f"raised{n}")
                              for n in range(2))
            raw, = pipe.cut("round", round_quick(m, fmt, sign, exponents, significand, up, zero, inf, nan))
            return pack(fmt, raw, "positive")
        fraction, carry = rounded(m, significand, up)
        raised = Signal(signed(size))
        m.d.comb += raised.eq(add_carry(exponent, Cat(more).as_signed(), carry))
        exponent = raised
        under, over = limits(m, fmt, exponent)
        under, all_ones = named(m, under | zero, "under"), named(m, over | inf | nan, "all_ones")
        field = exponent[:fmt.exponent] & ~under.replicate(fmt.exponent) | all_ones.replicate(fmt.exponent)
        raw, = pipe.cut("round", Raw(sign, named(m, field, "field"), Cat(fraction, Const(1, 1)), under, all_ones, nan))
        return pack(fmt, raw, "positive")
