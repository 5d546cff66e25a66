"""What the cycles of a step are for: every cycle counts once, and a product counts before what goes on beside it.

Covers: golden/perf/accelerator/shares.py.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from golden.perf.accelerator.shares import NOTHING, shares
from golden.perf.accelerator.times import Times, union
from hbfp.design import Design
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.program import Layer
from hbfp.system import Accelerator

MACHINE = Accelerator(core=Design(rows=8))
WORDS = {"count0": 3, "count1": 2, "count2": 1}


def program(*each):
    """(opcode, kind, begin, end) of each instruction."""
    opcodes, kinds, begins, ends = zip(*each, strict=True)
    instructions = [Instruction(opcode, WORDS if opcode in (Opcode.LOAD, Opcode.STORE) else {}) for opcode in opcodes]
    made = SimpleNamespace(accelerator=MACHINE, instructions=instructions, layers=[Layer("gw a", 0, 1, 64 * 5)])
    return made, kinds, Times(20, np.array(begins), np.array(ends), np.zeros(len(each), np.int64))


def test_a_cycle_counts_for_the_product_before_the_vector_unit_and_for_that_before_dram():
    found = shares(*program((Opcode.MULTIPLY, "gw matmul", 2, 8), (Opcode.VECTOR, "backward mul", 6, 11),
                            (Opcode.LOAD, "backward mul", 0, 12), (Opcode.CONVERT, "gx matmul", 11, 14),
                            (Opcode.VECTOR, "update", 13, 15), (Opcode.STORE, "update", 14, 18)))
    assert found["cycles"] == {"product gw": 6, "vector mul": 3, "DRAM backward": 2, "conversion gx": 2,
                               "DRAM update": 3, "vector update": 2, NOTHING: 2}
    assert found["groups"] == {"product": 6, "vector": 3, "update": 5, "conversion": 2, "DRAM": 2, "nothing": 2}
    assert sum(found["cycles"].values()) == 20
    assert list(found["cycles"].values()) == sorted(found["cycles"].values(), reverse=True)


def test_bytes_are_those_of_loads_and_stores_by_part():
    found = shares(*program((Opcode.LOAD, "backward mul", 0, 12), (Opcode.STORE, "backward sum", 0, 1),
                            (Opcode.STORE, "update", 14, 18), (Opcode.MULTIPLY, "gw", 1, 2)))
    assert found["bytes"] == {"backward": 2 * 6 * MACHINE.beat, "update": 6 * MACHINE.beat}


def test_a_products_utilisation_is_of_the_cycles_in_which_it_is_under_way():
    found = shares(*program((Opcode.MULTIPLY, "gw matmul", 0, 8), (Opcode.MULTIPLY, "gw matmul", 6, 10),
                            (Opcode.MULTIPLY, "gx matmul", 12, 13)))
    assert found["products"]["gw"] == {"macs": 320, "under_way": 10, "utilisation": 0.5}
    assert found["products"]["forward"]["under_way"] == 0 == found["products"]["forward"]["utilisation"]


@pytest.mark.parametrize("stretches, wanted", [
    ([], []), ([(1, 3)], [(1, 3)]), ([(1, 3), (3, 4)], [(1, 4)]), ([(4, 5), (1, 3)], [(1, 3), (4, 5)]),
    ([(1, 9), (2, 3), (8, 10)], [(1, 10)])])
def test_stretches_that_touch_are_one(stretches, wanted):
    begins, ends = (np.array([each[side] for each in stretches], np.int64) for side in (0, 1))
    assert [tuple(map(int, each)) for each in union(begins, ends).T] == wanted
