"""Networks: latencies, and routes against a banyan that is walked switch by switch.

Covers: golden/perf/pods/routes.py.
"""

import numpy as np
import pytest

from golden.perf.pods.interconnect import parse
from golden.perf.pods.routes import find, take

from .check import walk


@pytest.mark.parametrize("name, ports, latency", [
    ("butterfly-1", 64, 6), ("butterfly-2", 64, 8), ("butterfly-4", 64, 10), ("butterfly-2", 256, 10),
    ("butterfly-1", 2, 1), ("crossbar", 64, 1), ("benes", 64, 23), ("benes", 256, 31)])
def test_latencies(name, ports, latency):
    assert parse(name).latency(ports) == latency


@pytest.mark.parametrize("name", ["butterfly", "butterfly-3", "butterfly-32", "butterfly-02", "bus", ""])
def test_names_that_are_none(name):
    with pytest.raises(ValueError, match=r"^must be butterfly-K \(K 1, 2, 4, 8 or 16\), crossbar or benes$"):
        parse(name)


def switches(source, target, ports):
    """The output wire of every switch on the way: stage s pairs the wires that differ in its bit, the highest first."""
    wire = source
    for bit in reversed(range(ports.bit_length() - 1)):
        upper, lower = wire & ~(1 << bit), wire | 1 << bit     # the two wires of the switch
        wire = lower if target >> bit & 1 else upper
        yield wire


@pytest.mark.parametrize("ports", [2, 8, 16, 64])
def test_every_way_ends_at_its_target(ports):
    for source in range(ports):
        for target in range(ports):
            places = list(switches(source, target, ports))
            assert places == walk(source, target, ports) and places[-1] == target


def asked(rng, ports, multicast):
    """Routes of a round: every target once, sources all different or chosen at will."""
    sources = rng.integers(0, ports, ports) if multicast else rng.permutation(ports)
    return list(zip(sources.tolist(), rng.permutation(ports).tolist(), strict=True))


@pytest.mark.parametrize("ports", [8, 16, 64])
@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("multicast", [False, True])
def test_routes_equal_those_of_a_network_walk(ports, copies, multicast):
    rng = np.random.default_rng(ports + copies)
    for _ in range(30):
        links = np.full(parse(f"butterfly-{copies}").links(ports), -1, np.int16)
        wires = [{} for _ in range(copies)]
        for source, target in asked(rng, ports, multicast):
            way = list(enumerate(switches(source, target, ports)))
            free = [copy for copy in range(copies) if all(wires[copy].get(each, source) == source for each in way)]
            copy = find(links, source, target)
            assert copy == (free[0] if free else -1)
            if free:
                take(links, copy, source, target)
                wires[copy].update(dict.fromkeys(way, source))


def test_shifts_need_one_copy_and_a_reversal_of_bits_many():
    links = np.full(parse("butterfly-1").links(16), -1, np.int16)
    for port in range(16):
        assert find(links, port, (port + 5) % 16) == 0
        take(links, 0, port, (port + 5) % 16)
    links = np.full(parse("butterfly-1").links(16), -1, np.int16)
    blocked = 0
    for port in range(16):
        target = int(f"{port:04b}"[::-1], 2)
        if find(links, port, target) < 0:
            blocked += 1
        else:
            take(links, 0, port, target)
    assert blocked == 12


@pytest.mark.parametrize("name", ["crossbar", "benes"])
def test_all_routes_are_free(name):
    links = np.full(parse(name).links(16), -1, np.int16)
    assert find(links, 3, 3) == 0 and find(links, 4, 3) == 0
