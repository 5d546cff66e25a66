"""The digits network on a simulated core."""

from dataclasses import replace

import numpy as np

from hbfp.golden.core.device import Golden, forward

from ..bench.comparison import Comparison
from ..bench.outcome import Outcome
from ..simulate.verilator import Progress
from .device import Core
from .digits import accuracy, prepare


def workload(core: Core, *, progress: Progress | None = None) -> tuple[Outcome, dict[str, np.ndarray]]:
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
        What was compared; and ``images``, ``classes`` and ``predicted`` for a picture, empty where the core failed.
    """
    layers, images, classes = prepare()
    outcome = Outcome("workload", Comparison())
    want = got = np.empty(0)
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
    """The accuracy of the same network in NumPy's float32."""
    for layer in layers:
        x = x @ layer.weight + layer.bias
        x = np.maximum(x, 0) if layer.relu else x
    return accuracy(x, classes)
