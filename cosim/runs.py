"""What `python -m cosim` runs on a core at full size: random and corner data, and the digits workload."""

from dataclasses import dataclass, field, replace

import numpy as np

from golden.mlp import Golden, forward

from .bulk import Pause
from .compare import Comparison
from .data import awkward
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
    cycles: int = 0
    macs: int = 0
    seconds: float = 0.0
    notes: dict = field(default_factory=dict)

    @property
    def passed(self):
        """Whether something was compared and nothing differed."""
        return self.comparison.compared > 0 and not self.comparison.mismatches

    def as_dict(self):
        """Plain data for a JSON file."""
        return {"bench": self.name, "compared": self.comparison.compared, "mismatches": self.comparison.mismatches,
                "first": self.comparison.first, "cycles": self.cycles, "macs": self.macs,
                "seconds": round(self.seconds, 4), **self.notes}


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
    """(M, K, N) that fill tiles, leave them partial, and cut the last block short."""
    rows, cols, block = design.rows, design.cols, design.format.terms
    return ((1, 1, 1), (rows + 3, max(rows, block) * 2 + 1, cols), (7, rows, 2 * cols + 1),
            (min(design.depth, 40) + 1, block + max(1, block // 2), cols - 1 or 1))


def random_products(core, *, seed=1, patterns=None, progress=None):
    """Awkward data through the whole core, idle crossed with stall.

    Parameters
    ----------
    core : cosim.core.Core
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
    design, result = core.design, Comparison()
    rng = np.random.default_rng(seed)
    start, tally = core.simulation.cycle, replace(core.tally)
    patterns = list(crossed(core.simulation) if patterns is None else patterns)
    golden = Golden(design)
    for number, pauses in enumerate(patterns):
        core.pauses = pauses
        for index, shape in enumerate(_shapes(design)):
            (x, w), vectors = _operands(rng, design, shape)
            steps = {} if not vectors else {name: vectors[name] for bit, name in enumerate(("scale", "bias"))
                                            if (number + index) >> bit & 1}
            if vectors and (number + index) % 3 == 2:
                steps["relu"] = True
            where = f"pattern {number} shape {shape}"
            a, b = x, w
            if design.blocked:
                a, b = golden.convert(x), golden.convert(w, -2, seed=2 + number)
            want = golden.matmul(a, b, **steps)
            if design.blocked:
                result.add(f"{where} X", core.convert(x), a)
                result.add(f"{where} W", core.convert(w, -2, seed=2 + number), b)
            result.add(f"{where} product", core.matmul(a, b, **steps), want)
        if progress:
            progress(number + 1, len(patterns))
    core.pauses = None
    seconds = (core.tally.product_seconds + core.tally.convert_seconds
               - tally.product_seconds - tally.convert_seconds)
    return Outcome("random", result, core.simulation.cycle - start, core.tally.macs - tally.macs, seconds)


def workload(core, *, progress=None):
    """The digits network on the core: every bit of every layer, and the predicted classes.

    Parameters
    ----------
    core : cosim.core.Core
        The device.
    progress : callable, optional
        Called with (done, total) results.

    Returns
    -------
    (Outcome, dict)
        And ``images``, ``classes``, ``predicted`` and ``activity`` for pictures.
    """
    layers, images, classes = prepare()
    result, want, got = Comparison(), None, None
    expected = list(forward(Golden(core.design), images, layers))
    start, tally = core.simulation.cycle, replace(core.tally)
    for number, ((name, want), (_, got)) in enumerate(zip(expected, forward(core, images, layers), strict=True), 1):
        result.add(name, got, want)
        if progress:
            progress(number, len(expected))
    spent = {name: getattr(core.tally, name) - getattr(tally, name)
             for name in ("macs", "product_seconds", "convert_seconds", "product_cpu", "convert_cpu")}
    predicted = np.argmax(got, 1)
    result.add("predicted class", predicted, np.argmax(want, 1))
    notes = {"images": len(images), "accuracy": accuracy(got, classes),
             "accuracy_fp32": _fp32_accuracy(layers, images, classes),
             "seconds_products": round(spent["product_seconds"], 4),
             "cpu_seconds_products": round(spent["product_cpu"], 4),
             "cpu_seconds": round(spent["product_cpu"] + spent["convert_cpu"], 4)}
    outcome = Outcome("workload", result, core.simulation.cycle - start, spent["macs"],
                      spent["product_seconds"] + spent["convert_seconds"], notes)
    return outcome, {"images": images, "classes": classes, "predicted": predicted}


def _fp32_accuracy(layers, x, classes):
    """Of the same network in NumPy's float32."""
    for layer in layers:
        x = x @ layer.weight + layer.bias
        x = np.maximum(x, 0) if layer.relu else x
    return accuracy(x, classes)
