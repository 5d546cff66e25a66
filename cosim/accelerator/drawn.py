"""Something random for each number: it is drawn and lowered, run and compared with PyTorch; what came of all."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from hbfp.golden.machine.errors import MachineError

from ..bench.comparison import Comparison
from ..simulate.verilator import BuildError, Progress
from .device import BusError, Timing
from .host import Result
from .programs import BANDWIDTHS, LATENCIES

if TYPE_CHECKING:
    from hbfp.golden.lower.fitting import Drawn  # takes torch


@dataclass
class Found:
    """What came of random networks, or trainings.

    Attributes
    ----------
    count, numbers, cycles : int
        How many ran; numbers that were compared with PyTorch; cycles of the Verilog, of networks.
    failures : dict
        Seed -> what is wrong, and what was drawn, one line.
    anew : Counter
        Limit of the accelerator -> how often it was met, and something else drawn.
    none : list of int
        Seeds of which every draw met a limit.
    """
    count: int = 0
    numbers: int = 0
    cycles: int = 0
    failures: dict[int, str] = field(default_factory=dict)
    anew: Counter[str] = field(default_factory=Counter)
    none: list[int] = field(default_factory=list)


def each(seeds: Iterable[int], draw: Callable[[int], Any], run: Callable[[Found, Any, int], str],
         tell: Progress | None) -> Found:
    """Draw and run what seeds stand for.

    Parameters
    ----------
    seeds : iterable of int
    draw : callable
        Seed -> :class:`~golden.lower.fitting.Drawn`.
    run : callable
        Counts in what is found what was compared of a drawn one of a seed; what is wrong, one line or nothing.
    tell : callable or None
        Called with (done, total).
    """
    seeds, found = list(seeds), Found()
    for done, seed in enumerate(seeds, 1):
        drawn: Drawn = draw(seed)
        found.anew.update(drawn.anew)
        if not drawn.fits and not drawn.failure:
            found.none.append(seed)
        else:
            found.count += 1
            if line := drawn.failure or _run(found, drawn, seed, run):
                found.failures[seed] = f"{line}; {drawn.text}"
        if tell is not None:
            tell(done, len(seeds))
    return found


def _run(found, drawn, seed, run):
    """What is wrong, whatever it is; BuildError if a tool fails."""
    try:
        return run(found, drawn, seed)
    except BuildError:
        raise
    except (MachineError, BusError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def timing(seed: int) -> Timing:
    """The speed of the DRAM of a seed."""
    pick = Random(seed)
    return Timing(pick.randint(*LATENCIES), pick.choice(BANDWIDTHS))


def wrong(result: Result, total: Comparison, tensors: Mapping[str, Comparison]) -> str:
    """How a run ended that should not, or what differs of its numbers, one line or nothing."""
    if result.cause is not None:
        return f"stops with cause {result.cause.name} at instruction {result.error_pc}"
    if total.mismatches:
        names = [name for name, one in tensors.items() if one.mismatches]
        return f"{total.mismatches} of {total.compared} numbers differ, in {', '.join(names[:4])}: {total.first[0]}"
    return ""
