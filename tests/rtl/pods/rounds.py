"""Rounds of routes for networks, random and exhaustive, and what must come out of them."""

import numpy as np

from golden.perf.pods.routes import find, take


def fitted(kind, ports, pairs):
    """Routes (source, target, copy) for those (source, target) that first fit finds room for."""
    links, found = np.full(kind.links(ports), -1, np.int16), []
    for source, target in pairs:
        copy = find(links, source, target)
        if copy >= 0:
            take(links, copy, source, target)
            found.append((source, target, copy))
    return found


def multicast(kind, ports, rng):
    """Random pairs from few or many sources, in any order of targets; some targets stay without."""
    few = rng.sample(range(ports), rng.randint(1, ports))
    targets = rng.sample(range(ports), rng.randint(1, ports))
    return fitted(kind, ports, [(rng.choice(few), target) for target in targets])


def permutation(kind, ports, rng):
    """A random permutation, as far as there is room."""
    return fitted(kind, ports, list(zip(rng.sample(range(ports), ports), range(ports), strict=True)))


def full(kind, ports, rng):
    """A permutation that one banyan has room for, all of it: its switches are thrown at random."""
    sources = list(range(ports))
    for bit in reversed(range(ports.bit_length() - 1)):
        for label in range(ports):
            other = label | 1 << bit
            if other != label and rng.random() < 0.5:
                sources[label], sources[other] = sources[other], sources[label]
    found = fitted(kind, ports, list(zip(sources, range(ports), strict=True)))
    assert len(found) == ports
    return found


def drawn(kind, ports, rng):
    """Routes of a round of any of these kinds."""
    return rng.choice((multicast, permutation, full))(kind, ports, rng)


def outcome(latency, rounds, lengths, payloads):
    """What comes out.

    Parameters
    ----------
    latency : int
    rounds : list of routes
    lengths : list of int
        Cycles of each round.
    payloads : ndarray (cycles, ports)
        What enters, in each cycle of all rounds.

    Returns
    -------
    ndarray (cycles, ports)
        From cycle ``latency`` on what entered that many cycles before; before it, and where nothing is routed, zeros.
    """
    sources = np.full((len(rounds), payloads.shape[1]), -1)
    for number, routes in enumerate(rounds):
        for source, target, _ in routes:
            sources[number, target] = source
    every = np.repeat(sources, lengths, axis=0)
    came = np.where(every < 0, 0, np.take_along_axis(payloads, np.maximum(every, 0), axis=1))
    return np.concatenate([np.zeros((latency, payloads.shape[1]), came.dtype), came])[:len(came)]
