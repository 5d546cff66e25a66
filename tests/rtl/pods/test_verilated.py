"""Verilog of networks, compiled: latency, routes and multicasts, round after round without a gap.

With 8 ports every permutation that a round can have; with more, random ones.
"""

import itertools
import random

import numpy as np
import pytest

from cosim.manifest import Manifest
from cosim.simulate.player import Player
from golden.perf.pods.interconnect import parse
from golden.perf.pods.settings import settings
from hbfp import generator

from .rounds import drawn, fitted, outcome

WIDTH = 16
KINDS = ("butterfly-1", "butterfly-2", "butterfly-4", "crossbar", "benes")
#: Rounds that go through a model at once.
CHUNK = 1000


class Model:
    """A Verilated network, and the latency that its manifest has."""

    def __init__(self, kind, ports):
        name, _, copies = kind.name.partition("-")
        words = ["--unit", name, "--pods", str(ports), "--width", str(WIDTH),
                 *(["--copies", copies] if copies else [])]
        manifest = Manifest.load(generator.emitted(name, words))
        self.player, self.latency = Player(manifest), manifest.latency["result"]


def differences(model, kind, ports, rounds, rng):
    """How many payloads are wrong, of how many, over all rounds; each lasts as long as a payload takes, or longer."""
    latency, wrong, compared = kind.latency(ports), 0, 0
    assert latency == model.latency
    for first in range(0, len(rounds), CHUNK):
        chunk = rounds[first:first + CHUNK]
        lengths = [latency + rng.choice((0, 0, 1)) for _ in chunk]
        payloads = np.random.default_rng(first).integers(2**WIDTH, size=(sum(lengths), ports))
        words = [settings(kind, ports, routes) for routes in chunk]
        start, route = [], []
        for number, length in enumerate(lengths):    # after its first cycle a round's port has the next one's settings
            start += [1, *[0] * (length - 1)]
            route += [words[number], *[words[(number + 1) % len(words)]] * (length - 1)]
        inputs = {f"i__{port}": payloads[:, port].tolist() for port in range(ports)}
        got = model.player.play(inputs | {"start": start, "route": route, "rst": [0] * len(start)})
        found = np.stack([got[f"o__{port}"] for port in range(ports)], 1).astype(np.int64)
        wanted = outcome(latency, chunk, lengths, payloads)
        wrong, compared = wrong + int((found != wanted).sum()), compared + wanted.size
    return wrong, compared


def permutations(kind):
    """Of all permutations of 8 ports, the routes of those that all have room."""
    for sources in itertools.permutations(range(8)):
        routes = fitted(kind, 8, list(zip(sources, range(8), strict=True)))
        if len(routes) == 8:
            yield routes


@pytest.mark.cosim
@pytest.mark.parametrize("name", KINDS)
def test_random_rounds(name):
    kind, rng = parse(name), random.Random(8)
    rounds = [drawn(kind, 8, rng) for _ in range(1000)]
    wrong, compared = differences(Model(kind, 8), kind, 8, rounds, rng)
    assert wrong == 0 and compared >= 8 * 1000 * kind.latency(8)


@pytest.mark.slow
@pytest.mark.cosim
@pytest.mark.parametrize("name, count", list(zip(KINDS, (4096, *[40320] * 4), strict=True)))
def test_every_permutation(name, count):
    kind = parse(name)
    rounds = list(permutations(kind))
    wrong, compared = differences(Model(kind, 8), kind, 8, rounds, random.Random(1))
    assert (wrong, len(rounds)) == (0, count)


@pytest.mark.slow
@pytest.mark.cosim
@pytest.mark.parametrize("name, ports", list(itertools.product(KINDS, (8, 16, 64))))
def test_many_random_rounds(name, ports):
    kind, rng = parse(name), random.Random(ports)
    wrong, compared = differences(Model(kind, ports), kind, ports, [drawn(kind, ports, rng) for _ in range(10000)], rng)
    assert wrong == 0 and compared >= ports * 10000 * kind.latency(ports)
