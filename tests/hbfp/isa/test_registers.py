"""The register map holds together, and the page has it."""

from pathlib import Path

from hbfp.design import Design
from hbfp.isa.registers import BY_NAME, IDENTITY, REGISTERS, SPAN, WORD, Cause, parameters, table
from hbfp.system import Accelerator

PAGE = (Path(__file__).parents[3] / "docs" / "design" / "11-accelerator.md").read_text()


def test_addresses_ascend_and_names_differ():
    addresses = [register.address for register in REGISTERS]
    assert addresses == sorted(set(addresses)) and all(address % 4 == 0 for address in addresses)
    assert addresses[-1] < SPAN and len(BY_NAME) == len(REGISTERS)


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
    assert found == {"id": IDENTITY, "version": 1, "rows": 16, "mantissa": 8, "exponent": 10, "block": 32,
                     "block_rows": 1, "x_words": 8192, "w_words": 4096, "v_words": 128, "p_words": 512,
                     "row_words": 32, "vector_rows": 8}
    assert found.keys() == {register.name for register in REGISTERS if register.address < 0x40}
    assert IDENTITY == 0x50464248 and BY_NAME["id"].text == "0x50464248"
