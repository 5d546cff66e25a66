"""Program files: the way there and back, equal bytes, and what is refused."""

import io
import json
import re
import warnings
import zipfile
from dataclasses import replace

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.program import ENTRIES, Layer, Product, Program, ProgramError, Region, Tensor, load
from hbfp.system import Accelerator
from hbfp.values import OptionError

MACHINE = Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 16), mantissa=4), pipeline=0), v_words=256)
PROGRAM = Program(
    accelerator=MACHINE, limit=4096,
    instructions=(Instruction(Opcode.LOAD, {"offset": 64, "count0": 2, "count1": 1, "count2": 1, "buffer1": -3}),
                  Instruction(Opcode.NOP, {"unit": Unit.VECTOR}, (Wait(Unit.LOAD, 1),)),
                  Instruction(Opcode.HALT, {})),
    memory=(Region(0, b"abc"), Region(64, bytes(range(200)))),
    tensors={"x": Tensor(64, (2, 10), role="input"), "w": Tensor(1024, (17, 9), "records", "weight"),
             "slice": Tensor(2048, (3, 5), "dense", row=40)},
    layers=(Layer("first", 0, 2, 340, (Product(2, 10, 9), Product(4, 5, 4, 2))), Layer("end", 2, 3)),
    arguments=(7, 0xFFFFFFFF))


def test_file_and_back(tmp_path):
    PROGRAM.save(tmp_path / "a.program")
    found = load(tmp_path / "a.program", MACHINE)
    assert found.to_bytes() == PROGRAM.to_bytes() == (tmp_path / "a.program").read_bytes()
    assert (found.accelerator, found.limit, found.memory, found.tensors, found.layers, found.arguments) == (
        PROGRAM.accelerator, PROGRAM.limit, PROGRAM.memory, PROGRAM.tensors, PROGRAM.layers, PROGRAM.arguments)
    assert [each.encode() for each in found.instructions] == [each.encode() for each in PROGRAM.instructions]
    assert len(found.words()) == 3 * 64 and found.words()[0] == Opcode.LOAD


def test_files_that_do_not_know_products_and_arguments(tmp_path):
    data = PROGRAM.to_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        parts = {name: file.read(name) for name in ENTRIES}
    header = json.loads(parts["program.json"])
    for layer in header["layers"]:
        del layer["products"]
    del header["arguments"]
    with zipfile.ZipFile(tmp_path / "old.program", "w") as file:
        for name, part in parts.items():
            file.writestr(name, json.dumps(header) if name == "program.json" else part)
    found = load(tmp_path / "old.program")
    assert (found.layers, found.arguments) == ((Layer("first", 0, 2, 340), Layer("end", 2, 3)), ())


def test_offsets_count_from_arguments():
    """Modulo 2^32; one that the program does not come with is an error."""
    found = [PROGRAM.offset(Instruction(Opcode.STORE, {"offset": 9, "argument": number})) for number in range(3)]
    assert found == [9, 16, 8]
    with pytest.raises(ProgramError, match="^Argument 3 must have a value where an instruction reads it$"):
        PROGRAM.offset(Instruction(Opcode.LOAD, {"argument": 3}))


def test_other_instructions_in_their_places():
    halt = Instruction(Opcode.HALT, {})
    found = PROGRAM.rewritten({0: halt})
    assert found.instructions == (halt, *PROGRAM.instructions[1:]) and PROGRAM.instructions[0] != halt
    assert replace(found, instructions=PROGRAM.instructions) == PROGRAM == PROGRAM.rewritten({})


def test_multiply_adds_of_products():
    assert [each.macs for each in PROGRAM.layers[0].products] == [180, 160]


def test_bytes_of_tensors():
    """Rows are filled to words of 8; records of 16 terms are 2 segments of 8 rows, in 1 + 1 beats each."""
    assert PROGRAM.tensors["x"].bytes(MACHINE) == 2 * 64
    assert PROGRAM.tensors["slice"].bytes(MACHINE) == 2 * 40 + 20
    assert Tensor(0, (3, 5), "dense").bytes(MACHINE) == 60
    assert MACHINE.core.height == 8 and MACHINE.record_beats == 2
    assert PROGRAM.tensors["w"].bytes(MACHINE) == (4 * 2) * 2 * 32
    assert Tensor(0, (16,)).bytes(MACHINE) == 64 and Tensor(0, ()).bytes(MACHINE) == 32


@pytest.mark.parametrize("change, line", [
    ({"memory": (Region(0, b"abc"), Region(2, b"d"))}, "Region at 2 must lie behind the one before, which ends at 3"),
    ({"memory": (Region(4090, b"1234567"),)}, "Region at 4090 must end at the limit of 4096 or before it, not at 4097"),
    ({"arguments": (0,) * 9}, "Number of arguments must be 0 to 8, not 9"),
    ({"arguments": (0, -1)}, "Argument 2 must be 0 to 4294967295, not -1"),
    ({"limit": 4100}, "Limit must be a multiple of the beat of 32 bytes, not 4100"),
    ({"tensors": {"y": Tensor(4064, (9,))}}, "Tensor y must end at the limit of 4096 or before it, not at 4128"),
    ({"layers": (Layer("a", 1, 4),)}, "Layer a must be of the 3 instructions, not 1 to 4")])
def test_contradictions(change, line):
    with pytest.raises(ProgramError, match=f"^{re.escape(line)}$"):
        replace(PROGRAM, **change)


def test_what_just_fits():
    replace(PROGRAM, memory=(Region(0, b"abc"), Region(3, b"d"), Region(4089, b"1234567")), layers=(Layer("a", 3, 3),))


@pytest.mark.parametrize("words, line", [
    ({"layout": "wide"}, "Layout must be one of word, dense, records, not 'wide'"),
    ({"role": "guest"}, "Role must be one of input, output, weight, inner, not 'guest'")])
