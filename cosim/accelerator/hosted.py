"""Programs with parts of the model on the host between them: what each leaves in DRAM the next one finds there."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hbfp.golden.perf.accelerator.model import times
from hbfp.program import Program

from ..bench.comparison import Comparison
from ..manifest import Manifest
from ..simulate.verilator import Progress
from .device import Device, Timing
from .host import UNDEFINED, Result, put, room
from .network import NetworkRun, beside_model, compared
from .training import Timed
from .untimed import Untimed

if TYPE_CHECKING:
    from hbfp.golden.lower.split import Split  # takes torch


@dataclass
class HostedRun:
    """What came of a run.

    Attributes
    ----------
    runs : list of NetworkRun
        Of each program, in order, up to one that ends with an error.
    host : dict
        Name -> :class:`~cosim.bench.comparison.Comparison` of what the host itself gives of the model's results.
    written, read : int
        Bytes of DRAM that the host wrote and read between programs.
    """
    runs: list[NetworkRun] = field(default_factory=list)
    host: dict[str, Comparison] = field(default_factory=dict)
    written: int = 0
    read: int = 0


def run(manifest: Manifest | None, split: "Split", *, timing: Timing | None = None, layers: bool = False,
        progress: Progress | None = None) -> HostedRun:
    """Run the programs of a model, and its parts on the host of what the programs before them have given.

    Parameters
    ----------
    manifest : Manifest or None
        The emitted accelerator; None: the golden machine, without cycles.
    split : Split
        The programs, and the host's parts.
    timing, layers, progress
        As of :func:`cosim.accelerator.network.run`.

    Raises
    ------
    BuildError, BusError, TimesError
        If a tool fails, the accelerator breaks a rule or does not end, or does other work than the program's.
    """
    programs, timing = split.programs, timing or Timing()
    limit = max((each.limit for each in programs), default=0)
    if manifest is None or not programs:
        return _run(split, Untimed(programs[0], limit) if programs else None, None, layers)
    base = max(room(each)[1] for each in programs)
    memory = np.full(base + limit, UNDEFINED, np.uint8)
    put(programs[0], memory)
    accelerator = programs[0].accelerator
    with Device(manifest.verilog, manifest.top, beat=accelerator.beat, memory=memory, burst=accelerator.burst,
                contexts=accelerator.contexts, timing=timing, progress=progress) as device:
        def modelled(program: Program) -> Any:
            return times(program, manifest.data.latency, timing.latency, timing.bandwidth)
        return _run(split, Timed(device, programs[0], base), modelled, layers)


def _run(split, runner, modelled, layers):
    """Part by part."""
    found, there = HostedRun(), dict(split.known)
    for part in split.parts:
        if part.lowered is not None:
            runner.turn_to(part.lowered.program, range(0))
            given = {name: part.laid(name, there) for name in part.takes}
            if any(each.shape != part.lowered.program.tensors[name].shape for name, each in given.items()):
                return found                               # of other numbers than PyTorch's, as a part before it says
            for name, values in given.items():
                runner.write(name, values)
            begun = time.perf_counter(), time.process_time()
            result = runner.run(())
            spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
            found.runs.append(_compared(part.lowered, runner, result, spent, modelled, layers))
            if result.cause is not None:
                return found
            for name in part.reads:
                there |= part.back(name, runner.read(name))
            written, read = part.moved()
            found.written, found.read = found.written + written, found.read + read
        for host in part.hosts:
            there |= host.run(there)
    for name, values in split.expected.items():
        found.host[name] = Comparison()
        own, wanted = ((each.float() if each.is_floating_point() else each).contiguous().numpy().astype(np.float32)
                       for each in (there[name], values))
        found.host[name].add(name, own, wanted)
    return found


def _compared(lowered, runner, result: Result, spent: tuple[float, float], modelled, layers):
    """What came of a program."""
    program, tensors = lowered.program, compared(lowered, layers, runner.read) if result.cause is None else {}
    if modelled is None or result.times is None:
        return NetworkRun(result, tensors, [], *spent, None)
    model = modelled(program)
    return NetworkRun(result, tensors, beside_model(program, result.times, model), *spent, model)
