"""Shapes that two or more components share."""

from amaranth import signed, unsigned

from .dot import biased_shape, code_width, correction_shape
from .layout import ArrayLayout, StructLayout


def lane_shape(design):
    """One operand element: a signed mantissa, or the bits of a float."""
    return signed(design.lane_width) if design.integer else unsigned(design.lane_width)


def act_shape(design):
    """An activation inside the array: its digits, or as it came."""
    return unsigned(code_width(design.lane_width)) if design.recoded else lane_shape(design)


def psum_shape(design, terms):
    """The sum of the first ``terms`` products of a segment: an integer, or the bits of an FP32.

    Of no products: with recoded activations the correction that a column starts from, else nothing (None).
    """
    if not terms:
        return correction_shape(design.lane_width, design.height) if design.recoded else None
    if design.recoded and terms < design.height:
        return biased_shape(design.lane_width, terms, design.height - terms)
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
