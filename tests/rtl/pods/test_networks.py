# amaranth: UnusedElaboratable=no
"""Networks in Amaranth's simulator: latency, routes, rounds that follow each other, zeros where nothing is routed.

Covers: rtl/pods/network.py, rtl/pods/benes.py, rtl/pods/butterfly.py, rtl/pods/crossbar.py, rtl/pods/column.py,
rtl/pods/pick.py.
"""

import random

import numpy as np
import pytest
from amaranth.hdl import Value

from golden.perf.pods.interconnect import parse
from golden.perf.pods.routes import find, take
from golden.perf.pods.settings import settings
from rtl.pods.benes import Benes
from rtl.pods.butterfly import Butterfly
from rtl.pods.crossbar import Crossbar
from tests.rtl.drive import Bench

WIDTH = 16
NETWORKS = [(name, ports) for name in ("butterfly-1", "butterfly-2", "butterfly-4", "crossbar", "benes")
            for ports in (2, 4, 8)]


def network(kind, ports, width=WIDTH):
    """The component of a kind."""
    if kind.copies:
        return Butterfly(ports=ports, width=width, copies=kind.copies)
    return (Benes if kind.name == "benes" else Crossbar)(ports=ports, width=width)


def some_routes(kind, ports, rng):
    """Routes for as many random pairs as have room, in any order of targets; some targets stay without."""
    links, found = np.full(kind.links(ports), -1, np.int16), []
    few = rng.sample(range(ports), rng.randint(1, ports))
    for target in rng.sample(range(ports), rng.randint(1, ports)):
        source = rng.choice(few)
        copy = find(links, source, target)
        if copy >= 0:
            take(links, copy, source, target)
            found.append((source, target, copy))
    return found


@pytest.mark.parametrize("name, ports", NETWORKS)
def test_rounds_follow_each_other(name, ports):
    """Each lasts as long as a payload takes or a little longer; ``route`` counts in its first cycle alone."""
    kind, rng = parse(name), random.Random(ports)
    dut = network(kind, ports)
    latency = kind.latency(ports)
    assert dut.latencies == {"result": latency}
    bench, wanted, got = Bench(dut), [[0] * ports] * latency, []

    async def rounds(ctx):
        for _ in range(30):
            routes = some_routes(kind, ports, rng)
            source = {target: source for source, target, _ in routes}
            for cycle in range(latency + rng.choice((0, 0, 1, 2))):
                ctx.set(dut.start, not cycle)
                word = Value.cast(dut.route)
                ctx.set(word, rng.getrandbits(len(word)) if cycle else settings(kind, ports, routes))
                payloads = [rng.getrandbits(WIDTH) for _ in range(ports)]
                for port, payload in zip(dut.i, payloads, strict=True):
                    ctx.set(port, payload)
                wanted.append([payloads[source[label]] if label in source else 0 for label in range(ports)])
                got.append([ctx.get(port) for port in dut.o])
                await ctx.tick()
    bench.process(rounds)
    bench.run()
    assert got == wanted[:len(got)]
