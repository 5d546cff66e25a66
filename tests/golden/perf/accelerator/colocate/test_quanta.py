"""Quanta: as long as asked at most, by the cycle model, and the same bits.

Covers: golden/perf/accelerator/colocate/cheapest.py.
"""

import numpy as np
import pytest

from golden.lower.errors import LoweringError
from golden.lower.yields import cut, places
from golden.perf.accelerator.colocate import quanta as module
from golden.perf.accelerator.colocate.cheapest import cheapest
from golden.perf.accelerator.colocate.quanta import StretchError, giving_way, quanta, sought, yielding
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


def test_every_layer_with_a_stretch_that_is_too_long_is_known():
    """Not the first alone: each would cost a lowering."""
    with pytest.raises(StretchError) as caught:
        yielding(step(), 90, LATENCY, *MEMORY)
    assert len(caught.value.layers) > 3 and caught.value.layers <= {each.name for each in step().layers}


def test_gradients_of_weights_stand_apart_where_a_program_yields_too_rarely():
    asked = []

    def lower(apart):
        asked.append(apart)
        return sorted(apart)

    def plan(names):
        if "gw b" not in names:
            raise StretchError("too long", frozenset({"gw a", "forward a"} | ({"gw b"} if names else set())))
        return 7
    assert giving_way(lower, plan) == (["gw a", "gw b"], 7)
    assert asked == [frozenset(), {"gw a"}, {"gw a", "gw b"}]


def test_what_is_too_long_by_itself_is_refused():
    for layers, tries in (({"forward a"}, 1), ({"gw a"}, 2)):
        asked = []

        def plan(names, layers=layers, asked=asked):
            asked.append(names)
            raise StretchError("too long", frozenset(layers))
        with pytest.raises(StretchError, match="too long"):
            giving_way(lambda apart: apart, plan)
        assert len(asked) == tries
