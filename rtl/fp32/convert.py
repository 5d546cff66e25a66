"""Conversions between integers, BF16 and FP32."""

from amaranth import Cat, Const, signed
from amaranth.lib.wiring import In, Out

from golden.spec.floats import FP32
from golden.spec.format import check_choice, check_range

from .arith import UNDERFLOWS, pack, round_flush
from .raw import Operation, named, normalise


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
    def __init__(self, width, exponent_width=10, *, fmt=FP32, pipeline=0, underflow="positive"):
        check_range("Integer width", width, 2, 60, " bits")
        check_range("Exponent width", exponent_width, 0, 20, " bits")
        check_choice("Underflow", underflow, UNDERFLOWS)
        self.integer_width, self.exponent_width, self.underflow = width, exponent_width, underflow
        scale = {"exponent": In(signed(exponent_width))} if exponent_width else {}
        ports = {"i": In(signed(width)), **scale, "invalid": In(1), "o": Out(fmt.width)}
        super().__init__(fmt, pipeline=pipeline, ports=ports)

    def datapath(self, m, pipe):
        fmt, width = self.fmt, self.integer_width
        sign = self.i[-1]
        # -i, bit by bit: a bit flips if a one lies below it.
        borrow = Cat(*[named(m, sign & self.i[:k].any(), f"borrow{k}") for k in range(width)])
        magnitude = named(m, self.i.as_unsigned() ^ borrow, "magnitude")
        normal, count = normalise(m, magnitude)
        scale = self.exponent if self.exponent_width else 0
        exponent = named(m, (scale + (fmt.bias + width - 1) - count).as_signed(), "biased")
        # One spare bit at least keeps the rounder's guard well defined.
        normal = Cat(Const(0, max(fmt.precision + 1 - width, 0)), normal)
        raw = round_flush(m, fmt, sign, exponent, normal, ~normal[-1], Const(0, 1), self.invalid)
        m.d.comb += self.o.eq(pack(fmt, raw, self.underflow))
