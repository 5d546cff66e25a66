"""Quanta: as long as asked at most, by the cycle model, and the same bits.

Covers: golden/perf/accelerator/colocate/cheapest.py.
"""

import numpy as np
import pytest

from golden.lower.errors import LoweringError
from golden.lower.yields import cut, places
from golden.perf.accelerator.colocate import quanta as module
from golden.perf.accelerator.colocate.cheapest import cheapest
from golden.perf.accelerator.colocate.quanta import quanta, sought, yielding
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


def test_short_programs_yield_where_it_costs_least(monkeypatch):
    """Against places as far apart as they may be, and against each place moved to its neighbours."""
    program, most = step(), 1100
    (_, before), least = vars(sought(program, most, LATENCY, *MEMORY)).values(), total(program, most)
    monkeypatch.setattr(module, "_STEPPED", 0)
    assert least < total(program, most) - 40
    allowed = np.flatnonzero(places(program))
    for number, place in enumerate(before):
        at = int(np.searchsorted(allowed, place))
        for other in allowed[at - 1:at + 2:2].tolist():
            moved = sorted({*before[:number], other, *before[number + 1:]} - {0})
            found = times(cut(program, moved).program, LATENCY, *MEMORY)
            assert quanta(cut(program, moved).program, found).max() > most or found.cycles > least - 40


def total(program, most):
    """Cycles of a program that yields."""
    return yielding(program, most, LATENCY, *MEMORY)[1].cycles


def test_where_no_places_are_near_enough_there_are_none():
    program = step()
    allowed = np.flatnonzero(places(program))[1:].tolist()
    assert cheapest(program, allowed, 90, LATENCY, *MEMORY) is None


def test_what_must_stay_together_is_named():
    with pytest.raises(LoweringError, match=r"^Layer .* has [\d,]+ cycles between two places where it may yield, which "
                       "is more than 90; a longer quantum would do$"):
        yielding(step(), 90, LATENCY, *MEMORY)
