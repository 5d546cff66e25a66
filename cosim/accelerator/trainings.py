"""Random small trainings on an accelerator, or on the golden machine, against PyTorch: bits and cycles of each step."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from hbfp.golden.machine.errors import MachineError
from hbfp.system import Accelerator

from ..manifest import Manifest
from ..simulate.verilator import BuildError, Progress
from . import training
from .device import BusError, Timing
from .programs import BANDWIDTHS, LATENCIES
from .untimed import Untimed


@dataclass
class Trained:
    """What came of random trainings.

    Attributes
    ----------
    trainings, numbers : int
        How many ran; numbers that were compared with PyTorch.
    failures : dict
        Seed -> what is wrong, and what was trained, one line.
    anew : Counter
        Limit of the accelerator -> how often a training met it, and was drawn anew.
    none : list of int
        Seeds of which every draw met a limit.
    """
    trainings: int = 0
    numbers: int = 0
    failures: dict[int, str] = field(default_factory=dict)
    anew: Counter[str] = field(default_factory=Counter)
    none: list[int] = field(default_factory=list)


def run(manifest: Manifest | None, system: Accelerator, seeds: Iterable[int], *, steps: int = 2, level: str = "-O1",
        progress: Progress | None = None, tell: Progress | None = None) -> Trained:
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
    Trained

    Raises
    ------
    BuildError
        If a tool fails.
    """
    from hbfp.golden.lower.training.random_trainings import random_training  # takes torch

    seeds, found = list(seeds), Trained()
    for count, seed in enumerate(seeds):
        drawn = random_training(system, seed, steps)
        found.anew.update(drawn.anew)
        if drawn.step is None and not drawn.failure:
            found.none.append(seed)
        else:
            found.trainings += 1
            line, compared = (drawn.failure, 0) if drawn.step is None else _trained(
                manifest, drawn, seed, steps, level, progress)
            found.numbers += compared
            if line:
                found.failures[seed] = f"{line}; {drawn.text}"
        if tell is not None:
            tell(count + 1, len(seeds))
    return found


def _trained(manifest, drawn, seed, steps, level, progress):
    """What is wrong with a training, one line or nothing; how many numbers were compared."""
    step, batches = drawn.step, iter(drawn.batches)
    try:
        if manifest is None:
            programs = step.programs
            runner = Untimed(programs[0], max(each.limit for each in programs), races=True)
            ended = training.train(runner, step, batches, steps, layers=True)
        else:
            pick = Random(seed)
            timing = Timing(pick.randint(*LATENCIES), pick.choice(BANDWIDTHS))
            ended = training.on_verilog(manifest, step, batches, steps, timing=timing, level=level, building=progress,
                                        layers=True)
    except BuildError:
        raise
    except (MachineError, BusError, ValueError) as error:
        return f"{type(error).__name__}: {error}", 0
    last, total = ended.results[-1], ended.total
    if last.cause is not None:
        return f"stops with cause {last.cause.name} at instruction {last.error_pc}", total.compared
    if total.mismatches:
        wrong = [name for name, each in ended.tensors.items() if each.mismatches]
        return (f"{total.mismatches} of {total.compared} numbers differ, in {', '.join(wrong[:4])}: {total.first[0]}",
                total.compared)
    return f"the cycle model says other cycles in steps {ended.late}" if ended.late else "", total.compared
