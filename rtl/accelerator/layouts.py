"""Layouts of instructions and of memory words, from the instruction set and the sizes of an accelerator."""

from amaranth import Shape

from hbfp.isa.instructions import FIELDS, HEADER

from ..lib.layout import ArrayLayout, StructLayout
from ..number.streams import activations_layout, exponent_bits, scale_layout

#: Bits of an address of a memory.
ADDRESS_BITS = 18


def fields_layout(fields):
    """A struct of an instruction's fields, the first lowest."""
    return StructLayout({field.name: Shape(field.width, field.signed) for field in fields})


def header_layout():
    """Opcode and waits, which every instruction begins with."""
    return fields_layout(HEADER)


def instruction_layout(opcode):
    """The fields of an opcode, its header left out: what its unit takes."""
    return fields_layout(FIELDS[opcode])


def v_layout(system):
    """A word of V: the bits of one FP32 number for each lane."""
    return ArrayLayout(32, system.lanes)


def x_layout(system):
    """A word of X: a row as the core takes it."""
    return activations_layout(system.core)


def w_layout(system):
    """What is written into W at once: ``packed`` rows of mantissas, the row of the lowest address first."""
    row = ArrayLayout(Shape(system.core.format.mantissa, signed=True), system.core.cols)
    return ArrayLayout(row, system.packed)


def w_scales_layout(system):
    """Beside W, for each segment of rows: an exponent and an invalid flag for each column."""
    return scale_layout(exponent_bits(system.core), system.core.cols)


def p_layout(system):
    """What is written into P at once: as many instructions of the vector unit as a beat has."""
    return ArrayLayout(64, system.lanes // 2)
