"""FP32 add, subtract and multiply, and sums of products that the array's baselines use."""

from dataclasses import dataclass

from amaranth import Cat, Const, Mux
from amaranth.lib.wiring import In, Out

from hbfp.fields import check_choice
from hbfp.golden.spec.floats import BF16, FloatFormat

from ..lib.names import parameter
from .multiply import MULTIPLIERS, multiply_recoded
from .operation import Operation, choose_cuts
from .raw import Raw, named, normalise, pack, round_flush, round_gradual, round_up, shift_right_sticky, unpack

#: Sign of results that are flushed to zero: their own, or always plus.
UNDERFLOWS = ("signed", "positive")
#: Parts of a plain multiplier that a register cuts in two; their sum is formed behind it.
PIECES = 4


def add_raw(m, pipe, fmt, x, y, flush, underflow="signed"):
    """Sum of two raw operands, rounded once and packed.

    The significands have one width, and as many bits above the point: 1, or 2 if ``x`` is a product
    in [1, 4). The operand of smaller exponent is shifted, so one that is zero must not have the
    larger, nor a wide ``x`` that is infinite the smaller.
    """
    width, product = len(x.significand), len(x.significand) > fmt.precision
    head = 2 if product else 1
    wide = len(x.exponent) > fmt.exponent
    difference = named(m, (x.exponent - y.exponent).as_signed(), "difference")
    # Only exponents decide which operand is shifted: a difference that turns out negative is
    # negated without an adder, see below.
    swap = difference[-1]
    subtract = named(m, x.sign ^ y.sign, "subtract")
    larger = named(m, Mux(swap, y.significand, x.significand), "larger")
    large_exponent = named(m, Mux(swap, y.exponent, x.exponent), "large_exponent")
    large_zero = named(m, Mux(swap, y.zero, x.zero), "large_zero")
    small_zero = named(m, Mux(swap, x.zero, y.zero), "small_zero")
    sign = named(m, Mux(swap, y.sign, x.sign), "sign")
    # |difference| = ~difference + 1 when negative: the one is a shift in the same multiplexer.
    smaller = named(m, Mux(swap, x.significand, Cat(Const(0, 1), y.significand)), "smaller")
    amount = named(m, difference[:-1] ^ swap.replicate(len(difference) - 1), "amount")
    nan = named(m, x.nan | y.nan | x.inf & y.inf & subtract, "any_nan")
    inf = named(m, x.inf | y.inf, "any_inf")
    inf_sign = Mux(y.inf, y.sign, x.sign) if wide else None
    # The sign of a lone product that underflows beside a zero addend.
    alone = named(m, ~x.zero & y.zero, "alone") if wide and flush else None
    alone_sign = x.sign if wide and flush else None

    (larger, large_exponent, large_zero, small_zero, sign, smaller, amount, subtract, nan, inf, inf_sign, alone,
     alone_sign) = pipe.cut(
        "swap", larger, large_exponent, large_zero, small_zero, sign, smaller, amount, subtract, nan, inf, inf_sign,
        alone, alone_sign)
    kept = width + 2
    stages = (kept - 1).bit_length()
    far = named(m, amount[stages:].any(), "far")
    shifted, sticky = shift_right_sticky(m, smaller, amount[:stages], kept)
    gone = named(m, far | small_zero if flush else far, "gone")
    shifted = named(m, shifted & ~gone.replicate(kept), "aligned")
    sticky = named(m, Mux(gone, ~small_zero, sticky), "aligned_sticky")

    (larger, large_exponent, large_zero, shifted, sticky, sign, subtract, nan, inf, inf_sign, alone,
     alone_sign) = pipe.cut(
        "align", larger, large_exponent, large_zero, shifted, sticky, sign, subtract, nan, inf, inf_sign, alone,
        alone_sign)
    # {carry or sign, significand, guard, round}; the sticky bit below borrows from them.
    total = named(m, (Cat(Const(0, 2), larger) + (Cat(shifted, Const(0, 1)) ^ subtract.replicate(kept + 1))
                      + (subtract & ~sticky))[:kept + 1], "total")

    total, large_exponent, large_zero, sticky, sign, subtract, nan, inf, inf_sign, alone, alone_sign = pipe.cut(
        "sum", total, large_exponent, large_zero, sticky, sign, subtract, nan, inf, inf_sign, alone, alone_sign)
    negative = named(m, total[-1] & subtract, "negative")
    # -total = ~total + 0.111...: with ones shifted in below, the rounder completes the negation.
    exact = named(m, negative & ~sticky, "negative_exact") if product else negative
    magnitude = named(m, Cat(sticky | negative, total ^ negative.replicate(kept + 1)), "magnitude")
    if flush:
        normal = normalise(m, magnitude, fmt.precision + 1, fill=exact)
        exponent = named(m, (large_exponent + head - normal.count).as_signed(), "exponent")
        zero = named(m, large_zero | ~normal.value[-1], "zero")
        cancel = named(m, subtract & zero, "cancel")
    else:
        normal = normalise(m, magnitude, fmt.precision + 1, fill=exact,
                           exponent=large_exponent + (head - 1) if product else large_exponent)
        exponent = zero = None
        cancel = named(m, subtract & ~magnitude.any(), "cancel")
    sign = named(m, (sign ^ negative) & ~cancel, "sum_sign")
    if alone is not None:
        sign = Mux(alone, alone_sign, sign)
    if inf_sign is not None:
        sign = Mux(inf, inf_sign, sign)
    significand, guard = normal.value[1:], normal.value[0]
    up = round_up(m, significand, guard, normal.below, ~guard & normal.ones & exact if product else None)

    significand, up, exponent, lowered, zero, sign, nan, inf = pipe.cut(
        "normalise", significand, up, exponent, normal.exponent, zero, named(m, sign, "sign_out"), nan, inf)
    if flush:
        raw = round_flush(m, fmt, sign, exponent, significand, up, zero, inf, nan)
    else:
        raw = round_gradual(m, fmt, sign, lowered, significand, up, inf, nan)
    raw, = pipe.cut("round", raw)
    return pack(fmt, raw, underflow)


