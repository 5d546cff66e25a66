"""Banks and DRAM: by hand on small schedules, and laws that hold on any.

Covers: golden/perf/pods/tile_bytes.py.
"""

import numpy as np
import pytest

from golden.perf.pods import memory, simulate, tile_bytes
from golden.perf.pods.graph import Gemm, Graph, Reach
from golden.perf.pods.interconnect import parse
from golden.perf.pods.machine import Machine

MACHINE = Machine(4, 4, 4, parse("crossbar"))


def outcome(*gemms):
    return simulate.run([simulate.Tenant(Graph("one", gemms))], MACHINE)


def with_memory(found, bank, bandwidth):
    return memory.run(found.tiles, MACHINE, found.plan, memory.Memory(bank, bandwidth), found.cycles)


def test_weights_are_loaded_once_where_there_is_room():
    """Four tiles of 16 bytes at a byte a cycle; the first round needs all of them, and nothing is there before."""
    found = outcome(Gemm("a", 1, 16, 8, 8, height=16))
    assert with_memory(found, 64, 1.0) == memory.Traffic(found.cycles + 64, 64, 0)


def test_prefetch_hides_what_comes_later():
    """Four tiles of 16 bytes a round of 5 cycles: at 16 bytes a cycle only the first round waits, at one all do."""
    found = outcome(Gemm("a", 1, 4, 4, 64, height=4))
    assert found.plan.round.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert with_memory(found, 256, 16.0).cycles == found.cycles + 4
    assert with_memory(found, 256, 1.0).cycles == found.cycles - 3 * 5 + 256


def test_tiles_that_give_way_come_again():
    tile = np.array([0, 1, 2, 0, 1, 2])
    needed, freed = memory._misses(tile, np.arange(6), 3, 2)
    assert needed.tolist() == [0, 1, 2, 3, 4, 5] and freed.tolist() == [-1, -1, 0, 1, 2, 3]
    needed, freed = memory._misses(tile, np.arange(6), 3, 3)
    assert needed.tolist() == [0, 1, 2] and freed.tolist() == [-1] * 3


def test_the_one_not_used_for_the_longest_gives_way():
    """Against a plain list on random accesses."""
    rng = np.random.default_rng(1)
    for room in (1, 2, 5):
        tile = rng.integers(0, 8, 200)
        order, misses = [], []
        for place, each in enumerate(tile.tolist()):
            if each in order:
                order.remove(each)
            else:
                misses.append(place)
                order = order[-room + 1:] if len(order) == room and room > 1 else [] if len(order) == room else order
            order.append(each)
        assert memory._misses(tile, np.arange(200), 8, room)[0].tolist() == misses


def test_larger_banks_and_more_bandwidth_never_harm():
    found = outcome(Gemm("a", 1, 64, 16, 24, height=64), Gemm("b", 1, 64, 24, 16, height=64, sources={0: Reach()}))
    cycles = np.array([[with_memory(found, bank, wide).cycles for wide in (0.5, 2, 8, np.inf)]
                       for bank in (32, 64, 128, 4096)])
    assert (np.diff(cycles, axis=0) <= 0).all() and (np.diff(cycles, axis=1) <= 0).all()
    assert cycles[-1, -1] == found.cycles and cycles[0, 0] > 2 * found.cycles


def test_results_without_room_go_out_and_come_back():
    found = outcome(Gemm("a", 1, 64, 4, 8, height=64), Gemm("b", 1, 4, 8, 4, height=4, sources={0: None}))
    traffic = [with_memory(found, bank, 1e9).spilled_bytes for bank in (32, 64, 128, 1024)]
    assert traffic == [2 * (512 - 128), 2 * (512 - 256), 0, 0]


@pytest.mark.parametrize("partition, element, wanted", [(32, 1.0, 8192), (64, 1.0, 16384), (32, 0.5, 8192)])
def test_least_bank(partition, element, wanted):
    assert tile_bytes.least_bank(partition, 32, 32, element) == wanted


def test_largest_partition():
    assert tile_bytes.largest_partition(16384, 32, 32, 1.0, range(32, 129)) == 64
    assert tile_bytes.largest_partition(100, 32, 32, 1.0, range(32, 129)) == 0
