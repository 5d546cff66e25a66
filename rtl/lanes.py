"""Shapes that two or more components share."""

from amaranth import signed, unsigned

from .layout import ArrayLayout, StructLayout


def lane_shape(design):
    """One operand element: a signed mantissa, or the bits of a float."""
    return signed(design.lane_width) if design.integer else unsigned(design.lane_width)


def psum_shape(design, terms):
    """A partial sum of ``terms`` products: an exact integer, or the bits of an FP32."""
    width = design.psum_width(terms)
    return signed(width) if design.integer else unsigned(width)


def exponent_shape(design):
    """One shared exponent."""
    return signed(design.format.exponent)


def scale_layout(design, count):
    """Exponents and invalid flags of ``count`` blocks; nothing for numbers without shared exponents."""
    if not design.blocked:
        return StructLayout({})
    return StructLayout({"exponent": ArrayLayout(exponent_shape(design), count),
                         "invalid": ArrayLayout(unsigned(1), count)})


def operand_layout(design, count, scales):
    """A row of ``count`` mantissas with the ``scales`` exponents that belong to it."""
    return StructLayout({"mantissa": ArrayLayout(lane_shape(design), count), **scale_layout(design, scales).members})


def result_layout(design):
    """One beat of results: an element per column, an integer or the bits of an FP32."""
    element = (signed if design.arithmetic == "int" else unsigned)(design.result_width)
    return StructLayout({"value": ArrayLayout(element, design.cols), "last": unsigned(1)})