def multiply_raw(m, pipe, x, y, bias, multiplier="plain"):
    """Exact product of two raw operands: biased signed exponent, two bits above the point."""
    sign, exponent = named(m, x.sign ^ y.sign, "product_sign"), (x.exponent + y.exponent - bias).as_signed()
    nan = named(m, x.nan | y.nan | x.inf & y.zero | x.zero & y.inf, "product_nan")
    zero, inf = named(m, x.zero | y.zero, "product_zero"), named(m, x.inf | y.inf, "product_inf")
    if "partial" in pipe.active and multiplier == "recoded":
        product = multiply_recoded(m, x.significand, y.significand, lambda *rows: pipe.cut("partial", *rows))
        sign, exponent, zero, inf, nan = pipe.cut(
            "partial", sign, named(m, exponent, "partial_exponent"), zero, inf, nan)
    elif "partial" in pipe.active:
        size = -(-len(y.significand) // PIECES)
        pieces = [named(m, x.significand * y.significand[k:k + size], f"piece{k}")
                  for k in range(0, len(y.significand), size)]
        pieces, sign, exponent, zero, inf, nan = pipe.cut(
            "partial", pieces, sign, named(m, exponent, "partial_exponent"), zero, inf, nan)
        product = sum((piece << size * k for k, piece in enumerate(pieces)), Const(0, 1))
        product = product[:len(x.significand) + len(y.significand)]
    elif multiplier == "recoded":
        product = multiply_recoded(m, x.significand, y.significand)
    else:
        product = x.significand * y.significand
    return Raw(sign, named(m, exponent, "product_exponent"), named(m, product, "product"), zero, inf, nan)


def normal_product(m, raw):
    """A product of normal numbers with its leading one moved to the top bit."""
    high = raw.significand[-1]
    significand = Mux(high, raw.significand, Cat(Const(0, 1), raw.significand)[:len(raw.significand)])
    return Raw(raw.sign, named(m, (raw.exponent + high).as_signed(), "normal_exponent"),
               named(m, significand, "normal_product"), raw.zero, raw.inf, raw.nan)


def decide_product(m, fmt, raw):
    """Whether a normalised product rounds up; the bits that decide are left out of the result."""
    spare = len(raw.significand) - fmt.precision
    kept = raw.significand[spare:]
    up = round_up(m, kept, raw.significand[spare - 1], raw.significand[:spare - 1].any())
    return Raw(raw.sign, raw.exponent, kept, raw.zero, raw.inf, raw.nan), up


def round_product(m, fmt, raw, up):
    """Round a normalised product, flushing."""
    return round_flush(m, fmt, raw.sign, raw.exponent, raw.significand, up, raw.zero, raw.inf, raw.nan)


def bound_product(m, raw):
    """Give a zero product an exponent below any addend, so that it is the operand that is shifted,
    and an infinite one an exponent above."""
    lowest = -1 << (len(raw.exponent) - 1)
    exponent = Mux(raw.zero, Const(lowest, raw.exponent.shape()),
                   Mux(raw.inf, Const(-1 - lowest, raw.exponent.shape()), raw.exponent))
    return Raw(raw.sign, named(m, exponent, "bounded"), raw.significand, raw.zero, raw.inf, raw.nan)


class Add(Operation):
    """Sum ``o = a + b``. Golden twin: :func:`golden.fp32.add`.

    Parameters
    ----------
    underflow : str
        With ``flush``: ``positive`` makes every zero result +0, as accumulation across blocks
        wants; ``signed`` keeps the sign.
    """
    CUTS = {"swap": 0.17, "align": 0.26, "sum": 0.42, "normalise": 0.7, "round": 0.93, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Operation.Parameters):
        underflow: str = parameter("", "signed")

        def __post_init__(self):
            super().__post_init__()
            check_choice("Underflow", self.underflow, UNDERFLOWS)
            if self.underflow == "positive" and self.subnormals == "gradual":
                raise ValueError("Underflow positive needs subnormals flush, not gradual")

    def operand(self, m, name):
        return unpack(m, self.fmt, getattr(self, name), name, self.flush)

    def datapath(self, m, pipe):
        return add_raw(m, pipe, self.fmt, self.operand(m, "a"), self.operand(m, "b"), self.flush,
                       self.params.underflow)


class Sub(Add):
    """Difference ``o = a - b``. Golden twin: :func:`golden.fp32.sub`."""

    def datapath(self, m, pipe):
        y = self.operand(m, "b")
        y.sign = ~y.sign
        return add_raw(m, pipe, self.fmt, self.operand(m, "a"), y, self.flush, self.params.underflow)


class Mul(Operation):
    """Product ``o = a * b``. Golden twin: :func:`golden.fp32.mul`.

    Parameters
    ----------
    multiplier : str
        ``plain`` is `*`; ``recoded`` takes less area and more delay.
    """
    CUTS = {"partial": 0.3, "product": 0.5, "normalise": 0.7, "round": 0.93, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Operation.Parameters):
        multiplier: str = parameter("", "plain")

        def __post_init__(self):
            super().__post_init__()
            check_choice("Multiplier", self.multiplier, MULTIPLIERS)

    def datapath(self, m, pipe):
        fmt, flush = self.fmt, self.flush
        x, y = (unpack(m, fmt, v, n, flush) for v, n in ((self.a, "a"), (self.b, "b")))
        raw, = pipe.cut("product", multiply_raw(m, pipe, x, y, fmt.bias, self.params.multiplier))
        if flush:
            raw, up = pipe.cut("normalise", *decide_product(m, fmt, normal_product(m, raw)))
            raw = round_product(m, fmt, raw, up)
        else:
            # Zeros above the product let one left shift serve subnormal operands and results.
            room = fmt.precision + 1
            base = named(m, raw.exponent + room, "base")
            base = named(m, base[:-1] & ~base[-1].replicate(len(base) - 1), "base_clamped")
            normal = normalise(m, Cat(raw.significand, Const(0, room)), fmt.precision + 1, exponent=base,
                               stages=(room + fmt.precision).bit_length())
            up = round_up(m, normal.value[1:], normal.value[0], normal.below)
            significand, base, up, sign, inf, nan = pipe.cut(
                "normalise", normal.value[1:], normal.exponent, up, raw.sign, raw.inf, raw.nan)
            raw = round_gradual(m, fmt, sign, base, significand, up, inf, nan)
        raw, = pipe.cut("round", raw)
        return pack(fmt, raw)


class SumOfProduct(Add):
    """What units that add a product have in common: an addend that may come as late as the sum needs it.

    Parameters
    ----------
    late : bool
        The addend ``c`` comes :attr:`lead` cycles after ``a`` and ``b``, when the product is there; else with them,
        and registers hold it that long. The result is ``pipeline`` cycles behind ``a`` and ``b`` in any case.
    """

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Add.Parameters):
        late: bool = parameter("late", False)

    def __init__(self, *values, late=False, **named):
        late = late and bool(self.leading(named.get("pipeline", 0)))
        super().__init__(*values, late=late, **named)

    @classmethod
    def leading(cls, pipeline):
        """The cuts of a depth that stand before the sum."""
        before = list(cls.CUTS)[:list(cls.CUTS).index("swap")]
        return [name for name in before if name in choose_cuts(cls.CUTS, pipeline)]

    @property
    def lead(self):
        """Cycles in which the product alone is formed."""
        return len(self.leading(self.params.pipeline))

    def meet(self, pipe, addend):
        """The addend behind as many registers as the product."""
        for name in () if self.params.late else self.leading(self.params.pipeline):
            addend, = pipe.cut(name, addend)
        return addend


