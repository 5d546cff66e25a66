"""Layouts of the streams that carry operands and results, and of shared exponents."""

from amaranth import signed, unsigned

from ..lib.layout import ArrayLayout, StructLayout
from .kinds import accumulation_of, number_of


def exponent_bits(design):
    """Bits of a shared exponent; 0 for numbers without."""
    return design.format.exponent if design.blocked else 0


def scale_layout(exponent, count):
    """Exponents of ``exponent`` bits and invalid flags of ``count`` blocks; nothing for 0 bits."""
    if not exponent:
        return StructLayout({})
    return StructLayout({"exponent": ArrayLayout(signed(exponent), count),
                         "invalid": ArrayLayout(unsigned(1), count)})


def block_scale_layout(exponent):
    """Exponent of ``exponent`` bits and invalid flag of one block."""
    return StructLayout({"exponent": signed(exponent), "invalid": 1})


def row_layout(element, count, exponent, scales):
    """A row of ``count`` elements with the ``scales`` exponents that belong to it."""
    return StructLayout({"mantissa": ArrayLayout(element, count), **scale_layout(exponent, scales).members})


def operand_layout(design, count, scales):
    """A row of ``count`` operands of a design, as it enters the core."""
    return row_layout(number_of(design).element, count, exponent_bits(design), scales)


def activations_layout(design):
    """A row of X: as many terms as the rows of elements reach."""
    return operand_layout(design, design.reach(design.rows), design.segments)


def weights_layout(design):
    """A row of weights, and the index of each where commands may have sparse ones."""
    row = operand_layout(design, design.cols, design.cols)
    if not design.takes_sparse:
        return row
    return StructLayout({**row.members, "index": ArrayLayout(number_of(design).index, design.cols)})


def result_layout(design):
    """One beat of results: an element per column, an integer or the bits of an FP32."""
    return beat_of_results(design.cols, accumulation_of(design).result_shape)


def beat_of_results(cols, element):
    """One beat of results: ``cols`` elements of a shape."""
    return StructLayout({"value": ArrayLayout(element, cols), "last": unsigned(1)})
