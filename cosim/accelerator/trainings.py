"""Random small trainings on an accelerator, or on the golden machine, against PyTorch: bits and cycles of each step."""

from collections.abc import Iterable
from functools import partial

from hbfp.system import Accelerator

from ..manifest import Manifest
from ..simulate.verilator import Progress
from . import drawn, training
from .untimed import Untimed


def run(manifest: Manifest | None, system: Accelerator, seeds: Iterable[int], *, steps: int = 2, level: str = "-O1",
        progress: Progress | None = None, tell: Progress | None = None) -> drawn.Found:
    """Do the trainings of seeds, each in a DRAM of its own speed, and compare what every layer of each step gives.

    Parameters
    ----------
    manifest : Manifest or None
        The emitted accelerator, whose cycles are compared with the cycle model; None: the golden machine, which has
        none, but says whether accesses race.
    system : Accelerator
        Its parameters.
    seeds : iterable of int
        At least one.
    steps : int
        Of each training.
    level, progress
        As for :class:`~cosim.accelerator.device.Device`.
    tell : callable, optional
        Called with (done, total) as trainings end.

    Returns
    -------
    Found

    Raises
    ------
    BuildError
        If a tool fails.
    """
    from hbfp.golden.lower.training.random_trainings import random_training  # takes torch

    return drawn.each(seeds, partial(random_training, system, steps=steps),
                      partial(_line, manifest, steps, level, progress), tell)


def _line(manifest, steps, level, progress, found, one, seed):
    """What is wrong with a training."""
    step, batches = one.step, iter(one.batches)
    if manifest is None:
        programs = step.programs
        runner = Untimed(programs[0], max(each.limit for each in programs), races=True)
        ended = training.train(runner, step, batches, steps, layers=True)
    else:
        ended = training.on_verilog(manifest, step, batches, steps, timing=drawn.timing(seed), level=level,
                                    building=progress, layers=True)
    found.numbers += ended.total.compared
    return drawn.wrong(ended.results[-1], ended.total, ended.tensors) or (
        f"the cycle model says other cycles in steps {ended.late}" if ended.late else "")
