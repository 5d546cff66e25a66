"""Settings of networks: exactly the routes that the scheduler finds room for have some.

Covers: golden/perf/pods/looping.py.
"""

import itertools
import random
import re

import numpy as np
import pytest

from golden.perf.pods.interconnect import parse
from golden.perf.pods.routes import find, take
from golden.perf.pods.settings import settings, unit

from .check import walk


@pytest.mark.parametrize("name", ["butterfly-1", "butterfly-2", "butterfly-4"])
def test_ways_meet_where_links_do(name):
    """Every function from 4 targets to sources, in the copies that first fit takes, and all in copy 0."""
    kind = parse(name)
    for sources in itertools.product(range(4), repeat=4):
        links, routes, fits = np.full(kind.links(4), -1, np.int16), [], True
        for target, source in enumerate(sources):
            copy = find(links, source, target)
            take(links, max(copy, 0), source, target)
            routes.append((source, target, max(copy, 0)))
            fits &= copy >= 0
        if fits:
            assert settings(kind, 4, routes) < 1 << sum(a * b for a, b in unit(kind, 4).settings.values())
        else:
            with pytest.raises(ValueError, match=r"^Routes must not meet: [0-3] to [0-3] in copy 0 does$"):
                settings(kind, 4, routes)


def meet(ports, routes):
    """Whether two sources are on one wire of one copy, walked switch by switch."""
    wires = {}
    return any(wires.setdefault((copy, *wire), source) != source for source, target, copy in routes
               for wire in enumerate(walk(source, target, ports)))


def refused(kind, ports, routes):
    """Whether there are no settings for the routes."""
    try:
        settings(kind, ports, routes)
    except ValueError:
        return True
    return False


def test_every_permutation_of_8_ports():
    """A banyan of 3 x 4 switches has room for 2^12 of them; exactly the others are refused."""
    kind, fitting = parse("butterfly-1"), 0
    for sources in itertools.permutations(range(8)):
        routes = [(source, target, 0) for target, source in enumerate(sources)]
        assert refused(kind, 8, routes) == meet(8, routes)
        fitting += not meet(8, routes)
    assert fitting == 2**12


@pytest.mark.parametrize("ports, copies", list(itertools.product((8, 16, 64), (1, 2, 4))))
def test_random_routes(ports, copies):
    """Whatever the copies are that someone gives them."""
    rng, seen = random.Random(ports), set()
    for _ in range(300):
        targets = rng.sample(range(ports), rng.randint(1, min(ports, 6 * copies)))
        few = rng.sample(range(ports), rng.randint(1, ports))
        routes = [(rng.choice(few), target, rng.randrange(copies)) for target in targets]
        seen.add(meet(ports, routes))
        assert refused(parse(f"butterfly-{copies}"), ports, routes) == meet(ports, routes)
    assert seen == {False, True}


def test_fields_follow_each_other():
    assert settings(parse("crossbar"), 4, [(3, 0, 0), (1, 2, 0)]) == 0b0101 | (3 | 1 << 4) << 4
    # Copy of output 0; then, behind the two columns of copy 0, each column's bit: from 3 to 1 and from 1 to 0.
    assert settings(parse("butterfly-2"), 4, [(3, 0, 1)]) == 1 | 1 << 4 | (1 << 4 + 4 + 8 + 1 | 1 << 4 + 4 + 8 + 4)


def test_an_output_has_one_route():
    with pytest.raises(ValueError, match=re.escape("Output 2 must have one route, not two") + "$"):
        settings(parse("crossbar"), 4, [(0, 2, 0), (1, 2, 0)])


def reached(ports, word):
    """The input that each output of a Benes network gives, or None: from the output backwards through the columns."""
    size = unit(parse("benes"), ports)
    found = []
    for target in range(ports):
        label = target
        for column, bit in reversed(list(enumerate(size.columns))):
            label = label & ~(1 << bit) | (word >> ports * (1 + column) + label & 1) << bit
        found.append(label if word >> target & 1 else None)
    return found


@pytest.mark.parametrize("ports", [2, 4])
def test_benes_brings_anything_anywhere(ports):
    """Every function from targets to sources or nothing."""
    for sources in itertools.product((None, *range(ports)), repeat=ports):
        routes = [(source, target, 0) for target, source in enumerate(sources) if source is not None]
        assert reached(ports, settings(parse("benes"), ports, routes)) == list(sources)


@pytest.mark.parametrize("ports, count", [(8, 1000), (64, 60), (256, 8)])
def test_benes_brings_much_far(ports, count):
    """Permutations, few sources, one source, and random functions; some targets without a route."""
    rng = random.Random(ports)
    for number in range(count):
        kinds = (range(ports), rng.sample(range(ports), 2), [rng.randrange(ports)], range(ports))
        sources = rng.sample(range(ports), ports) if number % 4 == 0 else rng.choices(kinds[number % 4], k=ports)
        sources = [None if number % 3 == 0 and rng.random() < 0.3 else source for source in sources]
        routes = [(source, target, 0) for target, source in enumerate(sources) if source is not None]
        assert reached(ports, settings(parse("benes"), ports, routes)) == sources
