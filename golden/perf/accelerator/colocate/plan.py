"""What is known before anything runs: times of batches and quanta behind a dispatcher, and a bound of the latency."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hbfp.golden.lower.rewriting import Rewritten
from hbfp.golden.perf.dispatch.bound import OVERHEAD, bound
from hbfp.golden.spec.dispatch import DispatchUnit, Policy
from hbfp.program import Program
from hbfp.system import Accelerator

from .. import control
from ..model import times
from ..times import Times
from . import quanta as yielding
from .dispatched import Quanta
from .dispatched import quanta as quanta_of

#: Cycles from the end of a step to the host's next doorbell, where no device says so.
HOST = 100
#: Cycles from the end of a batch or a quantum to the first of what follows at once, at least: what a change costs.
CHANGE = 8
#: Cycles from a start to its program's first where the machine is free, and until it is behind a program that ends with
#: an error and has nothing under way: the bound holds behind batches that fail, too.
_BEGIN, _BETWEEN = 1, control.SETTLED + 2


def behind(accelerator: Accelerator, service: int, training: Quanta | None, *, batch: int, timeout: float,
           patience: float = 0) -> tuple[DispatchUnit, Policy]:
    """The dispatcher of an accelerator, and what it is told: ``service`` are the cycles of a batch, in times of which
    timeout and patience are."""
    return DispatchUnit(depth=accelerator.dispatch, tag=32), Policy(
        batch=batch, timeout=round(timeout * service), training=training is not None,
        patience=round(patience * service), closes=True)


@dataclass(frozen=True)
class Plan:
    """A serving program and a training on an accelerator with a dispatcher.

    Attributes
    ----------
    unit : DispatchUnit
    policy : Policy
    service : int
        Cycles of a batch's program.
    pieces : ndarray of int64
        Cycles of a step's quanta, one behind the other; empty if nothing trains.
    quanta : Quanta or None
        The same as the dispatcher starts them.
    train : Rewritten or None
        The training program with its YIELDs.
    times : Times or None
        Of that program.
    places : Places or None
        Where it yields.
    reading : int
        Cycles by which the read of a ring's descriptors puts off what is to be started; 0 without a ring.
    """
    unit: DispatchUnit
    policy: Policy
    service: int
    pieces: NDArray[np.int64]
    quanta: Quanta | None
    train: Rewritten | None
    times: Times | None = None
    places: yielding.Places | None = None
    reading: int = 0

    @classmethod
    def of(cls, serve: Program, train: Program | None, accelerator: Accelerator, latency: dict[str, int],
           dram_latency: int, bandwidth: int, *, batch: int, timeout: float, quantum: float, patience: float = 0,
           places: yielding.Places | None = None) -> Self:
        """From programs for half of the memories each, the first with a full batch.

        Parameters
        ----------
        batch : int
            Requests of a batch.
        timeout, quantum, patience : float
            In times of a batch; the last one 0 for ever.
        places : Places, optional
            Those of another plan of the same programs, with which to begin.

        Raises
        ------
        LoweringError
            If the training cannot yield often enough.
        """
        memory = dram_latency, bandwidth
        service = times(serve, latency, *memory).cycles
        pieces, each, cut, found = np.zeros(0, np.int64), None, None, None
        if train is not None:
            most = max(1, int(quantum * service))
            places = places or yielding.sought(train, most, latency, *memory)
            places, cut, found = yielding.refined(places, most, latency, *memory)
            pieces, each = yielding.quanta(cut.program, found), quanta_of(cut.program, latency, *memory, found)
        unit, policy = behind(accelerator, service, each, batch=batch, timeout=timeout, patience=patience)
        return cls(unit, policy, service, pieces, each, cut, found, places)

    @property
    def quantum(self) -> int:
        """Cycles of the longest quantum, fetched anew."""
        return 0 if self.quanta is None else int(self.quanta.anew.max())

    @property
    def delay(self) -> int:
        """Cycles by which training makes a request later at most, while no part of a batch waits behind a batch: those
        of a quantum, of a change of contexts, and of what a ring puts off."""
        return self._quantum + OVERHEAD + _BEGIN + self.reading

    def later(self, cycles: NDArray[np.int64]) -> dict[str, int]:
        """By how many cycles training makes a request later at most, of those of each; what that is bound by, and how
        many differ by more."""
        return {"later": int(cycles.max()), "later_bound": self.delay, "beyond": int((abs(cycles) > self.delay).sum())}

    def trained(self, ran: NDArray[np.int64]) -> int:
        """Cycles of quanta that have run so often each, as they are one behind the other."""
        return int((ran * self.pieces).sum())

    def shares(self, ran: NDArray[np.int64], batches: int, idle: int) -> dict[str, float]:
        """Cycles of training over those that no batch took, and over these without what changes of programs cost at
        least, one behind each batch and each quantum.

        Parameters
        ----------
        ran : ndarray of int64, (quanta of a step,)
            How often each has run.
        batches, idle : int
            How many there were; cycles that none of them took.
        """
        trained, changes = self.trained(ran), CHANGE * (batches + int(ran.sum()))
        if self.quanta is not None:    # without a change the next quantum would begin behind the instruction YIELD
            changes += int((ran * (self.quanta.on - self.pieces)).sum())
        return {"of_idle": trained / max(idle, 1), "of_allowed": trained / max(idle - changes, 1)}

    @property
    def _quantum(self) -> int:
        return min(self.quantum, self.policy.patience or self.quantum)

    def bound(self, waiting: int) -> int:
        """Cycles that a request takes at most, so many of which wait when it comes, itself included."""
        return int(bound(self.policy.batch, self.policy.timeout, self._quantum, self.service, waiting,
                         OVERHEAD + _BEGIN + _BETWEEN + self.reading, self.policy.closes))
