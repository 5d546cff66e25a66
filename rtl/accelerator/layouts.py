"""Layouts of instructions and of memory words, from the instruction set and a part's parameters."""

from amaranth import Shape, signed, unsigned

from hbfp.isa.instructions import ARGUMENTS, EXTRAS, HEADER, fields_of
from hbfp.isa.registers import WORD

from ..lib.layout import ArrayLayout, StructLayout
from ..number.streams import row_layout, scale_layout

#: Bits of an address of a memory.
ADDRESS_BITS = 18


def fields_layout(fields):
    """A struct of an instruction's fields, the first lowest."""
    return StructLayout({field.name: Shape(field.width, field.signed) for field in fields})


def header_layout():
    """Opcode and waits, which every instruction begins with."""
    return fields_layout(HEADER)


def instruction_layout(opcode, extras=tuple(EXTRAS)):
    """The fields of an opcode, its header left out: what its unit takes, in an accelerator that has these extras."""
    return fields_layout(fields_of(opcode, extras))


def arguments_layout():
    """The registers that instructions read by number; element 0 belongs to number 1."""
    return ArrayLayout(WORD, ARGUMENTS)


def requests_layout(requests):
    """The places of a batch's requests, of their inputs or of their outputs; element 0 belongs to request 1."""
    return ArrayLayout(WORD, requests)


def v_layout(params):
    """A word of V: the bits of one FP32 number for each lane."""
    return ArrayLayout(32, params.lanes)


def x_layout(params, spread=1):
    """A row as the core takes it, ``spread`` times as long: a word of X, or the pieces of several."""
    rows = params.lanes // params.word_pieces * params.row_pieces * spread
    return row_layout(signed(params.mantissa), rows, params.exponent, params.segments)


def x_piece_layout(params):
    """What is at an address of X: the fewer of a word of V and a row of the core."""
    return row_layout(signed(params.mantissa), params.lanes // params.word_pieces, params.exponent,
                      max(1, params.segments // params.row_pieces))


def x_word_layout(params):
    """What is written into X at once, of a word of V: a piece, or several."""
    piece = x_piece_layout(params)
    return piece if params.word_pieces == 1 else ArrayLayout(piece, params.word_pieces)


def x_row_layout(params):
    """What a read of X gives: a word, or the ``spread`` words of a row of a sparse command, with the first's exponents.
    """
    return x_layout(params, params.spread)


def weights_layout(params):
    """A row of W as the core takes it."""
    row = row_layout(signed(params.mantissa), params.lanes, params.exponent, params.lanes)
    return StructLayout({**row.members, "index": w_index_layout(params)}) if params.index else row


def w_index_layout(params):
    """Beside a row of W: the place of each weight in its group."""
    return ArrayLayout(unsigned(params.index), params.lanes)


def w_row_layout(params):
    """A row of W: the mantissas."""
    return ArrayLayout(signed(params.mantissa), params.lanes)


def w_layout(params):
    """What is written into W at once: ``packed`` rows of mantissas, the row of the lowest address first."""
    return ArrayLayout(w_row_layout(params), params.packed)


def w_scales_layout(params):
    """Beside W, for each segment of rows: an exponent and an invalid flag for each column."""
    return scale_layout(params.exponent, params.lanes)


def p_layout(params):
    """What is written into P at once: as many instructions of the vector unit as a beat has."""
    return ArrayLayout(64, params.lanes // 2)
