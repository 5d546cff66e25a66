"""What `python -m cosim` runs on a core at full size: random and corner data, and the digits workload."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from golden.device import Golden, forward

from ..bench.awkward import awkward
from ..bench.comparison import Comparison
from ..bench.tiling import most_terms
from ..simulate.simulation import Pause, ProtocolError
from .digits import accuracy, prepare

#: Idle on inputs and stall on outputs, crossed: none, half of the cycles, long pauses.
PAUSES = (Pause(), Pause(0.5), Pause(0.7, 12))


@dataclass
class Outcome:
    """Result of one bench.

    Attributes
    ----------
    name : str
        Of the bench.
    comparison : Comparison
        What was compared.
    failures : list of str
        What went wrong apart from bits: a stream that stood still or broke a rule, a test that failed.
    corners : dict
        Corner that the bench asks for -> times seen; empty where it asks for none.
    unreachable : dict
        Corner that the design cannot reach -> why; not asked for.
    cycles : int
        Clock cycles simulated.
    macs : int
        Multiply-accumulates asked for.
    seconds : float
        Wall time on the simulated core, packing and unpacking included.
    notes : dict
        Further figures.
    """
    name: str
    comparison: Comparison
    failures: list = field(default_factory=list)
    corners: dict = field(default_factory=dict)
    unreachable: dict = field(default_factory=dict)
    cycles: int = 0
    macs: int = 0
    seconds: float = 0.0
    notes: dict = field(default_factory=dict)

    @property
    def missing(self):
        """Corners that were asked for and not seen."""
        return [name for name, count in self.corners.items() if not count]

    @property
    def passed(self):
        """Whether something was compared, nothing differed or failed, and no corner is missing."""
        return self.comparison.compared > 0 and not (self.comparison.mismatches or self.failures or self.missing)

    @property
    def problems(self):
        """Everything that keeps the bench from passing, a line each."""
        lines = [*self.comparison.first, *self.failures]
        if not lines:    # a test that failed has not seen its corners either
            lines = [f"corner not seen: {name}" for name in self.missing]
        if not lines and not self.comparison.compared:
            lines = ["nothing was compared"]
        return lines

    @contextmanager
    def protocol(self):
        """Within it, a :class:`ProtocolError` becomes a failure of the bench."""
        try:
            yield
        except ProtocolError as error:
            self.failures.append(str(error))

    def as_dict(self):
        """Plain data for a JSON file."""
        data = {"bench": self.name, "passed": self.passed, "compared": self.comparison.compared,
                "mismatches": self.comparison.mismatches, "first": self.comparison.first, "failures": self.failures}
        if self.corners:
            data["coverage"] = {"seen": {name: count for name, count in self.corners.items() if count},
                                "missing": self.missing, "unreachable": self.unreachable}
        return data | {"cycles": self.cycles, "macs": self.macs, "seconds": round(self.seconds, 4), **self.notes}


def crossed(simulation):
    """Every idle pattern with every stall pattern: dicts of stream -> :class:`Pause`."""
    for idle in PAUSES:
        for stall in PAUSES:
            yield {name: idle if stream.direction == "in" else stall for name, stream in simulation.streams.items()}


def _operands(rng, design, shape):
    """Awkward matrices of (M, K, N) and the vectors of the side unit."""
    count, terms, width = shape
    if design.arithmetic == "int":
        limit = design.format.limit
        return (rng.integers(-limit, limit + 1, (count, terms)), rng.integers(-limit, limit + 1, (terms, width))), {}
    pair = awkward(rng, (count, terms), design.format), awkward(rng, (terms, width), design.format, -2)
    return pair, {"scale": rng.standard_normal(width, np.float32), "bias": rng.standard_normal(width, np.float32)}


def _shapes(design):
    """(M, K, N) that fill tiles, leave them partial, and cut the last block short; K as long as a command can be."""
    rows, cols, block, most = design.rows, design.cols, design.format.terms, most_terms(design)
    shapes = ((1, 1, 1), (rows + 3, max(rows, block) * 2 + 1, cols), (7, rows, 2 * cols + 1),
              (min(design.depth, 40) + 1, block + max(1, block // 2), cols - 1 or 1))
    return [(count, min(terms, most), width) for count, terms, width in shapes]


def random_products(core, *, seed=1, patterns=None, progress=None):
    """Awkward data through the whole core, idle crossed with stall.

    Parameters
    ----------
    core : cosim.work.device.Core
        The device.
    seed : int
        Of the data.
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
                (x, w), vectors = _operands(rng, design, shape)
                steps = {} if not vectors else {name: vectors[name] for bit, name in enumerate(("scale", "bias"))
                                                if (number + index) >> bit & 1}
                if vectors and (number + index) % 3 == 2:
                    steps["relu"] = True
                _compare(outcome.comparison, f"pattern {number} shape {shape}", core, golden, x, w, steps, 2 + number)
            if progress:
                progress(number + 1, len(patterns))
    core.pauses = None
    outcome.cycles, outcome.macs = core.simulation.cycle - start, core.tally.macs - tally.macs
    outcome.seconds = (core.tally.product_seconds + core.tally.encode_seconds
                       - tally.product_seconds - tally.encode_seconds)
    return outcome


