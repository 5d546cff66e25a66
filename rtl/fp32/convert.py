"""Conversions between integers, BF16, FP16 and FP32."""

from dataclasses import dataclass, field

from amaranth import Cat, Const, Mux, signed
from amaranth.lib.wiring import In, Out

from hbfp.checks import check_choice, check_range
from hbfp.golden.spec.floats import BF16, FP16, FP32

from ..lib.names import parameter
from .arith import UNDERFLOWS
from .operation import Operation
from .raw import named, normalise, pack, round_flush, round_quick, round_up, shift_right_sticky, unpack


class IntToFp32(Operation):
    """Scaled integer to FP32, rounded once: ``o = i * 2^exponent``.

    Zero gives +0, overflow Inf of the sign; a result below the smallest normal number, judged
    after rounding, gives zero. Golden twin: :func:`golden.fp32.from_int`.

    Parameters
    ----------
    width, exponent_width : int
        Bits of the two signed inputs, 2 to 60 and 1 to 20; ``exponent_width`` 0 leaves the port out.
    underflow : str
        ``positive`` makes every zero +0, ``signed`` keeps the sign of an underflow.

    Members
    -------
    i : ``In(signed(width))``
        Integer.
    exponent : ``In(signed(exponent_width))``
        Power of two that scales it.
    invalid : ``In(1)``
        Result is NaN.
    """
    SUBNORMALS = ("flush",)
    CUTS = {"magnitude": 0.3, "normalise": 0.75, "output": 1.0}

    @dataclass(frozen=True)
    class Parameters(Operation.Parameters):
        width: int = parameter("w")
        exponent_width: int = parameter("e", 10)
        underflow: str = field(default="positive", kw_only=True, metadata={"letter": ""})

        def __post_init__(self):
            super().__post_init__()
            check_range("Integer width", self.width, 2, 60, " bits")
            check_range("Exponent width", self.exponent_width, 0, 20, " bits")
            check_choice("Underflow", self.underflow, UNDERFLOWS)

    @classmethod
    def data_ports(cls, params):
        scale = {"exponent": In(signed(params.exponent_width))} if params.exponent_width else {}
        return {"i": In(signed(params.width)), **scale, "invalid": In(1), "o": Out(params.fmt.width)}

    def datapath(self, m, pipe):
        scale = self.exponent if self.params.exponent_width else Const(0, 1)
        return pack(self.fmt, int_to_raw(m, pipe, self.fmt, self.i, scale, self.invalid), self.params.underflow)


def int_to_raw(m, pipe, fmt, integer, scale, nan):
    """Signed integer times 2^scale, rounded."""
    sign = integer[-1]
    # -i, bit by bit: a bit flips if a one lies below it.
    borrow = [Const(0, 1)]
    for k in range(1, len(integer)):
        borrow.append(named(m, borrow[-1] | sign & integer[k - 1], f"borrow{k}"))
    magnitude = named(m, integer.as_unsigned() ^ Cat(*borrow), "magnitude")
    magnitude, scale, sign, nan = pipe.cut("magnitude", magnitude, named(m, scale, "scale"), sign, nan)
    normal = normalise(m, magnitude, fmt.precision + 1)
    # A constant less the count is another constant plus its inverse.
    constant = fmt.bias + len(magnitude) - (1 << len(normal.count))
    exponent = named(m, (named(m, scale + constant, "offset") + ~normal.count).as_signed(), "biased")
    up = round_up(m, normal.value[1:], normal.value[0], normal.below)
    significand, up, exponent, sign, nan = pipe.cut("normalise", normal.value[1:], up, exponent, sign, nan)
    if pipe.active:
        following = named(m, (exponent + 1).as_signed(), "next_exponent")
        return round_quick(m, fmt, sign, (exponent, following), significand, up, ~significand[-1], Const(0, 1), nan)
    return round_flush(m, fmt, sign, exponent, significand, up, ~significand[-1], Const(0, 1), nan)


class FromInt32(Operation):
    """Signed 32-bit integer to float. Golden twin: :func:`golden.fp32.from_int32`."""
    CUTS = IntToFp32.CUTS

    @classmethod
    def data_ports(cls, params):
        return {"a": In(signed(32)), "o": Out(params.fmt.width)}

    def datapath(self, m, pipe):
        return pack(self.fmt, int_to_raw(m, pipe, self.fmt, self.a, Const(0, 1), Const(0, 1)))


