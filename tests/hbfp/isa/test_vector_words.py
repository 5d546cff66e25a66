"""Words that a program's loads bring into memory P."""

from hbfp.isa.instructions import Instruction, Memory, Opcode
from hbfp.isa.vector_words import loaded, loads
from hbfp.program import Program, Region
from hbfp.system import Accelerator

BEAT = Accelerator().beat
SHARE = BEAT // 8


def test_loops_regions_and_what_is_not_given():
    """Two lines of two beats: the second line's second beat is not given, its first ends with the region."""
    words = list(range(1, 2 * SHARE + 4))
    load = Instruction(Opcode.LOAD, {"memory": Memory.P, "offset": BEAT, "count0": 2, "count1": 2, "count2": 1,
                                     "dram1": 2 * BEAT, "buffer1": 5, "base": 3})
    program = Program(accelerator=Accelerator(), instructions=(load,), limit=8 * BEAT,
                      memory=(Region(0, b"\xff" * BEAT), Region(BEAT, b"".join(
                          word.to_bytes(8, "little") for word in words))))
    assert loads(load) and not loads(Instruction(Opcode.LOAD, {"memory": Memory.V}))
    assert not loads(Instruction(Opcode.HALT, {}))
    assert list(loaded(program, load)) == [
        (3 * SHARE, words[:SHARE]), (4 * SHARE, words[SHARE:2 * SHARE]),
        (8 * SHARE, [*words[2 * SHARE:], *[0] * (SHARE - 3)]), (9 * SHARE, None)]
