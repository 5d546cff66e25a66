"""Training with mixed mantissas: every product of digits training on a simulated core with wide mantissas."""

from collections.abc import Callable
from dataclasses import replace

from hbfp.golden.schedule import MixedMantissa

from ..bench.comparison import Comparison
from ..bench.outcome import Outcome
from .device import Core

#: Epochs; all layers are boosted in the last one, the first and the last layer in all of them.
EPOCHS = 2
#: Terms of the longest product of this training: K of the second layer, or of a gradient with respect to the first
#: one's output.
TERMS = 128


def boosted(core: Core, *, steps: int = 0, progress: Callable[[int, None], object] | None = None) -> Outcome:
    """Forward and backward products of :mod:`golden.nn` again on the core, conversions and biases included.

    Parameters
    ----------
    core : cosim.work.device.Core
        The device; its design has ``wide`` mantissas and does not round stochastically.
    steps : int
        Steps of each epoch; 0 for all.
    progress : callable, optional
        Called with (done, None) products.

    Returns
    -------
    Outcome
    """
    from hbfp.golden.study.training import products  # takes torch

    design, outcome = core.design, Outcome("boosted", Comparison())
    schedule = MixedMantissa(base=design.format.mantissa, boosted=design.wide, epochs=EPOCHS)
    core.simulation.reset()
    start, tally = core.simulation.cycle, replace(core.tally)
    spent = {design.format.mantissa: [0, 0], design.wide: [0, 0]}
    with outcome.protocol():
        for number, each in enumerate(products(schedule, design.format, design.accumulate, steps=steps), 1):
            wide = each.mantissa == design.wide
            x, w = core.encode(each.x, wide=wide), core.encode(each.w, -2, wide=wide)
            before = replace(core.tally)
            outcome.comparison.add(each.name, core.matmul(x, w, bias=each.bias), each.result)
            spent[each.mantissa][0] += core.tally.macs - before.macs
            spent[each.mantissa][1] += core.tally.product_cycles - before.product_cycles
            if progress:
                progress(number, None)
    outcome.cycles, outcome.macs = core.simulation.cycle - start, core.tally.macs - tally.macs
    outcome.seconds = (core.tally.product_seconds + core.tally.encode_seconds
                       - tally.product_seconds - tally.encode_seconds)
    outcome.notes = {f"{name}_{mantissa}_bits": value for mantissa, both in spent.items()
                     for name, value in zip(("macs", "product_cycles"), both, strict=True)}
    return outcome
