"""Two lowered networks in the contexts of one accelerator, alone and together, compared with PyTorch."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hbfp.golden.perf.accelerator import model
from hbfp.golden.perf.accelerator.times import Times
from hbfp.system import SHARES, Accelerator, Share

from ..bench.comparison import Comparison
from ..manifest import Manifest
from ..simulate.verilator import Progress
from . import pair
from .device import Device, Timing
from .host import Result, execute
from .network import compare

if TYPE_CHECKING:
    from hbfp.golden.lower.lowering import Lowered  # takes torch

#: Half of each memory for each network.
HALF = SHARES // 2
SHARES_OF_BOTH = (Share.of_all(0, HALF), Share.of_all(HALF, HALF))


@dataclass(frozen=True)
class Side:
    """One of two networks that shared an accelerator.

    Attributes
    ----------
    alone, together : Result
        What came of its program by itself, and beside the other.
    compared : Comparison
        Both runs against PyTorch.
    alone_model : Times
        What the cycle model says of the run by itself.
    model : Turns
        What it says of the run beside the other.
    """
    alone: Result
    together: Result
    compared: Comparison
    alone_model: Times
    model: model.Turns

    @property
    def exact(self) -> bool:
        """Whether the cycle model gives every cycle of both runs."""
        return self.alone.times == self.alone_model and (
            self.together.times, self.together.cycles) == (self.model.times, self.model.owned)


@dataclass(frozen=True)
class SideBySide:
    """What came of two networks on one accelerator.

    Attributes
    ----------
    sides : tuple of Side
        One for each context.
    ended : Ended
        What came of the run of both.
    seconds : float
        Wall time of all three runs in the simulator, without the build.
    """
    sides: tuple[Side, ...]
    ended: pair.Ended
    seconds: float

    @property
    def alone(self) -> int:
        """Cycles of the two programs one after the other."""
        return sum(side.alone.cycles for side in self.sides)

    @property
    def change(self) -> float:
        """Cycles beyond :attr:`alone`, for each time that the machine went from one program to the other."""
        return (self.ended.cycles - self.alone) / self.ended.changes


def run(manifest: Manifest, accelerator: Accelerator, lowered: Sequence["Lowered"], *, timing: Timing | None = None,
        layers: bool = False, priority: bool = False, level: str = "-O3", progress: Progress | None = None
        ) -> SideBySide:
    """Run two networks that were lowered for half of the memories.

    Parameters
    ----------
    manifest : Manifest
        The emitted accelerator.
    accelerator : Accelerator
        Its parameters, with two contexts.
    lowered : sequence of Lowered
        The networks of context 0 and 1.
    timing, layers, level, progress
        As for :func:`~cosim.accelerator.network.run`.
    priority : bool
        Whether context 0 keeps the machine at its YIELDs.

    Returns
    -------
    SideBySide

    Raises
    ------
    BuildError, BusError, TimesError
        As for :func:`~cosim.accelerator.network.run`.
    """
    timing = timing or Timing()
    both = pair.Pair(tuple(each.program for each in lowered), SHARES_OF_BOTH, priority)
    memory = np.empty(both.size, np.uint8)
    rule = manifest.data.latency, timing.latency, timing.bandwidth
    found = [Comparison(), Comparison()]

    def check(context):
        each = lowered[context]
        for name, values in each.expected.items():
            if layers or each.program.tensors[name].role == "output":
                found[context] += compare(each.program, name, both.dram(memory, context), values)

    with Device(manifest.verilog, manifest.top, beat=accelerator.beat, memory=memory, burst=accelerator.burst,
                contexts=2, timing=timing, level=level, progress=progress) as device:
        begun, alone = time.perf_counter(), []
        for context, program in enumerate(both.programs):
            both.place(memory)
            alone.append(execute(device, program, context=context, address=both.second * context,
                                 share=SHARES_OF_BOTH[context]))
            check(context)
        both.place(memory)
        ended = pair.execute(device, both)
        for context in (0, 1):
            check(context)
        seconds = time.perf_counter() - begun
    turns = model.together(both.programs, *rule, rung=ended.rung, priority=priority)
    sides = tuple(
        Side(alone[context], ended.results[context], found[context], model.times(program, *rule), turns[context])
        for context, program in enumerate(both.programs))
    return SideBySide(sides, ended, seconds)

