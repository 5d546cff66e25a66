"""The search of ``golden balance``: from the presets on, one option at a time; processes find cycles."""

import random
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import Any

import joblib

from hbfp import describe
from hbfp.presets import SYSTEMS
from hbfp.system import FUNCTIONS, Accelerator

from . import point as balance
from .point import Point, front

#: Of the accelerators that are tried, and their rows.
_COLUMNS = 32
#: Option -> what is tried, the default's value among them.
CHOICES: dict[str, Sequence[Any]] = {
    "lanes": [f"{lanes},{functions}" for lanes, functions in balance.lanes()], "side_lanes": balance.side_lanes(),
    "depth": (64, 128, 256, 512), "x_words": (2048, 4096, 8192), "w_words": (512, 1024, 2048, 4096),
    "v_words": (1024, 2048, 4096), "p_words": (256, 512), "row_words": (24, 32), "vector_rows": (3, 4, 8),
    "register_copies": (1, 3),
    "memory_banks": (0, 2, 4, 8), "queue": (2, 4), "reads": (8, 16), "burst": (8, 16)}


def _chosen(preset: dict[str, Any]) -> dict[str, Any]:
    """What a search would have to choose for a preset."""
    given = describe.flat(Accelerator()) | preset
    lanes = given["vector_lanes"] or _COLUMNS
    return {name: given[name] for name in CHOICES if name != "lanes"} | {
        "lanes": f"{lanes},{given['function_lanes'] or lanes}", "side_lanes": given["side_lanes"] or _COLUMNS}


#: Where a search begins: the presets, the first of which is the default accelerator.
SEEDS = tuple(map(_chosen, SYSTEMS.values()))
USUAL = SEEDS[0]


def values(chosen: dict[str, Any], needed: Sequence[str]) -> dict[str, Any]:
    """Options of an accelerator from what was chosen, and the functions that networks need."""
    lanes, functions = map(int, chosen["lanes"].split(","))
    if chosen != USUAL:
        chosen = chosen | {"functions": tuple(needed)}
    return {name: value for name, value in chosen.items() if name != "lanes"} | {
        "vector_lanes": lanes % _COLUMNS, "function_lanes": functions % lanes if needed else 0,
        "side_lanes": chosen["side_lanes"] % _COLUMNS, "rows": _COLUMNS}


def search(networks: Sequence[str], growth: dict[str, float], trials: int, jobs: int, seed: int,
           report: Callable[[int, int], object]) -> list[Point]:
    """Points that were tried, the presets' first.

    Each other one differs in one option, by one place of its choices, from a point that no smaller one beats. Costs and
    cycles are in the cache, so that a search that was stopped, or has more trials now, soon is where it was.

    Parameters
    ----------
    networks : sequence of str
    growth : dict
        Network -> how much more cycles than the default's are allowed, as a share; points within these limits are the
        first to be changed.
    trials : int
        In all.
    jobs : int
        Processes.
    seed : int
        Of what is tried.
    report : callable
        Called with the trials that are done, and all.
    """
    needed = [name for name in FUNCTIONS if any(name in balance.functions(each) for each in networks)]
    tried, points, draw = list[dict[str, Any]](), list[Point](), random.Random(seed)
    with joblib.Parallel(jobs) as workers:
        while len(points) < trials:
            report(len(points), trials)
            most = min(jobs if points else 1, trials - len(points))
            asked = [each for each in SEEDS if each not in tried][:most] or _moves(tried, points, growth, draw)[:most]
            if not asked:
                break
            points += workers(joblib.delayed(balance.point)(values(each, needed), networks) for each in asked)
            tried += asked
    report(trials, trials)
    return points


def _moves(tried, points, growth, draw):
    """What to try next: beside each point that none beats in turn, the smallest first, those within the limits before
    others.
    """
    usual = points[0].cycles
    best = {id(each) for name in growth for each in front(points, name)}
    found: list[list[list[dict[str, Any]]]] = [[], []]
    for chosen, each in sorted(zip(tried, points, strict=True), key=lambda pair: pair[1].area):
        if id(each) in best:
            beyond = any(each.cycles[name] is None or each.cycles[name] > (1 + more) * usual[name]
                         for name, more in growth.items())
            moves = [move for move in _beside(chosen) if move not in tried]
            draw.shuffle(moves)
            found[beyond].append(moves)
    made: list[dict[str, Any]] = []
    for move in chain(*(chain(*zip_longest(*each)) for each in found)):    # in turns; None where a point has no more
        if move is not None and move not in made:
            made.append(move)
    return made


def _beside(chosen):
    """Accelerators with one option a place further, either way."""
    for name, choices in CHOICES.items():
        place = list(choices).index(chosen[name])
        for other in choices[max(0, place - 1):place + 2]:
            if other != chosen[name]:
                yield chosen | {name: other}
