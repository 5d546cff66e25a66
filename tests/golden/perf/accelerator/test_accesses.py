"""Accesses that are counted are those that the golden machine makes, on random programs."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from golden.machine.machine import Machine
from golden.machine.memories import Memory as MachineMemory
from golden.machine.random_programs import random_program
from golden.perf.accelerator.accesses import by_layer, row_bytes
from golden.perf.accelerator.times import moved
from golden.vector.programs import length, softmax
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Instruction, Memory, Opcode
from hbfp.program import Layer, Program, Region
from hbfp.system import Accelerator
from tests.cases import sweep

CORE = (Opcode.WEIGHTS, Opcode.MULTIPLY, Opcode.DRAIN)
SMALL = {"x_words": 64, "w_words": 128, "v_words": 256, "p_words": 64, "row_words": 4, "vector_rows": 4}


def accelerator(block):
    """A small one."""
    return Accelerator(core=Design(rows=8, cols=8, depth=32, format=HBFPFormat(mantissa=8, block=block)), **SMALL)


def counting(method, seen):
    """A method of a memory that counts its addresses, too."""
    def counted(memory, addresses, *rest):
        seen[memory.name] += np.asarray(addresses).size
        return method(memory, addresses, *rest)
    return counted


@pytest.mark.parametrize(["block"], sweep(2, [((1, 8),), ((1, 4),), ((1, 16),), ((8, 8),)]))
def test_random_programs(block, monkeypatch):
    """Every instruction as a layer by itself; what the machine does in another way is put right here."""
    system = accelerator(block)
    program = random_program(system, 3, 60)
    counted, size = by_layer(replace(program, layers=tuple(
        Layer(str(number), number, number + 1) for number in range(len(program.instructions))))), row_bytes(system)
    seen = Counter()
    for name in ("reads", "writes", "write_parts"):
        monkeypatch.setattr(MachineMemory, name, counting(getattr(MachineMemory, name), seen))
    machine = Machine(program)
    done, core = Counter(), Counter()
    for number, (instruction, found) in enumerate(zip(program.instructions, counted, strict=True)):
        seen.clear()
        machine.step(number, instruction)
        opcode, words = instruction.opcode, dict(seen)
        done[opcode] += 1
        assert found["DRAM"] == 64 + moved(instruction, system)
        if opcode == Opcode.CONVERT and (block[0] > 1 or block[1] > 8 or instruction["columns"]):
            words["V"] *= 2    # once to measure, once to convert
        made = Counter({"V": words.get("V", 0) * system.beat, "X": words.get("X", 0) * size["X"],
                        "W": words.get("W", 0) * (size["W"] + size["scales"] / system.core.height)})
        if opcode in CORE:    # a command is computed with the last of its instructions
            for name in ("X", "W"):    # the machine reads once what is sent to many
                made[name] *= max(instruction["columns"] if opcode == Opcode.MULTIPLY else instruction["repeats"], 1)
            for name in made:
                core[name] += made[name] - found[name]
        elif opcode != Opcode.VECTOR and not instruction["elements"]:    # elements count numbers, not words
            assert [found[name] for name in made] == pytest.approx(list(made.values())), (number, opcode)
    assert list(core.values()) == pytest.approx([0, 0, 0], abs=1e-6)
    assert min(done[opcode] for opcode in Opcode if opcode < Opcode.NOP) > 0


def test_vector_and_array():
    """Two passes over 20 numbers, three words of 8 lanes; a softmax's scalar; rows of a product with zeros around."""
    system = accelerator((1, 8))
    words = [each.encode() for each in (length(20), *softmax(), length(8))]
    data = b"".join(word.to_bytes(8, "little") for word in words)
    program = Program(accelerator=system, limit=4096, memory=(Region(0, data),), instructions=(
        Instruction(Opcode.LOAD, {"memory": Memory.P, "count0": 2, "count1": 1, "count2": 1}),
        Instruction(Opcode.VECTOR, {"before": 1, "body": 4, "count0": 5, "count1": 2}),
        Instruction(Opcode.VECTOR, {"program": 5, "before": 1, "body": 1, "count0": 1, "count1": 1}),
        Instruction(Opcode.VECTOR, {"program": 1, "body": 1, "count0": 1, "count1": 1}),
        Instruction(Opcode.MULTIPLY, {"first": 1, "last": 1, "rows0": 3, "rows1": 2, "passes0": 2, "passes1": 3,
                                      "passes2": 1, "columns": 2, "bounded": 1, "x": -1, "x_row": 1, "x_pass": 1,
                                      "width": 3, "y_row": 1, "height": 1}),
        Instruction(Opcode.HALT, {})), layers=[Layer(str(number), number, number + 1) for number in range(5)])
    load, first, second, third, product = by_layer(program)
    assert load == {"DRAM": 64 + 2 * 32, "P": 2 * 32}
    assert first == {"DRAM": 64, "P": 8 * (1 + 4 * 10), "vector": 10 * (3 * 24 + 1), "V": 10 * 2 * 3 * 32}
    few = by_layer(replace(program, accelerator=replace(system, vector_lanes=4)))
    assert few == [load, first | {"vector": 10 * (3 * 20 + 1)}, second, third, product]
    assert second["vector"] == 0 and third["vector"] == 8 and third["V"] == 32    # the length stays
    rows, inside = 6 * 6 * 2, (2 + 3 + 2) * 1 * 2 * 2    # x is -1 to 1, 0 to 2, 1 to 3 in the three passes; y is 0 or 1
    assert product["array"] == rows * 64 and product["sums"] == rows * 64
    assert product["X"] == inside * row_bytes(system)["X"] == inside * (8 + 11 / 8)
