"""The register map holds together, and the page has it."""

from dataclasses import replace
from pathlib import Path

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.registers import (
    BY_NAME,
    CONTEXT,
    IDENTITY,
    REGISTERS,
    SPAN,
    WORD,
    Access,
    Cause,
    described,
    parameters,
    registers,
    table,
)
from hbfp.system import Accelerator, Share

PAGE = (Path(__file__).parents[3] / "docs" / "design" / "11-accelerator.md").read_text()


@pytest.mark.parametrize("contexts", [1, 2])
def test_addresses_ascend_and_names_differ(contexts):
    found = registers(contexts)
    addresses = [register.address for register in found]
    assert addresses == sorted(set(addresses)) and all(address % 4 == 0 for address in addresses)
    assert addresses[-1] < contexts * SPAN and len({register.name for register in found}) == len(found)
    assert described(contexts).keys() == {register.name for register in found} <= BY_NAME.keys()


def test_a_context_has_registers_of_its_own():
    """Those of context 1 behind those of context 0; what they have in common is there once."""
    found = registers(2, True)
    first, second = ([each for each in found if each.address // SPAN == context] for context in range(2))
    own = [each for each in REGISTERS if not each.dispatched]
    assert first == own and len(second) == sum(each.address >= CONTEXT for each in own)
    for each in second:
        own = BY_NAME[each.name.removesuffix("_1")]
        assert each == replace(own, name=f"{own.name}_1", address=own.address + SPAN)
    assert {each.name for each in first if each not in registers(1, True)} == {"yielding", "share_first", "share_size"}
    with_dispatcher = registers(2, True, True)
    assert with_dispatcher[:len(found)] == found
    assert [each.address for each in with_dispatcher[len(found):]] == list(range(0x200, 0x200 + 4 * 19, 4))
    with_ring = registers(2, True, True, True)
    assert with_ring[:len(with_dispatcher)] == with_dispatcher
    assert [each.address for each in with_ring[len(with_dispatcher):]] == list(range(0x24C, 0x24C + 4 * 7, 4))
    assert BY_NAME["share_size"].reset == Share().registers()["share_size"] == 0x10101010


def test_seed_is_there_for_stochastic_rounding():
    for contexts in (1, 2):
        more = {each.name for each in registers(contexts, True)} - {each.name for each in registers(contexts)}
        assert more == {"seed", "seed_1"} if contexts > 1 else {"seed"}
        assert described(contexts, True).keys() - described(contexts).keys() == more


def test_fields_fit_and_do_not_overlap():
    for register in REGISTERS:
        taken = [bit for each in register.fields for bit in range(each.low, each.low + each.width)]
        assert len(taken) == len(set(taken)) and max(taken, default=0) < WORD, register.name


def test_page_has_the_map():
    assert table() in PAGE


def test_page_has_the_causes():
    """By number, in order."""
    line, = (line for line in PAGE.splitlines() if line.startswith("Causes:"))
    assert [int(each.split()[0]) for each in line.removeprefix("Causes: ").split(", ")] == list(Cause)


def test_parameters_say_what_the_machine_is():
    found = parameters(Accelerator(core=Design(rows=16), v_words=128))
    assert found == {"id": IDENTITY, "version": 3, "rows": 16, "mantissa": 8, "exponent": 10, "block": 32,
                     "block_rows": 1, "x_words": 8192, "w_words": 4096, "v_words": 128, "p_words": 512,
                     "row_words": 32, "vector_rows": 8, "contexts": 1, "vector_lanes": 0x01FF1010}
    assert parameters(Accelerator(functions=("exp", "recip")))["vector_lanes"] == 0x00052020
    sparse = Accelerator(core=Design(rows=16, sparse=(2, 4), format=HBFPFormat(block=(1, 32))))
    assert parameters(sparse)["mantissa"] == 0x00420008
    assert found.keys() == {each.name for each in REGISTERS if each.address < CONTEXT and each.access is Access.READ}
    assert IDENTITY == 0x50464248 and BY_NAME["id"].text == "0x50464248"
