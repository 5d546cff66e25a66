"""The commands on program files: what they print, and one line for what cannot be run."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from hbfp.golden.__main__ import main
from hbfp.golden.spec.vector_text import parse
from hbfp.golden.vector.programs import activation, length, load, softmax
from hbfp.isa.instructions import Instruction, Memory, Opcode, Unit, Wait
from hbfp.program import Layer, Program, Region, Tensor
from hbfp.system import Accelerator

MOVE = {"count0": 2, "count1": 1, "count2": 1}
VALUES = np.arange(64, dtype=np.float32)
COPY = Program(
    accelerator=Accelerator(), limit=1024, memory=(Region(0, VALUES.tobytes()),),
    instructions=(Instruction(Opcode.LOAD, MOVE), Instruction(Opcode.STORE, MOVE | {"offset": 512}, (
        Wait(Unit.LOAD, 1),)), Instruction(Opcode.HALT, {})),
    tensors={"x": Tensor(0, (2, 32), role="input"), "y": Tensor(512, (1, 64), role="output")},
    layers=(Layer("copy", 0, 2),))
DIGEST = hashlib.sha256(VALUES.tobytes()).hexdigest()


@pytest.fixture
def saved(tmp_path):
    COPY.save(tmp_path / "copy.program")
    return str(tmp_path / "copy.program")


def test_program_says_what_it_holds(saved, capsys):
    assert main(["program", saved]) == 0
    assert capsys.readouterr().out == (
        f"made for   {' '.join(COPY.accelerator.words())}\n"
        "           3 instructions: 1 LOAD, 1 STORE, 1 HALT\n"
        "DRAM       1024 bytes, 256 of them given\n"
        "layer      copy: instructions 0 to 1, 0 MACs\n"
        "input      x: 2x32 at 0, word\n"
        "output     y: 1x64 at 512, word\n")


def test_disassembly(saved, capsys):
    assert main(["program", saved, "--disassemble"]) == 0
    assert capsys.readouterr().out == ("copy:\n0  LOAD count0=2 count1=1 count2=1\n"
                                       "1  STORE offset=512 count0=2 count1=1 count2=1 after LOAD:1\n2  HALT\n")


def test_disassembly_of_vector_programs(tmp_path, capsys):
    """Words of the vector unit stand below the LOAD that brings them, without what fills up the last beat."""
    words = [each.encode() for each in [load(6, 1.5), length(64), *3 * activation("relu"), *softmax()]]
    data = b"".join(word.to_bytes(8, "little") for word in words)
    program = replace(COPY, memory=(Region(0, data),), instructions=(Instruction(Opcode.LOAD, MOVE | {
        "memory": Memory.P, "base": 2}), Instruction(Opcode.HALT, {})), layers=())
    program.save(tmp_path / "vector.program")
    assert main(["program", str(tmp_path / "vector.program"), "--disassemble"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("0  LOAD memory=2 ") and lines[-1] == "1  HALT"
    assert lines[1:4] == ["     P 32: SET scalar6=0x3FC00000    # 1.5", "     P 33: LENGTH 64",
                          "     P 34 to 36: VECTOR a=stream b=1 c=-0 op=muladd post=relu target=stream"]
    assert [parse(text.partition(": ")[2]) for text in lines[1:-2]] == [*words[:2], *words[4:]]
    assert lines[-2] == "     P 48: not given"


def test_run(saved, tmp_path, capsys):
    assert main(["run", saved, "--races", "--json", str(tmp_path / "a.json")]) == 0
    assert capsys.readouterr().out == f"y: 1x64 float32, sha256 {DIGEST}\n"
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "instructions": 3, "outputs": {"y": {"shape": [1, 64], "sha256": DIGEST}}}


@pytest.mark.parametrize("number, instruction, options, line", [
    (1, Instruction(Opcode.STORE, MOVE | {"offset": 512}), ["--races"],
     "Instruction 1: V at 0 is read by it, and used by instruction 0 of LOAD: no wait orders them"),
    (0, Instruction(Opcode.LOAD, MOVE | {"count0": 0}), [],
     "stops with cause 1 (ILLEGAL). Instruction 0: LOAD count0 must be other than 0, not 0"),
    (2, Instruction(Opcode.NOP, {"unit": 1}), [],
     "stops with cause 7 (END). Instruction 3: a program must end with HALT")])
def test_programs_that_cannot_run(tmp_path, capsys, number, instruction, options, line):
    instructions = list(COPY.instructions)
    instructions[number] = instruction
    replace(COPY, instructions=instructions).save(tmp_path / "bad")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path / "bad"), *options])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"python -m golden: error: FILE {tmp_path / 'bad'}: {line}\n"


def test_file_that_is_none(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["program", str(tmp_path / "none")])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (f"python -m golden: error: FILE {tmp_path / 'none'}: cannot be read (No such "
                                       "file or directory)\n")
