"""A serving and a training network behind one dispatcher, and what users see of both."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hbfp.program import Program
from hbfp.system import Accelerator

from ...dispatch import arrivals
from ..model import times as cycles_of
from .compiled import Run, follow
from .limits import limits
from .plan import HOST, Plan

#: Turns that a picture may show.
TURNS = 2000


@dataclass(frozen=True)
class Shift:
    """Two programs that share an accelerator, and the requests that come; times in cycles.

    Attributes
    ----------
    plan : Plan
    arrivals : ndarray of int64
        Of the requests, ascending.
    alone : int
        Cycles of a step without YIELDs on a machine that it has for itself, from one to the next.
    limits : tuple of dict
        What limits a step, :func:`.limits.limits`: with its YIELDs, and alone.
    """
    plan: Plan
    arrivals: NDArray[np.int64]
    alone: int = 0
    limits: tuple[dict[str, float], ...] = ()

    @classmethod
    def of(cls, serve: Program, train: Program | None, accelerator: Accelerator, latency: dict[str, int],
           dram_latency: int, bandwidth: int, *, batch: int, load: float, requests: int, seed: int, arrivals: str,
           times: NDArray[np.float64] | None = None, alone: Program | None = None, **asked: Any) -> Self:
        """From programs for half of the memories each.

        Parameters
        ----------
        serve, train, accelerator, latency, dram_latency, bandwidth, batch
            As of :meth:`.plan.Plan.of`, and so are ``asked``.
        load : float
            Share of the time that full batches take.
        requests, seed : int
            How many come; of their times.
        arrivals : str
            One of :data:`golden.perf.dispatch.arrivals.KINDS`, unless ``times`` has the cycles in which they come.
        alone : Program, optional
            Of a step for all of the memories, of a machine that trains alone; by default ``train``.

        Raises
        ------
        LoweringError
            If the training cannot yield often enough.
        """
        memory = dram_latency, bandwidth
        plan = Plan.of(serve, train, accelerator, latency, *memory, batch=batch, **asked)
        busy, step = (), 0
        if plan.train is not None and plan.times is not None:
            given = alone or train
            assert given is not None
            own = cycles_of(given, latency, *memory)
            step = own.cycles + HOST
            busy = limits(plan.train.program, plan.times, bandwidth), limits(given, own, bandwidth)
        return cls(plan, arriving(arrivals, requests, load * batch / plan.service, seed, times), step, busy)

    def served(self) -> "Served":
        """Simulate all of it."""
        plan = self.plan
        run, without = (follow(plan.unit, replace(plan.policy, training=trains), plan.service, plan.quanta,
                               self.arrivals, again=HOST, turns=TURNS) for trains in (True, False))
        return Served(self, run, without)


@dataclass(frozen=True)
class Served:
    """What came of a shift.

    Attributes
    ----------
    shift : Shift
    run, without : Run
        With training, and without.
    """
    shift: Shift
    run: Run
    without: Run

    @property
    def exceeded(self) -> int:
        """Requests that took longer than the bound for as many as waited when they came; 0, or the bound is wrong."""
        waiting, at = np.unique(self.run.waiting, return_inverse=True)
        bounds = np.array([self.shift.plan.bound(each) for each in waiting.tolist()])
        return int((self.run.latency > bounds[at]).sum())

    def as_dict(self) -> dict[str, Any]:
        """Figures by name; cycles, unless a line says otherwise."""
        shift, run, plan = self.shift, self.run, self.shift.plan
        own, cycles = int(plan.pieces.sum()), int(run.finished[-1])
        ends = np.cumsum(run.fills) - 1
        idle = cycles - int((run.finished - run.started)[ends].sum())
        # Of training: whole steps, its cycles over those that it may have, and over what a trainer alone would do.
        training = {"steps": run.steps, "step": own, "quantum": plan.quantum, "alone": shift.alone,
                    **plan.later(run.finished - self.without.finished),
                    **plan.shares(run.ran, len(run.fills), idle),
                    "of_dedicated": plan.trained(run.ran) / own * shift.alone / cycles,
                    "overdue": run.overdue, "limits": shift.limits[0], "limits_alone": shift.limits[1]
                    } if own else {"steps": 0}
        p50, p99 = np.quantile(run.latency, (0.5, 0.99)).tolist()
        return {"requests": len(run.latency), "batch": plan.policy.batch, "batches": len(run.fills),
                "service": plan.service, "timeout": int(plan.policy.timeout), "p50": p50, "p99": p99,
                "max": int(run.latency.max()), "bound": plan.bound(plan.unit.depth), "exceeded": self.exceeded,
                "refused": run.refused, "outside": int((run.arrived - shift.arrivals).max()), "cycles": cycles,
                "idle": idle, "fill": float(run.fills.mean()) / plan.policy.batch, **training}


def arriving(kind: str, requests: int, rate: float, seed: int, given: NDArray[np.float64] | None = None
             ) -> NDArray[np.int64]:
    """The cycles in which requests come, ``rate`` of them a cycle unless ``given`` has them."""
    found = arrivals.times(kind, requests, rate, seed) if given is None else given
    return np.floor(found).astype(np.int64)[:requests]
