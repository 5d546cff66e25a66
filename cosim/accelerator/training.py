"""Training on the Verilated accelerator, or on the golden machine: steps of one program, PyTorch beside it."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hbfp.golden.perf.accelerator.model import times
from hbfp.golden.perf.accelerator.times import Times
from hbfp.program import Program

from ..bench.comparison import Comparison
from ..manifest import Manifest
from ..simulate.verilator import Progress
from .device import Device, Timing
from .host import UNDEFINED, Result, execute, replace_program, room
from .network import beside_model
from .placed import Place, Placed, bring
from .untimed import Untimed

if TYPE_CHECKING:
    from hbfp.golden.lower.training.job import Job  # takes torch
    from hbfp.golden.lower.training.mixed import MixedStep
    from hbfp.golden.lower.training.step import Step


class Runner(Place, Protocol):
    """A program with its DRAM, which stays from one run to the next."""

    @property
    def program(self) -> Program:
        """The program as it is."""

    def turn_to(self, program: Program, kept: range) -> None:
        """Let another program take the place of this one; the bytes ``kept`` of its DRAM stay as they are."""

    def run(self, arguments: Sequence[int], seed: int = 0) -> Result:
        """Run the program with these arguments to its end, where the register ``seed`` has that value."""


class Timed(Placed):
    """The Verilated accelerator with its DRAM.

    Parameters
    ----------
    device : Device
    program : Program
        The first program in its memory.
    base : int
        Where the data of all its programs begin.
    """

    def __init__(self, device: Device, program: Program, base: int) -> None:
        super().__init__(device.memory, program, base)
        self.device = device

    def turn_to(self, program: Program, kept: range) -> None:
        """Let another program take the place of this one; the bytes ``kept`` of its DRAM stay as they are."""
        self.program = program
        replace_program(program, self.memory, self.base, kept)

    def run(self, arguments: Sequence[int], seed: int = 0) -> Result:
        """Ring the doorbell, and wait for the end; raises as :func:`cosim.accelerator.host.execute`."""
        return execute(self.device, replace(self.program, arguments=tuple(arguments), seed=seed), base=self.base)


@dataclass
class TrainingRun:
    """What came of a training.

    Attributes
    ----------
    losses, wanted : list of float32 array
        The losses of each step, one for each model: the device's, and PyTorch's.
    results : list of Result
        What came of each step.
    total : Comparison
        All that was compared with PyTorch.
    tensors : dict of str to Comparison
        The same by name of the tensor.
    late : list of int
        Steps, from 0 on, whose cycles are not those of the cycle model.
    seconds, processor : float
        Wall time and processor time of the device alone, in seconds.
    rows : list of dict
        The table by layer, of the last step; empty without times.
    model : Times or None
        What the cycle model says of the last step.
    modelled : int
        What it says of all steps, in cycles.
    turns : list of int
        Steps, from 0 on, before which another program has taken the place of the one before.
    """
    losses: list[np.ndarray] = field(default_factory=list)
    wanted: list[np.ndarray] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    total: Comparison = field(default_factory=Comparison)
    tensors: dict[str, Comparison] = field(default_factory=dict)
    late: list[int] = field(default_factory=list)
    seconds: float = 0.0
    processor: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    model: Times | None = None
    modelled: int = 0
    turns: list[int] = field(default_factory=list)


def train(runner: Runner, whole: "Step | Job | MixedStep", batches: Iterator[Any], steps: int, *, every: bool = False,
          layers: bool = False, modelled: Callable[[Program], Times] | None = None,
          progress: Progress | None = None) -> TrainingRun:
    """Do steps of training on a device, and in PyTorch beside it.

    Parameters
    ----------
    runner : Runner
        A device with the first step's program.
    whole : Step, Job or MixedStep
    batches : iterator
        As the step takes them.
    steps : int
        How many; fewer are done if the device ends with an error, or there are no more batches.
    every : bool
        Compare gradients, parameters and state at every step, not at the last alone. The loss always is.
    layers : bool
        Compare at every step what each layer gives, forward and backward, too.
    modelled : callable
        Gives the cycles of a step's program by the cycle model; None if the device has none.
    progress : callable, optional
        Called with (done, steps).

    Returns
    -------
    TrainingRun
    """
    found, before = TrainingRun(), whole.at(0)
    for number, batch in enumerate(islice(batches, steps)):
        step = whole.at(number)
        if turns := step is not before:
            runner.turn_to(step.lowered.program, step.kept)
            found.turns.append(number)
        before, arguments = step, step.arguments()
        bring(runner, step, batch, arguments)
        if chosen := step.instructions(batch):
            runner.rewrite(chosen)
        begun = time.perf_counter(), time.process_time()
        result = runner.run(arguments, step.key)
        found.seconds += time.perf_counter() - begun[0]
        found.processor += time.process_time() - begun[1]
        found.results.append(result)
        if result.cause is not None:
            break
        inner = step.layers(batch) if layers else {}
        expected = step.advance(batch)
        changed = expected if every or layers or number == steps - 1 else {name: expected[name] for name in step.losses}
        for name, values in (inner | changed).items():
            compared = Comparison()
            compared.add(f"step {number}, {name}", runner.read(name, step.shift(name, arguments)),
                         np.ascontiguousarray(values, np.float32))
            found.total += compared
            found.tensors.setdefault(name, Comparison()).__iadd__(compared)
        for losses, read in ((found.losses, runner.read), (found.wanted, expected.__getitem__)):
            losses.append(np.array([read(name) for name in step.losses], np.float32))
        if modelled is not None:
            found.model = modelled(runner.program) if chosen or turns or found.model is None else found.model
            found.modelled += found.model.cycles
            found.late += [number] if found.model != result.times else []
        if progress is not None:
            progress(number + 1, steps)
    return found


def on_machine(step: "Step | Job | MixedStep", batches: Iterator[Any], steps: int, **options: Any) -> TrainingRun:
    """:func:`train` on the golden machine."""
    programs = step.programs
    return train(Untimed(programs[0], max(each.limit for each in programs)), step, batches, steps, **options)


def on_verilog(manifest: Manifest, step: "Step | Job | MixedStep", batches: Iterator[Any], steps: int, *,
               timing: Timing | None = None, level: str = "-O3", building: Progress | None = None,
               **options: Any) -> TrainingRun:
    """:func:`train` on the Verilated accelerator of a manifest, built if it is not yet; with the table by layer.

    Raises
    ------
    BuildError, BusError, TimesError
        If a tool fails, the accelerator breaks a rule or does not end, or does other work than the program's.
    """
    programs, timing = step.programs, timing or Timing()
    base, accelerator = max(room(each)[1] for each in programs), programs[0].accelerator
    memory = np.full(base + max(each.limit for each in programs), UNDEFINED, np.uint8)
    replace_program(programs[0], memory, base)

    def modelled(program):
        return times(program, manifest.data.latency, timing.latency, timing.bandwidth)
    with Device(manifest.verilog, manifest.top, beat=accelerator.beat, memory=memory, burst=accelerator.burst,
                contexts=accelerator.contexts, timing=timing, level=level, progress=building) as device:
        runner = Timed(device, programs[0], base)
        found = train(runner, step, batches, steps, modelled=modelled, **options)
    if found.results and found.results[-1].times is not None and found.model is not None:
        found.rows = beside_model(runner.program, found.results[-1].times, found.model)
    return found