class MulAdd(SumOfProduct):
    """Product and sum, each rounded: ``o = round(a * b) + c``; nothing is packed between the two.

    Golden twin: ``add(mul(a, b), c)``.

    Parameters
    ----------
    multiplier : str
        As in :class:`Mul`.
    """
    OPERANDS = ("a", "b", "c")
    SUBNORMALS = ("flush",)
    CUTS = {"partial": 0.15, "product": 0.3, "rounded": 0.5, "swap": 0.58, "align": 0.63, "sum": 0.71,
            "normalise": 0.85, "round": 0.97, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(SumOfProduct.Parameters):
        multiplier: str = parameter("", "plain")

        def __post_init__(self):
            super().__post_init__()
            check_choice("Multiplier", self.multiplier, MULTIPLIERS)

    def datapath(self, m, pipe):
        x, y, z = (self.operand(m, name) for name in self.OPERANDS)
        raw, = pipe.cut("product", multiply_raw(m, pipe, x, y, self.fmt.bias, self.params.multiplier))
        product, = pipe.cut("rounded", round_product(m, self.fmt, *decide_product(m, self.fmt, normal_product(m, raw))))
        z = self.meet(pipe, z)
        return add_raw(m, pipe, self.fmt, product, z, True, self.params.underflow)


class ProductAdd(SumOfProduct):
    """Exact product of two narrow floats plus a wide one, rounded once: ``o = a * b + c``.

    Golden twin: :func:`golden.fp32.fma` of the widened operands.

    Parameters
    ----------
    source : FloatFormat
        Format of ``a`` and ``b``: the exponent of ``fmt``, and at most half its precision.
    """
    SUBNORMALS = ("flush",)
    CUTS = {"product": 0.27, "swap": 0.4, "align": 0.46, "sum": 0.58, "normalise": 0.8, "round": 0.95, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(SumOfProduct.Parameters):
        source: FloatFormat = parameter("", BF16)

        def __post_init__(self):
            super().__post_init__()
            if self.source.exponent != self.fmt.exponent or 2 * self.source.precision > self.fmt.precision:
                raise ValueError(f"Product of {self.source!r} must fit the precision of {self.fmt!r}")

    @classmethod
    def data_ports(cls, params):
        return {"a": In(params.source.width), "b": In(params.source.width), "c": In(params.fmt.width),
                "o": Out(params.fmt.width)}

    def datapath(self, m, pipe):
        fmt, source = self.fmt, self.params.source
        x, y = (unpack(m, source, v, n, True) for v, n in ((self.a, "a"), (self.b, "b")))
        product = bound_product(m, normal_product(m, multiply_raw(m, pipe, x, y, fmt.bias)))
        product.significand = Cat(Const(0, fmt.precision - len(product.significand)), product.significand)
        product, = pipe.cut("product", product)
        return add_raw(m, pipe, fmt, product, self.meet(pipe, self.operand(m, "c")), True, self.params.underflow)
