"""Packed layouts that reach Verilog as one vector, without a wire for every field."""

from functools import cached_property

from amaranth import Shape, Signal, Value, unsigned
from amaranth.hdl import Format
from amaranth.lib import data


def index(count):
    """Shape of a number below ``count``: at least one bit, since Verilog has no vector of none."""
    return unsigned(max(1, (count - 1).bit_length()))


class ArrayLayout(data.ArrayLayout):
    """An array that is emitted as one vector."""

    @cached_property
    def bits(self):
        """What stands in its bits, in words."""
        inside, width = getattr(self.elem_shape, "bits", None), Shape.cast(self.elem_shape).width
        return f"{self.length} of {f'{{{inside}}}' if inside else f'{width} bit' + 's' * (width > 1)}"

    def format(self, value, format_spec):
        """Show the vector as one number: thousands of named fields would be most of the text."""
        return Format("{}", Value.cast(value))


class StructLayout(data.StructLayout):
    """A struct that is emitted as one vector, with the attribute ``fields``: what stands in its bits."""

    @cached_property
    def bits(self):
        """What stands in its bits, in words: ``rows 9:0, more 10``."""
        return ", ".join(_field(name, field) for name, field in self if Shape.cast(field.shape).width)

    def format(self, value, format_spec):
        """As for :class:`ArrayLayout`."""
        value = Value.cast(value)
        if isinstance(value, Signal):
            value.attrs["fields"] = self.bits
        return Format("{}", value)


def _field(name, field):
    """A field of a struct: its name, its bits, and what stands in them."""
    high, low = field.offset + Shape.cast(field.shape).width - 1, field.offset
    inside = getattr(field.shape, "bits", "") if getattr(field.shape, "length", 2) > 1 else ""
    inside = f" {{{inside}}}" if isinstance(field.shape, StructLayout) else f" ({inside})" if inside else ""
    return f"{name} {high}:{low}{inside}" if high > low else f"{name} {high}{inside}"
