"""Times of instructions from recorded events, and what loads and stores move."""

import re

import numpy as np
import pytest

from golden.perf.accelerator.times import TimesError, from_events, layers_of, moved
from hbfp.program import Program

from .example import ACCELERATOR, PROGRAM, TIMES, events

EVENT = np.dtype([("cycle", "<u8"), ("started", "<u4"), ("completed", "<u4"), ("waiting", "<u4"), ("running", "<u4"),
                  ("reads", "<u4"), ("writes", "<u4")], align=True)


@pytest.mark.parametrize("begin", [0, 12345])
def test_times_from_events(begin):
    assert from_events(PROGRAM, events(EVENT, begin)) == TIMES


def test_times_differ():
    recorded = events(EVENT, 0)
    recorded["cycle"][recorded["started"] == 16] -= 1    # the multiply
    assert from_events(PROGRAM, recorded) != TIMES


@pytest.mark.parametrize("name", ["started", "completed"])
def test_what_is_missing_is_an_error(name):
    recorded = events(EVENT, 0)
    recorded[name][recorded[name] == 2] = 0
    message = f"STORE must have {name} 2 instructions, not {(recorded[name] & 2 != 0).sum()}"
    with pytest.raises(TimesError, match=f"^{re.escape(message)}$"):
        from_events(PROGRAM, recorded)


def test_bytes_that_are_moved():
    """Two beats; two records of 2 beats of mantissas and one of exponents; five runs of three numbers."""
    assert ACCELERATOR.beat == 32 and ACCELERATOR.record_beats == 3
    assert [moved(each, ACCELERATOR) for each in PROGRAM.instructions] == [64, 192, 0, 0, 60, 0]


def test_a_program_without_layers_is_one():
    plain = Program(accelerator=ACCELERATOR, limit=0, instructions=PROGRAM.instructions)
    assert layers_of(PROGRAM) == [("one", 0, 3, 640), ("two", 3, 6, 0)]
    assert layers_of(plain) == [("program", 0, 6, 0)]


@pytest.mark.parametrize("runs", [0, 2])
def test_a_program_runs_once(runs):
    recorded = events(EVENT, 0)
    recorded["running"] = 0 if not runs else recorded["cycle"] % 2 == 0
    recorded["running"][2:] = 0
    recorded["running"][-2] = runs > 0
    recorded["running"][-1] = 0
    with pytest.raises(TimesError, match=f"^A program must run once while events are kept, not {runs} times$"):
        from_events(PROGRAM, recorded)
