"""A serving and a training network on one accelerator, and what users see of both."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hbfp.golden.lower.rewriting import Rewritten
from hbfp.program import Program
from hbfp.system import Accelerator

from ...dispatch import arrivals
from ..model import times as cycles_of
from . import events, quanta
from .limits import limits


@dataclass(frozen=True)
class Shift:
    """Two programs that share an accelerator, and the requests that come; times in cycles.

    Attributes
    ----------
    batch, timeout, service, places : int
        Requests of a batch, cycles to the timeout, cycles of a batch, requests that the queue holds.
    pieces : ndarray of int64
        Cycles of the quanta of a step of training, empty without one.
    cost : events.Costs
    arrivals : ndarray of int64
        Of the requests, ascending.
    train : Rewritten or None
        The training program with its YIELDs.
    alone : int
        Cycles of a step without YIELDs on a machine that it has for itself, from one to the next.
    limits : tuple of dict
        What limits a step, :func:`.limits.limits`: with its YIELDs, and alone.
    """
    batch: int
    timeout: int
    service: int
    places: int
    pieces: NDArray[np.int64]
    cost: events.Costs
    arrivals: NDArray[np.int64]
    train: Rewritten | None
    alone: int = 0
    limits: tuple[dict[str, float], ...] = ()

    @classmethod
    def of(cls, serve: Program, train: Program | None, accelerator: Accelerator, latency: dict[str, int],
           dram_latency: int, bandwidth: int, *, batch: int, load: float, timeout: float, quantum: float, places: int,
           requests: int, seed: int, arrivals: str, times: NDArray[np.float64] | None = None,
           alone: Program | None = None) -> Self:
        """From programs for half of the memories each.

        Parameters
        ----------
        serve, train : Program
            Of a full batch, and of a step; ``train`` may be None.
        accelerator : Accelerator
            Of two contexts.
        latency, dram_latency, bandwidth
            As of :func:`golden.perf.accelerator.model.times`.
        batch : int
            Requests of a batch.
        load : float
            Share of the time that full batches take.
        timeout, quantum : float
            In times of a batch.
        places, requests, seed : int
            Of the queue; how many come; of their times.
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
        service = _cycles(serve, latency, *memory)
        busy, step = (), 0
        if train is None:
            pieces, cost, cut = np.zeros(0, np.int64), events.Costs.alone(), None
        else:
            cut, found = quanta.yielding(train, max(1, int(quantum * service)), latency, *memory)
            pieces = quanta.quanta(cut.program, found)
            cost = events.costs(serve, cut.program, pieces, accelerator, latency, *memory)
            own = cycles_of(alone or train, latency, *memory)
            step = own.cycles + cost.again
            busy = limits(cut.program, found, bandwidth), limits(alone or train, own, bandwidth)
        return cls(batch, round(timeout * service), service, places, pieces, cost,
                   _cycles_of(arrivals, requests, load * batch / service, seed, times), cut, step, busy)

    @property
    def bound(self) -> int:
        """Cycles that a request takes at most that finds a place in the queue."""
        return int(self.bound_of(self.places))

    def bound_of(self, waiting: NDArray[np.int64] | int) -> NDArray[np.int64] | int:
        """Cycles that a request takes at most, so many of which wait when it comes, itself included."""
        return events.bound(self.batch, self.timeout, self.service, self.pieces, self.cost, waiting)

    def served(self) -> "Served":
        """Simulate all of it."""
        run = events.simulate(self.arrivals, self.batch, self.timeout, self.service, self.pieces, self.cost)
        return Served(self, run, int((run.latency > self.bound_of(run.waiting)).sum()))


@dataclass(frozen=True)
class Served:
    """What came of a shift.

    Attributes
    ----------
    shift : Shift
    run : events.Run
    exceeded : int
        Requests that took longer than the bound for as many as waited when they came; 0, or the bound is wrong.
    """
    shift: Shift
    run: events.Run
    exceeded: int

    def as_dict(self) -> dict[str, Any]:
        """Figures by name; cycles, unless a line says otherwise."""
        shift, run = self.shift, self.run
        # Of training: whole steps, its cycles over those that no batch took, and over what a trainer alone would do.
        quantum = int(shift.pieces.max(initial=0))
        own = int(shift.pieces.sum())
        trained = {"steps": run.pieces // len(shift.pieces), "step": own + shift.cost.again, "quantum": quantum,
                   "alone": shift.alone, "of_idle": run.training / max(run.idle, 1),
                   "of_dedicated": run.training / own * shift.alone / run.cycles,
                   "limits": shift.limits[0], "limits_alone": shift.limits[1]} if own else {"steps": 0}
        p50, p99 = np.quantile(run.latency, (0.5, 0.99)).tolist()
        return {"requests": len(run.latency), "batch": shift.batch, "batches": len(run.fills), "service": shift.service,
                "timeout": shift.timeout, "p50": p50, "p99": p99, "max": int(run.latency.max()), "bound": shift.bound,
                "exceeded": self.exceeded, "beyond_queue": int((run.waiting > shift.places).sum()),
                "cycles": run.cycles, "idle": run.idle, "fill": float(run.fills.mean()) / shift.batch, **trained,
                "changes": {"enter": shift.cost.enter, "leave": shift.cost.leave.tolist(), "again": shift.cost.again}}


def _cycles(program, latency, dram_latency, bandwidth):
    return cycles_of(program, latency, dram_latency, bandwidth).cycles


def _cycles_of(kind, requests, rate, seed, given):
    """The cycles in which requests come."""
    found = arrivals.times(kind, requests, rate, seed) if given is None else given
    return np.floor(found).astype(np.int64)
