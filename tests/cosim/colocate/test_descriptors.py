"""Requests that come as descriptors, some of them corrupt: what is refused, every answer, every cycle.

Covers: cosim/colocate/descriptors.py.
"""

from collections import Counter
from dataclasses import replace

import pytest

from cosim.accelerator.device import Timing
from cosim.colocate.descriptors import drawn, late, spoiled, window
from cosim.colocate.run import on_machine, on_verilog
from cosim.emit import emit_accelerator
from golden.perf.accelerator.colocate.descriptors import Reads
from golden.spec.descriptors import Window, judge, pack
from hbfp.isa.descriptors import Refusal

from .both import MEMORY, SYSTEM, both

RINGED = replace(SYSTEM, dispatch_ring=True)
READS = Reads.of(RINGED, *MEMORY)
ARRIVALS = [10, 20, 30, 40, 5000, 12000, 12001, 12002, 12003, 12004, 12005, 12006]


@pytest.mark.parametrize("first", [0, 8192])
def test_each_kind_of_corruption_is_refused_as_such(first):
    """By its tag, which stays."""
    within = Window(first, 65536, 32)
    for number in range(300):
        kind, words = Refusal(2 + number % 4), (first + 32 * number, 65536 - 32 * number, 7 * number)
        data = spoiled(pack(words, number), number, kind, within, seed=5)
        assert judge(data, number, within) is kind and data[8:12] == words[2].to_bytes(4, "little")


def test_a_fraction_is_corrupt():
    found = drawn(READS, 200, 0.3, seed=1)
    counted = Counter(found.kinds)
    assert counted[None] == 140 and set(counted) == {None, *Refusal} - {Refusal.BUS}
    assert found.bytes == 64 * SYSTEM.beat and drawn(READS, 5, 0.0).kinds == (None,) * 5
    assert found != drawn(READS, 200, 0.3, seed=2)


def test_what_was_refused_otherwise_is_counted():
    one = {3: (70, Refusal.CHECK), 5: (90, Refusal.BUS)}
    assert late(one, dict(one)) == 0
    assert [late(one, one | {5: other}) for other in ((91, Refusal.BUS), (90, Refusal.CHECK))] == [1, 1]
    assert late(one, {3: one[3]}) == late({}, {3: one[3]}) == 1


def test_every_bit():
    """On the golden machine; requests that are corrupt are none."""
    given = replace(both(ARRIVALS), asked=drawn(READS, len(ARRIVALS), 0.25))
    found = on_machine(given)
    assert found.passed and found.answers.compared == 5 * 9 and len(found.denied) == 3
    assert sum(found.figures()["denied"].values()) == 3 and found.weights.compared > 100
    within = window(given.clients)
    assert within.first == given.serving.addresses(0)[0] and within.last % 32 == 0


@pytest.mark.cosim
@pytest.mark.slow
@pytest.mark.parametrize(("arrivals", "corrupt"), [(ARRIVALS, 0.25), ([2000] * 60, 0.1), ([2000] * 6000, 0.05)])
def test_on_the_verilog(arrivals, corrupt):
    """Also of requests faster than service, which wait in the ring: none is lost, and order is kept."""
    manifest, count = emit_accelerator(RINGED), len(arrivals)
    given = both(arrivals)
    given = replace(given, accelerator=RINGED, asked=drawn(READS, count, corrupt),
                    plan=replace(given.plan, reading=READS.longest))
    found, shown = on_verilog(manifest, given, timing=Timing(*MEMORY), level="-O0")
    refused = round(corrupt * count)
    assert found.passed and not found.late and not found.exceeded and not shown.failed
    assert found.answers.compared == 5 * (count - refused) and len(shown.denied) == refused
    ended = [each.finished for _, each in sorted(shown.completions.items())]
    assert ended == sorted(ended)
