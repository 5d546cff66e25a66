"""Random small networks on an accelerator, or on the golden machine, against PyTorch: bits, and cycles of the model."""

from collections.abc import Iterable
from functools import partial

from hbfp.system import Accelerator

from ..manifest import Manifest
from ..simulate.verilator import Progress
from . import drawn, network, untimed


def run(manifest: Manifest | None, system: Accelerator, seeds: Iterable[int], *, level: str = "-O1",
        progress: Progress | None = None, tell: Progress | None = None) -> drawn.Found:
    """Run the networks of seeds, each in a DRAM of its own speed, and compare every tensor that PyTorch has.

    Parameters
    ----------
    manifest : Manifest or None
        The emitted accelerator, whose cycles are compared with the cycle model; None: the golden machine, which has
        none, but says whether accesses race.
    system : Accelerator
        Its parameters.
    seeds : iterable of int
        At least one.
    level, progress
        As for :class:`~cosim.accelerator.device.Device`.
    tell : callable, optional
        Called with (done, total) as networks end.

    Returns
    -------
    Found

    Raises
    ------
    BuildError
        If a tool fails.
    """
    from hbfp.golden.lower.random_networks import random_network  # takes torch

    return drawn.each(seeds, partial(random_network, system), partial(_line, manifest, level, progress), tell)


def _line(manifest, level, progress, found, one, seed):
    """What is wrong with a network."""
    ended = untimed.run(one.lowered, layers=True, races=True) if manifest is None else network.run(
        manifest, one.lowered, timing=drawn.timing(seed), layers=True, level=level, progress=progress)
    found.numbers, found.cycles = found.numbers + ended.total.compared, found.cycles + ended.result.cycles
    return drawn.wrong(ended.result, ended.total, ended.tensors) or (
        "" if ended.model in (None, ended.result.times) else "the cycle model says other cycles")
