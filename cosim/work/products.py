"""Random and corner data through a whole core, under every pattern of pauses."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from hbfp.golden.core.device import Golden
from hbfp.golden.sparsity import prune

from ..bench.awkward import awkward
from ..bench.comparison import Comparison
from ..bench.outcome import Outcome
from ..bench.tiling import most_terms
from ..simulate.simulation import Pause, Simulation
from ..simulate.verilator import Progress
from .device import Core

#: Idle on inputs and stall on outputs, crossed: none, half of the cycles, long pauses.
PAUSES = (Pause(), Pause(0.5), Pause(0.7, 12))


def crossed(simulation: Simulation) -> Iterator[dict[str, Pause]]:
    """Every idle pattern with every stall pattern: dicts of stream -> :class:`Pause`."""
    for idle in PAUSES:
        for stall in PAUSES:
            yield {name: idle if stream.direction == "in" else stall for name, stream in simulation.streams.items()}


def _operands(rng, design, shape, wide=(False, False)):
    """Awkward matrices of (M, K, N), for mantissas that are ``wide`` or not, and the vectors of the side unit."""
    count, terms, width = shape
    if design.arithmetic == "int":
        limit = design.format.limit
        return (rng.integers(-limit, limit + 1, (count, terms)), rng.integers(-limit, limit + 1, (terms, width))), {}
    formats = [design.widest if mode else design.format for mode in wide]
    pair = awkward(rng, (count, terms), formats[0]), awkward(rng, (terms, width), formats[1], -2)
    return pair, {"scale": rng.standard_normal(width, np.float32), "bias": rng.standard_normal(width, np.float32)}


def _shapes(design):
    """(M, K, N) that fill tiles, leave them partial, and cut the last block short; K as long as a command can be."""
    rows, cols, block, most = design.rows, design.cols, design.format.terms, most_terms(design)
    shapes = ((1, 1, 1), (rows + 3, max(rows, block) * 2 + 1, cols), (7, rows, 2 * cols + 1),
              (min(design.depth, 40) + 1, block + max(1, block // 2), cols - 1 or 1))
    return [(count, min(terms, most), width) for count, terms, width in shapes]


def random_products(core: Core, *, seed: int = 1, patterns: Iterable[Mapping[str, Pause]] | None = None,
                    progress: Progress | None = None) -> Outcome:
    """Awkward data through the whole core, idle crossed with stall.

    Parameters
    ----------
    core : cosim.work.device.Core
        The device.
    seed : int
        Seed of the data.
    patterns : iterable, optional
        Pause patterns; :func:`crossed` by default.
    progress : callable, optional
        Called with (done, total).

    Returns
    -------
    Outcome
    """
    design = core.design
    outcome = Outcome("random", Comparison())
    rng = np.random.default_rng(seed)
    core.simulation.reset()
    start, tally = core.simulation.cycle, replace(core.tally)
    patterns = list(crossed(core.simulation) if patterns is None else patterns)
    golden = Golden(design)
    with outcome.protocol():
        for number, pauses in enumerate(patterns):
            core.pauses = pauses
            for index, shape in enumerate(_shapes(design)):
                wide = tuple(map(bool, rng.integers(0, 2, 2))) if design.wide else (False, False)
                (x, w), vectors = _operands(rng, design, shape, wide)
                steps = {} if not vectors else {name: vectors[name] for bit, name in enumerate(("scale", "bias"))
                                                if (number + index) >> bit & 1}
                if vectors and (number + index) % 3 == 2:
                    steps["relu"] = True
                how = {"sparse": True} if design.takes_sparse and (number + index) % 3 > 0 else {}
                if how:
                    w = prune(w, *design.sparse)
                where = f"pattern {number} shape {shape}{' sparse' if how else ''}"
                _compare(outcome.comparison, where, core, golden, x, w, steps, 2 + number, wide, how)
            if progress:
                progress(number + 1, len(patterns))
    core.pauses = None
    outcome.cycles, outcome.macs = core.simulation.cycle - start, core.tally.macs - tally.macs
    outcome.seconds = (core.tally.product_seconds + core.tally.encode_seconds
                       - tally.product_seconds - tally.encode_seconds)
    return outcome


def _compare(result, where, core, golden, x, w, steps, seed, wide, how):
    """One product, and its conversions where there are any, on both devices; weights are rounded with a seed.

    ``how`` is for the core alone: how it forms the product, whose bits it does not change.
    """
    a, b = x, w
    if core.design.blocked:
        a, b = golden.encode(x, wide=wide[0]), golden.encode(w, -2, seed=seed, wide=wide[1])
        result.add(f"{where} X", core.encode(x, wide=wide[0]), a)
        result.add(f"{where} W", core.encode(w, -2, seed=seed, wide=wide[1]), b)
    result.add(f"{where} product", core.matmul(a, b, **steps, **how), golden.matmul(a, b, **steps))
