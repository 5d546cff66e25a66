"""Words of instructions: there and back, what is reserved, what does not fit."""

import random
import re

import pytest

from hbfp.isa.instructions import (
    COUNT_BITS,
    FIELDS,
    HEADER,
    WORD,
    IllegalInstruction,
    Instruction,
    Opcode,
    Unit,
    Wait,
    decode,
    width,
)


def drawn(opcode, pick):
    """An instruction with every field at the least or the greatest value that it holds, or one between."""
    values = {field.name: pick.choice((*field.range, pick.randint(*field.range))) for field in FIELDS[opcode]}
    if opcode == Opcode.NOP:
        values["unit"] = pick.randint(1, 7)
    waits = tuple(Wait(pick.choice(list(Unit)), pick.choice((0, 1, 2 ** COUNT_BITS - 1)))
                  for _ in range(pick.randint(0, 3)))
    return Instruction(opcode, values, waits)


@pytest.mark.parametrize("opcode", Opcode)
def test_words_and_back(opcode):
    pick = random.Random(opcode)
    for _ in range(50):
        instruction = drawn(opcode, pick)
        word = instruction.encode()
        assert 0 <= word < 1 << WORD and decode(word) == instruction


def test_fields_lie_where_the_page_says():
    """The opcode lowest, then three waits, then the opcode's own fields."""
    word = Instruction(Opcode.STORE, {"elements": 1, "offset": 0xDEADBEEF, "run": 127, "dram0": -1},
                       (Wait(Unit.DRAIN, 5), Wait(Unit.VECTOR, 9))).encode()
    assert word & 15 == 2 and word >> 4 & 7 == 6 and word >> 7 & 0xFFFFFF == 5 and word >> 31 & 7 == 7
    assert width(HEADER) == 85 and word >> 85 & 1 == 1 and word >> 86 & 0xFFFFFFFF == 0xDEADBEEF
    assert word >> 134 & 0xFFFFFFFF == 0xFFFFFFFF    # dram0, behind 16 bits of count0
    assert word >> 85 + width(FIELDS[Opcode.STORE]) == 0


@pytest.mark.parametrize("word, line", [
    (0, "Opcode must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, not 0"),
    (14, "Opcode must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, not 14"),
    (15 | 1 << 85, "HALT must have no bit set above bit 84"), (15 | 1 << 511, "HALT must have no bit set above bit 84"),
    (8, "NOP unit must be 1 to 7, not 0"),
    (15 | 1 << 7, "Wait 0 must have a count of 0 without a unit, not 1"),
    (15 | 1 << 61, "Wait 2 must have a count of 0 without a unit, not 1")])
def test_words_that_are_none(word, line):
    with pytest.raises(IllegalInstruction, match=f"^{re.escape(line)}$"):
        decode(word)


@pytest.mark.parametrize("make, line", [
    (lambda: Instruction(Opcode.WEIGHTS, {"tile": 1}), "WEIGHTS must have fields base, tiles, repeats, not 'tile'"),
    (lambda: Instruction(Opcode.WEIGHTS, {"tiles": 65536}), "WEIGHTS tiles must be 0 to 65535, not 65536"),
    (lambda: Instruction(Opcode.MULTIPLY, {"x": -4097}), "MULTIPLY x must be -4096 to 4095, not -4097"),
    (lambda: Instruction(Opcode.HALT, {}, (Wait(1, 1),) * 4), "An instruction must have at most 3 waits, not 4"),
    (lambda: Instruction(Opcode.HALT, {}, (Wait(1, 1 << 24),)), "A wait's count must be 0 to 16777215, not 16777216")])
def test_values_that_do_not_fit(make, line):
    with pytest.raises(IllegalInstruction, match=f"^{re.escape(line)}$"):
        make()


def test_units():
    assert Instruction(Opcode.DRAIN, {}).unit == Unit.DRAIN and Instruction(Opcode.HALT, {}).unit is None
    assert Instruction(Opcode.NOP, {"unit": 3}).unit == Unit.CONVERT
    assert Instruction(Opcode.DRAIN, {"base": 3})["base"] == 3 and Instruction(Opcode.DRAIN, {})["base"] == 0


@pytest.mark.parametrize("given, line", [
    ((Opcode.LOAD, {"count0": 1.5}), "LOAD count0 must be a whole number, not 1.5"),
    ((1, {}), "Opcode must be of type Opcode, not int"),
    ((Opcode.LOAD, [1]), "Values must be of type Mapping, not list"),
    ((Opcode.LOAD, {}, [Wait(Unit.LOAD, 1)]), "Waits must be of type tuple, not list"),
    ((Opcode.LOAD, {}, (1,)), "A wait must be of type Wait, not int"),
    ((Opcode.LOAD, {}, (Wait(Unit.LOAD, 0.5),)), "A wait's count must be of type Integral, not float")])
def test_other_types(given, line):
    with pytest.raises(TypeError, match=f"^{re.escape(line)}$"):
        Instruction(*given)
