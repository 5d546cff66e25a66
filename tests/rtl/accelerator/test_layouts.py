"""Layouts have the fields and widths of the instruction set, and memory words those of the system.

Covers: rtl/accelerator/signatures.py.
"""

import pytest
from amaranth import Value

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import FIELDS, Instruction, Opcode
from hbfp.system import Accelerator
from rtl.accelerator.layouts import header_layout, instruction_layout, p_layout, v_layout, w_layout, w_scales_layout
from rtl.accelerator.memories import WMemory
from rtl.accelerator.signatures import w_write


@pytest.mark.parametrize("opcode", Opcode)
def test_an_encoded_word_is_header_then_fields(opcode):
    """The value that a field is given stands where the layouts, one after the other, have it."""
    header, layout = header_layout(), instruction_layout(opcode)
    for field in FIELDS[opcode]:
        word = Instruction(opcode, {field.name: field.range[0] or field.range[1]}).encode() >> header.size
        entry = layout[field.name]
        value = field.range[0] or field.range[1]
        assert word == (value & (1 << field.width) - 1) << entry.offset
        assert (entry.shape.width, entry.shape.signed) == (field.width, field.signed)


@pytest.mark.parametrize("side, mantissa, packed", [(8, 4, 8), (16, 8, 4), (32, 6, 4), (8, 12, 2)])
def test_words_of_memories(side, mantissa, packed):
    system = Accelerator(core=Design(rows=side, cols=side, format=HBFPFormat(mantissa=mantissa, block=(1, side))))
    sizes = WMemory.Parameters.of(system)
    assert v_layout(sizes).size == p_layout(sizes).size == 8 * system.beat
    assert w_layout(sizes).size == packed * side * mantissa
    assert w_scales_layout(sizes).size == side * (system.core.format.exponent + 1)
    assert len(Value.cast(w_write(sizes).create().mask)) == packed
