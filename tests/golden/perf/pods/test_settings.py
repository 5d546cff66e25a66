"""Settings of networks: exactly the routes that the scheduler finds room for have some."""

import itertools
import re

import numpy as np
import pytest

from golden.perf.pods.interconnect import parse
from golden.perf.pods.routes import find, take
from golden.perf.pods.settings import settings, unit


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


def test_fields_follow_each_other():
    assert settings(parse("crossbar"), 4, [(3, 0, 0), (1, 2, 0)]) == 0b0101 | (3 | 1 << 4) << 4
    # Copy of output 0; then, behind the two columns of copy 0, each column's bit: from 3 to 1 and from 1 to 0.
    assert settings(parse("butterfly-2"), 4, [(3, 0, 1)]) == 1 | 1 << 4 | (1 << 4 + 4 + 8 + 1 | 1 << 4 + 4 + 8 + 4)


def test_an_output_has_one_route():
    with pytest.raises(ValueError, match=re.escape("Output 2 must have one route, not two") + "$"):
        settings(parse("crossbar"), 4, [(0, 2, 0), (1, 2, 0)])
