"""Banks of memories of one port: a program makes exactly the accesses that were followed, and waits where they meet.

That each is of the right bank, ``tests/cosim/accelerator`` holds to the Verilog's cycles.
"""

from dataclasses import replace

import numpy as np
import pytest

from golden.machine.random_programs import random_program
from golden.perf.accelerator import banks, machine, model, programs
from golden.perf.accelerator.steps import run
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator

SYSTEM = Accelerator(core=Design(rows=8, cols=8, depth=32, format=HBFPFormat(mantissa=8, block=(1, 8))), x_words=128,
                     w_words=128, v_words=256, p_words=64, row_words=4, vector_rows=4, memory_banks=4)
#: Of the core of that size, as its manifest has it.
LATENCY = {"array": 11, "accumulate": 3, "release": 9, "interval": 8, "row": 1, "drain": 4, "apart": 4}


@pytest.mark.parametrize("seed", range(4))
def test_every_access_is_made_once(seed):
    program = random_program(SYSTEM, seed)
    joined, contexts = model._joined([program], SYSTEM)
    contexts["rung"] = 0
    state = machine.fresh(SYSTEM, LATENCY, 32, 32, False)
    assert run(state, contexts, joined, 1 << 20) < 1 << 20
    followed, before = banks.of(program, *programs.words(program))
    assert (before[-1] == state["banks"]["done"][0]).all() and not before[0].any()
    assert list(state["banks"]["done"][0]) == [len(stream) - 2 for stream in followed]
    assert all(set(stream.tolist()) <= {*range(4), banks.OUTSIDE} for stream in followed)


def test_fewer_banks_take_no_less():
    """Two ports are the least; what is read and written in one cycle is more often in one of fewer banks."""
    found = []
    for count in (0, 4, 1):
        system = replace(SYSTEM, memory_banks=count)
        found.append(sum(model.times(replace(random_program(SYSTEM, seed), accelerator=system), LATENCY, 8, 32).cycles
                         for seed in range(3)))
    assert found == sorted(found) and len(set(found)) > 2


def test_memories_of_two_ports_follow_nothing():
    program = random_program(replace(SYSTEM, memory_banks=0), 1)
    streams, first = banks.joined([banks.of(program, *programs.words(program))[0]] * 2)
    assert not streams.any() and np.array_equal(first.ravel(), np.arange(0, 20, 2))
