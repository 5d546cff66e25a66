"""Workloads on a Verilated machine, each program compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hbfp.golden.pods.compiler import compiled
from hbfp.golden.pods.execute import Values, execute, outputs
from hbfp.golden.pods.layers import Layer
from hbfp.golden.pods.machine import WHOLE
from hbfp.golden.pods.program import Program
from hbfp.pods import PodsDesign

from ..bench.comparison import Comparison
from . import workloads
from .check import Check, check
from .run import Pods
from .workloads import JOB

#: Name of a workload -> the function that runs it.
WORKLOADS: dict[str, Callable[..., None]] = {
    "digits": workloads.digits, "convolution": workloads.convolution, "transformer": workloads.transformer,
    "forward": workloads.forward, "few": workloads.few, "step": workloads.step, "full": workloads.full,
    "mixed": workloads.mixed}
#: Mantissa bits of the models of a mixed job; those that the machine does not have are left out.
MIXED = (8, 6, 4)


@dataclass
class Gain:
    """Cycles of a workload's models one after the other (``serial``), and of them as one job (``fused``)."""
    name: str
    serial: int
    fused: int

    @property
    def times(self) -> float:
        """Cycles one after the other, over those of the job."""
        return self.serial / self.fused


class Bench:
    """Runs workloads and keeps the checks.

    Parameters
    ----------
    design : hbfp.pods.PodsDesign
    chain : int
        As for :func:`golden.pods.compiler.compiled`.
    """

    def __init__(self, design: PodsDesign, chain: int = WHOLE) -> None:
        self.chain = chain
        self.design, self.pods = design, Pods(design)
        self.notes: list[str] = []
        self.checks: dict[str, list[Check]] = {}    # of each workload
        self.now: list[Check] = []    # of the one that runs
        self.first: Program | None = None
        self.alone = Comparison()    # results of models in a job with those of one alone

    def run(self, name: str, layers: Sequence[Layer]) -> dict[int, np.ndarray]:
        """Run a program of some layers, and compare all that it writes.

        Returns
        -------
        dict of int to ndarray of float32
            Number of a layer that no other one reads -> its results, (M, N).
        """
        job = compiled(self.design, layers, chain=self.chain)
        values = self.run_program(name, job.program, job.outcome.cycles)
        return outputs(job.program, values, [(gemm.m, gemm.n) for gemm in job.outcome.tiles.gemms])

    def run_program(self, name: str, program: Program, cycles: int | None = None) -> Values:
        """Run a program and compare all that it writes; return the golden values."""
        values = execute(program, self.design.core.format)
        self.now.append(check(name, self.design, program, self.pods.run(program), values, cycles))
        self.notes += [note for note in program.notes if note not in self.notes]
        self.first = self.first or program
        return values

    def same(self, name: str, got: np.ndarray, want: np.ndarray) -> None:
        """Compare a model's results in a job with those of its own program."""
        self.alone.add(name, got, want)

    def work(self, name: str, seed: int = 1) -> None:
        """Run a workload with numbers from a seed."""
        rng = np.random.default_rng(seed)
        self.checks[name] = self.now = []
        if name == "mixed":
            fmt = self.design.core.format
            formats = [replace(fmt, mantissa=bits) for bits in MIXED if bits <= fmt.mantissa]
            workloads.mixed(self, rng, formats)
        else:
            WORKLOADS[name](self, rng)

    def gains(self) -> list[Gain]:
        """What workloads of several models gained as one job."""
        found = []
        for name, checks in self.checks.items():
            jobs = [each.figures["cycles"] for each in checks if each.name.endswith(JOB)]
            if jobs:
                found.append(Gain(name, sum(each.figures["cycles"] for each in checks) - sum(jobs), sum(jobs)))
        return found