def test_tensors_that_are_none(words, line):
    with pytest.raises(ProgramError, match=f"^{line}$"):
        Tensor(0, (1,), **words)


def rewritten(**entries):
    """The program's file with other entries."""
    archive = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(PROGRAM.to_bytes())) as old, zipfile.ZipFile(archive, "w") as new:
        for name in ENTRIES:
            new.writestr(name, entries.get(name.partition(".")[0], old.read(name)))
    return archive.getvalue()


def packed(*entries, method=zipfile.ZIP_STORED):
    """An archive of (name, data)."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file, warnings.catch_warnings(action="ignore"):
        for name, data in entries:
            file.writestr(name, data)
    return archive.getvalue()


def changed(path, value):
    """The program's file with another value in its header; DELETED takes it away."""
    header = json.loads(HEADER)
    *outer, last = path
    place = header
    for name in outer:
        place = place[name]
    if value is DELETED:
        del place[last]
    else:
        place[last] = value
    return rewritten(program=json.dumps(header))


DELETED = object()
WHOLE = "must be 0 to 4294967295, not"
HEADER = zipfile.ZipFile(io.BytesIO(PROGRAM.to_bytes())).read("program.json")
ENTRY_LINE = "A program must be an archive of program.json, instructions.bin, memory.bin "


@pytest.mark.parametrize("data, line", [
    (b"no archive", ENTRY_LINE + "(File is not a zip file)"),
    (rewritten(program=b"{"),
     ENTRY_LINE + "(Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
    (rewritten(program=b"[]"), ENTRY_LINE + "(list indices must be integers or slices, not str)"),
    (rewritten(program=HEADER.replace(b'"version": 1', b'"version": 2')), "Version must be 1, not 2"),
    (rewritten(instructions=bytes(63)), "A program must have whole instructions and regions, not 63 and 203 bytes"),
    (rewritten(memory=bytes(202)), "A program must have whole instructions and regions, not 192 and 202 bytes"),
    (rewritten(instructions=bytes([14]) + bytes(63)),
     "Instructions must be legal: Opcode must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, not 14"),
    (PROGRAM.to_bytes()[200:], ENTRY_LINE + "(negative seek value -200)"),
    (packed(*[(name, b"") for name in (*ENTRIES, ENTRIES[1])]), ENTRY_LINE + (
        "(it holds program.json, instructions.bin, instructions.bin, memory.bin)")),
    (packed(("other", b"")), ENTRY_LINE + "(it holds other)"),
    (packed(), ENTRY_LINE + "(it holds nothing)"),
    (packed(*[(name, b"") for name in ENTRIES], method=zipfile.ZIP_DEFLATED), ENTRY_LINE + "(it is compressed)"),
    (rewritten(program=HEADER.replace(b'"limit": 4096', b'"limit": 4096, "limit": 64')),
     "A program must have limit once, not more often"),
    (changed(["version"], True), "Version must be 1, not True"),
    (changed(["tensors", "x", "row"], -1), f"Row {WHOLE} -1"),
    (changed(["tensors", "x", "row"], 32),
     "Row of tensor x must be 0, or the 64 bytes that it needs or more, not 32"),
    (changed(["tensors", "x", "address"], -32), f"Address {WHOLE} -32"),
    (changed(["tensors", "x", "shape"], [2, 1.5]), "Side of a shape must be 1 to 4294967295, not 1.5"),
    (changed(["tensors", "w", "shape"], [2, 3, 4]), "Shape of records must have 2 sides, not 3"),
    (changed(["tensors", "x", "shape"], "ab"), "Shape must be a list, not ab"),
    (changed(["layers", 0, "name"], 1.5), "Name of a layer must be text, not 1.5"),
    (changed(["layers", 0, "first"], 0.0), f"First of layer first {WHOLE} 0.0"),
    (changed(["layers", 0, "macs"], "many"), "Macs of layer first must be 0 to 18446744065119617025, not 'many'"),
    (changed(["layers", 0, "products", 0, "rows"], -2), "Rows of a product must be 1 to 4294967295, not -2"),
    (changed(["limit"], 4096.0), f"Limit {WHOLE} 4096.0"),
    (changed(["memory", 0], [-4, 3]), f"Address {WHOLE} -4"),
    (changed(["accelerator", "core", "format"], DELETED), "Design must have all of its fields, not lack format"),
    (changed(["accelerator", "queue"], DELETED), "Accelerator must have all of its fields, not lack queue"),
    (changed(["accelerator", "core", "colour"], 1), "Design must have no fields but its own, not colour"),
    (rewritten(program=HEADER.replace(b'"rows": 8', b'"rows": 9')),
     "Block 1,16 must divide or be divided by the 9 rows along K, or be ragged")])
def test_files_that_are_none(tmp_path, data, line):
    path = tmp_path / "bad"
    path.write_bytes(data)
    line = f"--program {path}: {line}"
    with pytest.raises(OptionError, match=f"^{re.escape(line)}$"):
        load(path)


def test_file_that_is_not_there(tmp_path):
    line = f"--file {tmp_path / 'none'}: cannot be read (No such file or directory)"
    with pytest.raises(OptionError, match=f"^{re.escape(line)}$"):
        load(tmp_path / "none", name="file")


def test_program_of_another_machine(tmp_path):
    PROGRAM.save(tmp_path / "a")
    other = Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 16))), v_words=512)
    line = (f"--program {tmp_path / 'a'}: The program was made for another accelerator: --mantissa 4 --v-words 256, "
            "not --mantissa 8 --v-words 512")
    with pytest.raises(OptionError, match=f"^{re.escape(line)}$"):
        load(tmp_path / "a", other)
