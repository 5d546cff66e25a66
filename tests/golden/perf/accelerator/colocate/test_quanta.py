"""Quanta: as long as asked at most, by the cycle model, and the same bits."""

import numpy as np
import pytest

from golden.lower.errors import LoweringError
from golden.perf.accelerator.colocate.quanta import quanta, yielding
from golden.perf.accelerator.model import times
from hbfp.isa.instructions import Opcode
from tests.cases import sweep
from tests.golden.lower.test_yields import SYSTEM, ran, step

from .latencies import LATENCY

MEMORY = 32, SYSTEM.beat


@pytest.mark.parametrize("most", sweep(3, [1100, 2000, 1 << 30]))
def test_no_quantum_is_longer(most):
    program = step()
    made, found = yielding(program, most, LATENCY, *MEMORY)
    lengths = quanta(made.program, found)
    assert lengths.max() <= most and lengths.sum() == found.cycles
    assert found == times(made.program, LATENCY, *MEMORY)
    count = sum(each.opcode == Opcode.YIELD for each in made.program.instructions)
    assert len(lengths) == count + 1 and (count > 0) == (most < times(program, LATENCY, *MEMORY).cycles)
    np.testing.assert_array_equal(ran(made.program), ran(program))


def test_what_must_stay_together_is_named():
    with pytest.raises(LoweringError, match=r"^Layer .* has [\d,]+ cycles between two places where it may yield, which "
                       "is more than 90; a longer quantum would do$"):
        yielding(step(), 90, LATENCY, *MEMORY)