class ToInt32(Operation):
    """Float to signed 32-bit integer; out of range saturates, NaN gives 0.

    Golden twin: :func:`golden.fp32.to_int32`.

    Parameters
    ----------
    rounding : str
        ``rne``, or ``truncate`` toward zero.
    """
    CUTS = {"align": 0.6, "output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters(Operation.Parameters):
        rounding: str = parameter("", "rne")

        def __post_init__(self):
            super().__post_init__()
            check_choice("Rounding", self.rounding, ("rne", "truncate"))

    @classmethod
    def data_ports(cls, params):
        return {"a": In(params.fmt.width), "o": Out(signed(32))}

    def datapath(self, m, pipe):
        fmt = self.fmt
        x = unpack(m, fmt, self.a, "a", self.flush)
        # The leading one at bit 31 moves down by 31 less the exponent.
        distance = named(m, (fmt.bias + 31 - x.exponent).as_signed(), "distance")
        too_large = named(m, distance[-1] & ~x.zero | x.inf, "too_large")
        far = named(m, distance[6:-1].any() | x.zero, "far")
        shifted, sticky = shift_right_sticky(m, Cat(Const(0, 32 - fmt.precision), x.significand), distance[:6], 33)
        shifted = named(m, shifted & ~far.replicate(33), "aligned")
        sign, nan = x.sign, x.nan
        shifted, sticky, far, too_large, sign, nan = pipe.cut("align", shifted, sticky, far, too_large, sign, nan)
        up = Const(0, 1)
        if self.params.rounding == "rne":
            up = named(m, shifted[0] & ((sticky & ~far) | shifted[1]), "up")
        # -(kept + up) = ~kept + (1 - up): one carry serves rounding and negation.
        value = named(m, (shifted[1:] ^ sign.replicate(32)) + (sign ^ up), "value")[:32]
        over = named(m, too_large | shifted[-1] & ~(sign & ~shifted[1:-1].any() & ~up) | ~sign & value[-1], "over")
        limit = Cat(~sign.replicate(31), sign)
        return Mux(nan, Const(0, 32), Mux(over, limit, value)).as_signed()


class ToBf16(Operation):
    """FP32 to BF16, to nearest even. Golden twin: :func:`golden.fp32.to_bf16`."""
    FORMATS = False

    @classmethod
    def data_ports(cls, params):
        return {"a": In(32), "o": Out(16)}

    def datapath(self, m, pipe):
        x = unpack(m, FP32, self.a, "a", self.flush)
        cut = FP32.fraction - BF16.fraction
        up = self.a[cut - 1] & (self.a[:cut - 1].any() | self.a[cut])
        # A carry out of the fraction is the next exponent, up to and including Inf.
        magnitude = (self.a[cut:-1] + (up & ~x.inf))[:15]
        zero = x.zero if self.flush else Const(0, 1)
        return Mux(x.nan, BF16.nan, Cat(magnitude & ~zero.replicate(15), x.sign))


class ToFp16(Operation):
    """FP32 to FP16, to nearest even; below 2^-14, judged after rounding, zero. Golden twin: :func:`golden.fp32.to_fp16`
    with ``flush``."""
    FORMATS = False
    SUBNORMALS = ("flush",)

    @classmethod
    def data_ports(cls, params):
        return {"a": In(32), "o": Out(FP16.width)}

    def datapath(self, m, pipe):
        x = unpack(m, FP32, self.a, "a", self.flush)
        cut, bias = FP32.fraction - FP16.fraction, FP32.bias - FP16.bias
        up = self.a[cut - 1] & (self.a[:cut - 1].any() | self.a[cut])
        # A carry out of the fraction is the next exponent.
        rounded = named(m, (self.a[cut:-1] + up)[:FP32.exponent + FP16.fraction], "rounded")
        field, fraction = rounded[FP16.fraction:], rounded[:FP16.fraction]
        small = named(m, x.zero | (field <= bias), "too_small")
        large = named(m, x.inf | (field >= bias + FP16.top), "too_large")
        exponent = named(m, (field - bias)[:FP16.exponent], "exponent")
        magnitude = Mux(large, FP16.inf, Cat(fraction, exponent) & ~small.replicate(FP16.width - 1))
        return Mux(x.nan, FP16.nan, Cat(magnitude[:FP16.width - 1], x.sign))


class ToInt8(Operation):
    """FP32 to a signed integer of 8 bits, to nearest even; beyond 127 it saturates, and NaN gives 0.

    Golden twin: :func:`golden.fp32.to_int8` with ``flush``.
    """
    FORMATS = False
    SUBNORMALS = ("flush",)
    #: Bits of the magnitude.
    BITS = 7

    @classmethod
    def data_ports(cls, params):
        return {"a": In(32), "o": Out(signed(cls.BITS + 1))}

    def datapath(self, m, pipe):
        x, bits = unpack(m, FP32, self.a, "a", self.flush), self.BITS
        # The leading one moves down from the top of the magnitude by as much as the exponent lacks.
        distance = named(m, (FP32.bias + bits - 1 - self.a[FP32.fraction:-1]).as_signed(), "distance")
        near = bits.bit_length()
        far = named(m, distance[near:-1].any() & ~distance[-1], "far")
        cut = FP32.precision - bits - 1    # a guard bit below
        shifted, sticky = shift_right_sticky(m, x.significand[cut:], distance[:near], bits + 1)
        shifted = named(m, shifted & ~(far | x.nan).replicate(bits + 1), "aligned")
        over = distance[-1] & ~x.nan
        magnitude = named(m, shifted[1:] | over.replicate(bits), "magnitude")
        low = named(m, sticky | x.significand[:cut].any(), "low")
        up = named(m, shifted[0] & (low | shifted[1]) & ~magnitude.all(), "up")
        # -(magnitude + up) = ~magnitude + (1 - up): one carry serves rounding and negation.
        return (Cat(magnitude, 0) ^ x.sign.replicate(bits + 1)) + (x.sign ^ up)


class FromBf16(Operation):
    """BF16 to FP32; exact. Golden twin: :func:`golden.fp32.from_bf16`."""
    FORMATS = False

    @classmethod
    def data_ports(cls, params):
        return {"a": In(16), "o": Out(32)}

    def datapath(self, m, pipe):
        x = unpack(m, BF16, self.a, "a", self.flush)
        zero = x.zero if self.flush else Const(0, 1)
        wide = Cat(Const(0, 16), self.a[:-1] & ~zero.replicate(15), x.sign)
        return Mux(x.nan, Const(FP32.nan, 32), wide)
