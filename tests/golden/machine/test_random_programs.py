"""Random programs: legal, race-free, the same for the same seed, and of all opcodes.

Covers: golden/machine/random_instructions.py, golden/machine/random_vectors.py, golden/machine/waits.py.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.golden.machine.errors import MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.golden.machine.random_programs import random_program
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.program import Program
from hbfp.system import Accelerator
from tests.cases import sweep
from tests.golden.machine.plain import Plain

DESIGNS = [(8, (1, 8), "fp32", 4), (4, (1, 16), "aligned", 2), (4, (8, 8), "fp32", 3), (12, (16, 16), "fp32", 64)]

#: With wide mantissas of 6, 7 and 9 bits, the last two of them twice the narrow ones' but a bit.
WIDE = [(4, (1, 8), "fp32", 4, 8, "rne", 6), (4, (16, 16), "aligned", 2, 8, "rne", 7),
        (5, (8, 8), "fp32", 3, 4, "stochastic", 9)]


#: With sparse weights: 2 of 4 whose blocks are a pass or more, 1 of 4, and 4 of 8 in tiles.
SPARSE = [(8, (1, 16), "fp32", 4, 8, "rne", 0, (2, 4)), (8, (1, 64), "aligned", 3, 8, "stochastic", 0, (2, 4)),
          (4, (1, 32), "fp32", 4, 8, "rne", 0, (1, 4)), (5, (16, 16), "fp32", 2, 4, "rne", 0, (4, 8))]
#: With both.
SPARSE_WIDE = [(4, (1, 16), "fp32", 4, 8, "rne", 6, (2, 4)), (5, (32, 32), "aligned", 3, 8, "stochastic", 9, (1, 4))]
#: With more columns than rows, and more rows than columns; blocks below, at and above the lesser and the greater.
OBLONG = [(*design, *sides) for design, *sides in (
    ((8, (1, 4), "fp32", 4, 0, "rne", 0, (1, 1)), 4, 8), ((8, (1, 8), "aligned", 2, 0, "rne", 0, (1, 1)), 4, 16),
    ((8, (16, 16), "fp32", 3, 0, "rne", 0, (1, 1)), 8, 32),
    ((5, (1, 32), "fp32", 3, 4, "stochastic", 9, (1, 1)), 8, 16),
    ((8, (1, 8), "fp32", 4, 0, "rne", 0, (1, 1)), 8, 4), ((8, (4, 4), "aligned", 2, 0, "rne", 0, (1, 1)), 16, 8),
    ((8, (8, 8), "fp32", 3, 0, "rne", 0, (1, 1)), 16, 4),
    ((5, (1, 32), "fp32", 3, 4, "stochastic", 9, (1, 1)), 16, 4),
    ((5, (1, 16), "fp32", 4, 0, "rne", 9, (2, 4)), 4, 16),
    ((8, (1, 32), "fp32", 2, 0, "rne", 0, (1, 4)), 4, 8), ((8, (16, 16), "aligned", 2, 0, "rne", 0, (1, 2)), 8, 16))]


def machine(mantissa, block, accumulate, queue, vector_lanes=8, rounding="rne", wide=0, sparse=(1, 1), rows=8, cols=8):
    fmt = HBFPFormat(mantissa=mantissa, block=block, rounding=rounding)
    return Accelerator(core=Design(rows=rows, cols=cols, format=fmt, accumulate=accumulate, depth=16, wide=wide,
                                   sparse=sparse),
                       v_words=64, x_words=64, w_words=64, p_words=64, row_words=3, vector_rows=4, queue=queue,
                       vector_lanes=vector_lanes)


@pytest.mark.parametrize(["design"], sweep(4, ((each,) for each in (*DESIGNS, *WIDE, *SPARSE, *SPARSE_WIDE, *OBLONG))))
def test_programs_are_legal_and_race_free(design):
    seen = Counter()
    for seed in range(6):
        program = random_program(machine(*design), seed, yields=0.1 * (seed % 2))
        Machine(program, races=True).run()
        seen.update(each.opcode for each in program.instructions)
    assert seen.keys() == set(Opcode)


@pytest.mark.parametrize("design", [DESIGNS[2], WIDE[2], SPARSE_WIDE[1]])
def test_cores_that_share_rows_are_one_to_programs(design):
    """A seed has the same program, and the machine the same words of DRAM, V, X and W."""
    wide = machine(*design)
    several = replace(wide, core=replace(wide.core, cols=2, group=None), arrays=4)
    for seed in range(2):
        one, other = (random_program(each, seed) for each in (wide, several))
        assert other == replace(one, accelerator=several)
        found = []
        for program in (one, other):
            device = Machine(program)
            device.run()
            memories = device.memories
            found.append([each.tobytes() for each in (memories.v_data, memories.x_data, memories.x_exponent,
                                                      memories.w_data, memories.w_exponent, memories.w_index)])
        assert found[0] == found[1]


def test_seed_decides():
    system = machine(*DESIGNS[0])
    one, again, other = (random_program(system, seed).to_bytes() for seed in (3, 3, 4))
    assert one == again != other
    assert Program.from_bytes(one).to_bytes() == one


def test_waits_are_needed():
    """Without all waits every program races; without the last one some do."""
    system, found = machine(*DESIGNS[0]), 0
    for seed in range(4):
        program = random_program(system, seed)
        bare = replace(program, instructions=[Instruction(each.opcode, each.values) for each in program.instructions])
        with pytest.raises(MachineError, match="no wait orders them$"):
            Machine(bare, races=True).run()
        last = max(number for number, each in enumerate(program.instructions) if each.waits)
        fewer = [Instruction(each.opcode, each.values) if number == last else each
                 for number, each in enumerate(program.instructions)]
        try:
            Machine(replace(program, instructions=fewer), races=True).run()
        except MachineError:
            found += 1
    assert found


def test_programs_give_numbers():
    """Not NaN alone, which would hide differences."""
    device = Machine(random_program(machine(*DESIGNS[0]), 1))
    device.run()
    finite = np.isfinite(device.memories.v_data.view(np.float32))
    assert finite.mean() > 0.5


@pytest.mark.parametrize(["design"], sweep(4, ((each,) for each in (
    *DESIGNS, (8, (1, 32), "fp32", 4), (8, (1, 16), "fp32", 4, 1), (6, (1, 4), "fp32", 4, 4),
    (8, (1, 8), "fp32", 4, 8, "stochastic"), (8, (1, 16), "fp32", 4, 8, "stochastic"),
    (4, (8, 8), "fp32", 4, 8, "stochastic"), *WIDE, *SPARSE, *SPARSE_WIDE, *OBLONG))))
def test_machine_equals_plain_loops(design):
    """Every word of V, X, W and DRAM."""
    for seed in range(100, 102):
        program = random_program(machine(*design), seed)
        device, plain = Machine(program), Plain(program)
        device.run()
        plain.run()
        memories = device.memories
        np.testing.assert_array_equal(memories.v_data, plain.v)
        for address, (mantissa, exponent, invalid) in plain.x.items():
            np.testing.assert_array_equal(memories.x_data[address], mantissa)
            np.testing.assert_array_equal(memories.x_exponent[address], exponent)
            np.testing.assert_array_equal(memories.x_invalid[address], invalid)
        np.testing.assert_array_equal(memories.w_data, [plain.w[row] for row in range(len(plain.w))])
        for segment, (exponent, invalid) in plain.scales.items():
            np.testing.assert_array_equal(memories.w_exponent[segment], exponent)
            np.testing.assert_array_equal(memories.w_invalid[segment], invalid)
        assert device.dram.data.tobytes() == bytes(plain.dram)
        assert len(plain.x) == len(memories.x_data) and len(plain.w) == len(memories.w_data)


def seen_in_dram(memories, memory, lost):
    """Places in a memory whose change the dump cannot hide.

    These are those of V, flags, and what belongs to blocks that are valid, not all zeros, and far from the ends of
    FP32; words of X are not, where the unit matrix takes their place.
    """
    values = getattr(memories, memory)
    if memory in ("v_data", "w_invalid"):
        return np.argwhere(np.full(values.shape, True))
    name = memory[0]
    data, exponent, invalid = (getattr(memories, f"{name}_{part}") for part in ("data", "exponent", "invalid"))
    axis = 0 if name == "w" else 1    # along a block
    blocks = data.reshape(*data.shape[:axis], exponent.shape[axis], -1, *data.shape[axis + 1:])
    good = ~invalid & (np.abs(exponent) < 60) & blocks.any(axis + 1)
    if name == "x":
        good[lost] = False
    return np.argwhere(good if memory.endswith("exponent") else good.repeat(blocks.shape[axis + 1], axis))


@pytest.mark.parametrize("seed", sweep(3, [0, 1, 5]))
@pytest.mark.parametrize("memory", ["v_data", "x_data", "x_exponent", "w_data", "w_exponent", "w_invalid"])
def test_every_word_can_be_seen_in_dram(memory, seed):
    """One word that is changed before the end of the random part changes DRAM."""
    program = random_program(machine(*DESIGNS[0]), seed)
    instructions = list(enumerate(program.instructions))
    end = next(number for number, each in instructions
               if each.opcode == Opcode.STORE and each["count0"] == 64)    # of all words of V
    unit = next(each for number, each in instructions if number > end and each.opcode == Opcode.CONVERT)
    lost = slice(unit["target"], unit["target"] + unit["rows"])
    pick = np.random.default_rng(seed)
    expected = Machine(program)
    expected.run()
    for _ in range(2):
        device = Machine(program)
        for number, instruction in instructions:
            if number == end:
                values = getattr(device.memories, memory)
                values[tuple(pick.choice(seen_in_dram(device.memories, memory, lost)))] ^= (
                    True if values.dtype == bool else 1)
            device.step(number, instruction)
        assert not np.array_equal(device.dram.data, expected.dram.data)
