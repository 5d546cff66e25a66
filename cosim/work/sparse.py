"""The digits network with sparse weights on a simulated core: the same bits in about half of the cycles."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hbfp.design import Design
from hbfp.golden.bfp import decode
from hbfp.golden.core.core import encode
from hbfp.golden.core.device import Device, Golden, forward
from hbfp.golden.sparsity import prune

from ..bench.comparison import Comparison
from ..bench.outcome import Outcome
from ..simulate.verilator import Progress
from .device import Core
from .digits import accuracy, prepare, prepare_pruned


@dataclass
class _Sparse:
    """A core whose products take their weights compressed; see :class:`golden.core.device.Device`."""
    core: Core

    @property
    def design(self):
        """The design of the core."""
        return self.core.design

    def encode(self, x, axis=-1, **how):
        """FP32 to blocks."""
        return self.core.encode(x, axis, **how)

    def matmul(self, x, w, **steps):
        """``x @ w`` with sparse weights."""
        return self.core.matmul(x, w, sparse=True, **steps)


def order_errors(design: Design, weight: np.ndarray) -> tuple[float, float]:
    """Errors of pruned and quantised weights, relative to the dense FP32 ones: (prune first, quantise first)."""
    def quantised(w):
        return decode(encode(design, w, -2))

    def error(got):
        return float(np.linalg.norm(np.float64(got) - weight) / whole)

    whole = np.linalg.norm(np.float64(weight))
    return error(quantised(prune(weight, *design.sparse))), error(prune(quantised(weight), *design.sparse))


def sparse_workload(core: Core, *, progress: Progress | None = None) -> Outcome:
    """The pruned and fine-tuned digits network, once with dense commands and once with sparse ones: every bit.

    Parameters
    ----------
    core : cosim.work.device.Core
        A core whose commands may be sparse.
    progress : callable, optional
        Called with (done, total) results.

    Returns
    -------
    Outcome
        Its notes have the cycles of products with ``dense_cycles`` and ``sparse_cycles``, accuracies, and by layer
        the errors of :func:`order_errors`.
    """
    layers, images, classes = prepare_pruned(*core.design.sparse)
    outcome, scores, spent = Outcome("sparse", Comparison()), np.empty(0), {}
    expected = list(forward(Golden(core.design), images, layers))
    core.simulation.reset()
    start, tally = core.simulation.cycle, replace(core.tally)
    ways: dict[str, Device] = {"dense": core, "sparse": _Sparse(core)}
    with outcome.protocol():
        for number, (name, device) in enumerate(ways.items()):
            before = core.tally.product_cycles
            for step, ((what, want), (_, got)) in enumerate(zip(expected, forward(device, images, layers),
                                                                strict=True), 1):
                outcome.comparison.add(f"{name} {what}", got, want)
                scores = got
                if progress:
                    progress(number * len(expected) + step, 2 * len(expected))
            spent[f"{name}_cycles"] = core.tally.product_cycles - before
    outcome.cycles, outcome.macs = core.simulation.cycle - start, core.tally.macs - tally.macs
    outcome.seconds = core.tally.product_seconds - tally.product_seconds
    if not outcome.failures:
        unpruned = prepare()[0]
        scores_before = list(forward(Golden(core.design), images, unpruned))[-1][1]
        outcome.notes = {
            "images": len(images), "accuracy": accuracy(scores, classes),
            "accuracy_before": accuracy(scores_before, classes), **spent,
            "errors": [dict(zip(("prune_first", "quantise_first"), order_errors(core.design, layer.weight),
                                strict=True)) for layer in unpruned]}
    return outcome


def lines(notes: Mapping[str, Any]) -> Iterator[str]:
    """What :func:`sparse_workload` found beside bits, for people."""
    dense, sparse = notes["dense_cycles"], notes["sparse_cycles"]
    yield (f"{notes['accuracy']:.1%} of {notes['images']} held-out digits with pruned weights, "
           f"{notes['accuracy_before']:.1%} before")
    yield f"cycles of its products: {dense:,} dense, {sparse:,} sparse, {dense / sparse:.2f} times as quick"
    for number, error in enumerate(notes["errors"], 1):
        first, last = error["prune_first"], error["quantise_first"]
        yield (f"error of the weights of layer {number}, relative: {first:.4f} pruned and then quantised, {last:.4f} "
               "quantised and then pruned")
