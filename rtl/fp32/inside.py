"""Floats as they travel inside an array: activations taken apart once a row of a group, sums that are not packed.

In the least area elements share what an activation alone decides: its tests, its exponent without the bias, three times
its significand. A sum that goes on to the next element keeps its flags, so that nothing is masked or tested in between;
only that which leaves the array is packed.
"""

from dataclasses import dataclass

from amaranth import Cat, Module, signed
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.floats import FloatFormat

from ..fixed.ripple import add_ripple, bits_of
from ..lib.component import Component
from ..lib.layout import StructLayout
from ..lib.names import parameter
from .raw import Raw, named, pack, unpack


def prepared_layout(fmt):
    """An activation: flags, exponent less the bias, significand and three times it."""
    return StructLayout({"sign": 1, "zero": 1, "inf": 1, "nan": 1, "exponent": signed(fmt.exponent + 1),
                         "significand": fmt.precision, "triple": fmt.precision + 2})


def sum_layout(fmt):
    """A sum: the fields of its pattern, which mean nothing where a flag is set; ``inf`` is, too, where ``nan`` is."""
    return StructLayout({"fraction": fmt.fraction, "exponent": fmt.exponent, "sign": 1, "zero": 1, "inf": 1, "nan": 1})


def bits_in(layout):
    """Bits of a layout."""
    return layout.as_shape().width


def prepared(fmt, bits):
    """A raw operand from bits in :func:`prepared_layout`."""
    parts = View(prepared_layout(fmt), bits)
    return Raw(parts.sign, None, parts.significand, parts.zero, parts.inf, parts.nan, parts.exponent, parts.triple)


def unpacked_sum(fmt, bits):
    """A raw operand from bits in :func:`sum_layout`."""
    parts = View(sum_layout(fmt), bits)
    return Raw(parts.sign, parts.exponent, Cat(parts.fraction, 1), parts.zero, parts.inf, parts.nan)


def as_sum(fmt, raw):
    """What a rounder gives, in :func:`sum_layout`."""
    return Cat(raw.significand[:fmt.fraction], raw.exponent, raw.sign, raw.zero, raw.inf, raw.nan)


def unbias(m, exponent, bias, name="unbias"):
    """An exponent field less the bias, signed and one bit wider."""
    width = len(exponent) + 1
    low, _ = add_ripple(m, bits_of(exponent, width), [-bias >> n & 1 for n in range(width)], name)
    return named(m, low.as_signed(), "unbiased")


def three_times(m, significand, name="triple"):
    """Three times a significand, two bits wider."""
    return named(m, add_ripple(m, [*significand, 0, 0], [0, *significand, 0], name)[0], f"{name}_sum")


class Prepare(Component):
    """An activation taken apart, combinational.

    Parameters
    ----------
    fmt : FloatFormat
        Format of the activation.
    subnormals : str
        ``flush`` or ``gradual``.

    Members
    -------
    i : ``In(width)``
    o : ``Out(prepared_layout)``
    """
    kind, area, apart = "prepare", "elements", True

    @dataclass(frozen=True)
    class Parameters:
        fmt: FloatFormat = parameter("")
        subnormals: str = parameter("")

    @staticmethod
    def ports(params):
        return {"i": In(params.fmt.width), "o": Out(bits_in(prepared_layout(params.fmt)))}

    def body(self, platform):
        m, fmt = Module(), self.params.fmt
        raw = unpack(m, fmt, self.i, "a", self.params.subnormals == "flush")
        parts = View(prepared_layout(fmt), self.o)
        m.d.comb += [parts.sign.eq(raw.sign), parts.zero.eq(raw.zero), parts.inf.eq(raw.inf), parts.nan.eq(raw.nan),
                     parts.exponent.eq(unbias(m, raw.exponent, fmt.bias)), parts.significand.eq(raw.significand),
                     parts.triple.eq(three_times(m, raw.significand))]
        return m


class PackSum(Component):
    """The pattern of a sum that leaves the array, zero as +0; combinational.

    Parameters
    ----------
    fmt : FloatFormat

    Members
    -------
    i : ``In(sum_layout)``
    o : ``Out(width)``
    """
    kind, area, apart = "pack_sum", "elements", True

    @dataclass(frozen=True)
    class Parameters:
        fmt: FloatFormat = parameter("")

    @staticmethod
    def ports(params):
        return {"i": In(bits_in(sum_layout(params.fmt))), "o": Out(params.fmt.width)}

    def body(self, platform):
        m, fmt = Module(), self.params.fmt
        raw = unpacked_sum(fmt, self.i)
        raw.exponent = raw.exponent & ~raw.zero.replicate(fmt.exponent) | raw.inf.replicate(fmt.exponent)
        m.d.comb += self.o.eq(pack(fmt, raw, "positive"))
        return m
