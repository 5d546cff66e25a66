"""A lowered network on the Verilated accelerator: every output, and on request every layer's tensor, compared."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hbfp.golden.machine.layouts import unpack
from hbfp.golden.perf.accelerator.layers import by_layer
from hbfp.golden.perf.accelerator.model import times
from hbfp.golden.perf.accelerator.times import Times
from hbfp.program import Program

from ..bench.comparison import Comparison
from ..manifest import Manifest
from ..simulate.verilator import Progress
from .device import Device, Timing
from .host import Result, execute, place, room

if TYPE_CHECKING:
    from hbfp.golden.lower.lowering import Lowered  # takes torch


@dataclass
class NetworkRun:
    """What came of a run.

    Attributes
    ----------
    result : Result
        Cycles, counters, times.
    tensors : dict
        Name -> :class:`~cosim.bench.comparison.Comparison` with PyTorch.
    rows : list of dict
        The table by layer; empty without times.
    seconds, processor : float
        Wall time and processor time of the simulation alone, in seconds.
    model : Times or None
        What the cycle model says, if the program ended well; None on the golden machine.
    total : Comparison
        All of ``tensors`` together.
    """
    result: Result
    tensors: dict[str, Comparison]
    rows: list[dict[str, Any]]
    seconds: float
    processor: float
    model: Times | None
    total: Comparison = field(default_factory=Comparison)

    def __post_init__(self):
        for each in self.tensors.values():
            self.total += each


def run(manifest: Manifest, lowered: "Lowered", *, timing: Timing | None = None, layers: bool = False,
        waves: str | os.PathLike[str] | None = None, level: str = "-O3", progress: Progress | None = None
        ) -> NetworkRun:
    """Run a lowered network.

    Parameters
    ----------
    manifest : Manifest
        The emitted accelerator.
    lowered : Lowered
        Its ``program``, and what PyTorch has: ``expected``, name of a tensor -> float32 array.
    timing : Timing
        Speed of the DRAM.
    layers : bool
        Compare every tensor that PyTorch has, not outputs alone.
    waves, level, progress
        As for :class:`~cosim.accelerator.device.Device`.

    Returns
    -------
    NetworkRun

    Raises
    ------
    BuildError, BusError, TimesError
        If a tool fails, the accelerator breaks a rule or does not end, or does other work than the program's.
    """
    program, timing = lowered.program, timing or Timing()
    size, base = room(program)
    memory = np.empty(size, np.uint8)
    place(program, memory)
    accelerator = program.accelerator
    with Device(manifest.verilog, manifest.top, beat=accelerator.beat, memory=memory, burst=accelerator.burst,
                contexts=accelerator.contexts, timing=timing, waves=waves, level=level, progress=progress) as device:
        begun = time.perf_counter(), time.process_time()
        result = execute(device, program)
        spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
    tensors = {name: compare(program, name, memory[base:], values) for name, values in lowered.expected.items()
               if layers or program.tensors[name].role == "output"}
    if result.times is None:
        return NetworkRun(result, tensors, [], *spent, None)
    model = times(program, manifest.data.latency, timing.latency, timing.bandwidth)
    rows = beside_model(program, result.times, model)
    for row in rows:
        if row["name"] in tensors:
            row |= {"compared": tensors[row["name"]].compared, "mismatches": tensors[row["name"]].mismatches}
    return NetworkRun(result, tensors, rows, *spent, model)


def beside_model(program: Program, found: Times, model: Times) -> list[dict[str, Any]]:
    """The table by layer, of which each also has the cycle model's ``model_cycles``."""
    rows = by_layer(program, found)
    for row, modelled in zip(rows, by_layer(program, model), strict=True):
        row["model_cycles"] = modelled["cycles"]
    return rows


def compared(lowered: "Lowered", layers: bool, read: Callable[[str], np.ndarray]) -> dict[str, Comparison]:
    """Compare with PyTorch what ``read`` gives by name: outputs, with ``layers`` every tensor that PyTorch has."""
    tensors: dict[str, Comparison] = {}
    for name, values in lowered.expected.items():
        if layers or lowered.program.tensors[name].role == "output":
            tensors[name] = Comparison()
            tensors[name].add(name, read(name), np.ascontiguousarray(values, np.float32))
    return tensors


def compare(program: Program, name: str, dram: np.ndarray, expected: np.ndarray) -> Comparison:
    """Compare a tensor in DRAM (bytes from the base register on) with the float32 array that it should be, bitwise."""
    tensor = program.tensors[name]
    data = dram[tensor.address:tensor.address + tensor.bytes(program.accelerator)].tobytes()
    result = Comparison()
    result.add(name, unpack(program.accelerator, tensor, data), np.ascontiguousarray(expected, np.float32))
    return result
