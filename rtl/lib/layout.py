"""Packed layouts that reach Verilog as one vector, without a wire for every field."""

from amaranth import Value, unsigned
from amaranth.hdl import Format
from amaranth.lib import data


def index(count):
    """Shape of a number below ``count``: at least one bit, since Verilog has no vector of none."""
    return unsigned(max(1, (count - 1).bit_length()))


class ArrayLayout(data.ArrayLayout):
    """An array that is emitted as one vector."""

    def format(self, value, format_spec):
        """Show the vector as one number: thousands of named fields would be most of the text."""
        return Format("{}", Value.cast(value))


class StructLayout(data.StructLayout):
    """A struct that is emitted as one vector."""

    def format(self, value, format_spec):
        """As for :class:`ArrayLayout`."""
        return Format("{}", Value.cast(value))