def _compare(result, where, core, golden, x, w, steps, seed):
    """One product, and its conversions where there are any, on both devices; weights are rounded with a seed."""
    a, b = x, w
    if core.design.blocked:
        a, b = golden.encode(x), golden.encode(w, -2, seed=seed)
        result.add(f"{where} X", core.encode(x), a)
        result.add(f"{where} W", core.encode(w, -2, seed=seed), b)
    result.add(f"{where} product", core.matmul(a, b, **steps), golden.matmul(a, b, **steps))


def workload(core, *, progress=None):
    """The digits network on the core: every bit of every layer, and the predicted classes.

    Parameters
    ----------
    core : cosim.work.device.Core
        The device.
    progress : callable, optional
        Called with (done, total) results.

    Returns
    -------
    (Outcome, dict)
        And ``images``, ``classes`` and ``predicted`` for a picture; empty where the core did not get so far.
    """
    layers, images, classes = prepare()
    outcome, want, got = Outcome("workload", Comparison()), None, None
    result = outcome.comparison
    expected = list(forward(Golden(core.design), images, layers))
    core.simulation.reset()
    start, tally = core.simulation.cycle, replace(core.tally)
    with outcome.protocol():
        for number, ((name, want), (_, got)) in enumerate(zip(expected, forward(core, images, layers), strict=True), 1):
            result.add(name, got, want)
            if progress:
                progress(number, len(expected))
    spent = {name: getattr(core.tally, name) - getattr(tally, name)
             for name in ("macs", "product_seconds", "encode_seconds", "product_cpu", "encode_cpu")}
    outcome.cycles, outcome.macs = core.simulation.cycle - start, spent["macs"]
    outcome.seconds = spent["product_seconds"] + spent["encode_seconds"]
    if outcome.failures:
        return outcome, {}
    predicted = np.argmax(got, 1)
    result.add("predicted class", predicted, np.argmax(want, 1))
    outcome.notes = {"images": len(images), "accuracy": accuracy(got, classes),
                     "accuracy_fp32": _fp32_accuracy(layers, images, classes),
                     "seconds_products": round(spent["product_seconds"], 4),
                     "cpu_seconds_products": round(spent["product_cpu"], 4),
                     "cpu_seconds": round(spent["product_cpu"] + spent["encode_cpu"], 4)}
    return outcome, {"images": images, "classes": classes, "predicted": predicted}


def _fp32_accuracy(layers, x, classes):
    """Of the same network in NumPy's float32."""
    for layer in layers:
        x = x @ layer.weight + layer.bias
        x = np.maximum(x, 0) if layer.relu else x
    return accuracy(x, classes)
