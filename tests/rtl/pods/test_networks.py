# amaranth: UnusedElaboratable=no
"""Networks in Amaranth's simulator: latency, routes, rounds that follow each other, zeros where nothing is routed.

Covers: rtl/pods/network.py, rtl/pods/benes.py, rtl/pods/butterfly.py, rtl/pods/crossbar.py, rtl/pods/column.py,
rtl/pods/pick.py.
"""

import random

import numpy as np
import pytest
from amaranth.hdl import Value

from gen.units import NETWORKS
from golden.perf.pods.interconnect import parse
from golden.perf.pods.settings import settings
from tests.cases import sweep
from tests.rtl.drive import Bench

from .rounds import drawn, outcome

WIDTH = 16
CASES = [(name, ports) for name in ("butterfly-1", "butterfly-2", "butterfly-4", "crossbar", "benes")
         for ports in (2, 4, 8)]


def network(kind, ports):
    """The component of a kind."""
    copies = {"copies": kind.copies} if kind.copies else {}
    return NETWORKS[kind.name.partition("-")[0]](ports=ports, width=WIDTH, **copies)


def play(dut, words, lengths, payloads, reset=()):
    """What comes out, (cycles, ports); ``route`` has its word in the first cycle of a round and noise in others."""
    bench, got, rng = Bench(dut), [], random.Random(1)
    starts = {int(start): word for start, word in zip(np.cumsum(lengths) - lengths, words, strict=True)}

    async def rounds(ctx):
        route = Value.cast(dut.route)
        for cycle, row in enumerate(payloads):
            ctx.set(bench.reset, cycle in reset)
            ctx.set(dut.start, cycle in starts)
            ctx.set(route, starts.get(cycle, rng.getrandbits(len(route))))
            for port, payload in zip(dut.i, row, strict=True):
                ctx.set(port, int(payload))
            got.append([ctx.get(port) for port in dut.o])
            await ctx.tick()
    bench.process(rounds)
    bench.run()
    return np.array(got)


@pytest.mark.parametrize("name, ports", sweep(2, CASES))
def test_rounds_follow_each_other(name, ports):
    """Each lasts as long as a payload takes, or a little longer."""
    kind, rng = parse(name), random.Random(ports)
    dut, latency = network(kind, ports), kind.latency(ports)
    assert dut.latencies == {"result": latency}
    rounds = [drawn(kind, ports, rng) for _ in range(30)]
    lengths = [latency + rng.choice((0, 0, 1, 2)) for _ in rounds]
    payloads = np.random.default_rng(ports).integers(2**WIDTH, size=(sum(lengths), ports))
    got = play(dut, [settings(kind, ports, routes) for routes in rounds], lengths, payloads)
    assert (got == outcome(latency, rounds, lengths, payloads)).all()


@pytest.mark.parametrize("name", ["butterfly-1", "butterfly-2", "crossbar", "benes"])
def test_nothing_comes_out_after_a_reset(name):
    """Until the next round begins, whatever enters, and whatever was under way."""
    kind = parse(name)
    latency, routes = kind.latency(4), [(source, source, 0) for source in range(4)]
    length = 4 * latency
    payloads = np.full((2 * length, 4), 2**WIDTH - 1)
    got = play(network(kind, 4), [settings(kind, 4, routes)] * 2, [length] * 2, payloads, {2 * latency})
    full = [cycle for cycle in range(2 * length) if (got[cycle] == 2**WIDTH - 1).all()]
    assert full == [*range(latency, 2 * latency + 1), *range(length + latency, 2 * length)]
    assert not np.delete(got, full, axis=0).any()
