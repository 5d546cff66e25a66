"""Instructions as text, word for word."""

from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.isa.text import line, listing
from hbfp.program import Layer, Program
from hbfp.system import Accelerator

INSTRUCTIONS = (Instruction(Opcode.LOAD, {"count0": 3, "count1": 1, "count2": 1, "dram1": -128, "offset": 4096}),
                Instruction(Opcode.WEIGHTS, {"tiles": 2, "repeats": 1}, (Wait(Unit.LOAD, 1), Wait(Unit.VECTOR, 0))),
                Instruction(Opcode.YIELD, {}), Instruction(Opcode.HALT, {}))


def test_lines():
    assert [line(each) for each in INSTRUCTIONS] == [
        "LOAD offset=4096 count0=3 count1=1 dram1=-128 count2=1", "WEIGHTS tiles=2 repeats=1 after LOAD:1 VECTOR:0",
        "YIELD", "HALT"]


def test_listing_has_layers_and_numbers():
    instructions = (*INSTRUCTIONS[:2],) * 5 + INSTRUCTIONS[2:]
    text = listing(Program(accelerator=Accelerator(), instructions=instructions, limit=0,
                           layers=(Layer("first", 0, 2), Layer("second", 2, 11), Layer("view", 2, 2))))
    lines = text.splitlines()
    assert lines[0] == "first:" and lines[1].startswith(" 0  LOAD ") and lines[3:5] == ["second:", "view:"]
    assert lines[-1] == "11  HALT" and len(lines) == 15 and text.endswith("\n")
