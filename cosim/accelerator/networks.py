"""Random small networks on an accelerator, or on the golden machine, against PyTorch: bits, and cycles of the model."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from hbfp.golden.machine.errors import MachineError
from hbfp.system import Accelerator

from ..manifest import Manifest
from ..simulate.verilator import BuildError, Progress
from . import network, untimed
from .device import BusError, Timing
from .programs import BANDWIDTHS, LATENCIES

if TYPE_CHECKING:
    from hbfp.golden.lower.lowering import Lowered  # takes torch


@dataclass
class Ran:
    """What came of random networks.

    Attributes
    ----------
    networks, numbers, cycles : int
        How many ran; numbers that were compared with PyTorch; cycles of the Verilog.
    failures : dict
        Seed -> what is wrong, and the network, one line.
    anew : Counter
        Limit of the accelerator -> how often a network met it, and was drawn anew.
    none : list of int
        Seeds of which every draw met a limit.
    """
    networks: int = 0
    numbers: int = 0
    cycles: int = 0
    failures: dict[int, str] = field(default_factory=dict)
    anew: Counter[str] = field(default_factory=Counter)
    none: list[int] = field(default_factory=list)


def run(manifest: Manifest | None, system: Accelerator, seeds: Iterable[int], *, level: str = "-O1",
        progress: Progress | None = None, tell: Progress | None = None) -> Ran:
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
    Ran

    Raises
    ------
    BuildError
        If a tool fails.
    """
    from hbfp.golden.lower.random_networks import random_network  # takes torch

    seeds, found = list(seeds), Ran()
    for count, seed in enumerate(seeds):
        drawn = random_network(system, seed)
        found.anew.update(drawn.anew)
        if drawn.lowered is None and not drawn.failure:
            found.none.append(seed)
        else:
            found.networks += 1
            line = drawn.failure if drawn.lowered is None else _line(manifest, drawn.lowered, seed, level, progress,
                                                                     found)
            if line:
                found.failures[seed] = f"{line}; {drawn.text}"
        if tell is not None:
            tell(count + 1, len(seeds))
    return found


def _line(manifest, lowered: "Lowered", seed, level, progress, found: Ran) -> str:
    """What is wrong with a network, one line or nothing; what was compared is counted."""
    pick = Random(seed)
    timing = Timing(pick.randint(*LATENCIES), pick.choice(BANDWIDTHS))
    try:
        ended = untimed.run(lowered, layers=True, races=True) if manifest is None else network.run(
            manifest, lowered, timing=timing, layers=True, level=level, progress=progress)
    except BuildError:
        raise
    except (MachineError, BusError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    found.numbers, found.cycles = found.numbers + ended.total.compared, found.cycles + ended.result.cycles
    if ended.result.cause is not None:
        return f"stops with cause {ended.result.cause.name} at instruction {ended.result.error_pc}"
    if ended.total.mismatches:
        wrong = [name for name, each in ended.tensors.items() if each.mismatches]
        return (f"{ended.total.mismatches} of {ended.total.compared} numbers differ, in {', '.join(wrong[:4])}: "
                f"{ended.total.first[0]}")
    return "" if ended.model in (None, ended.result.times) else "the cycle model says other cycles"
