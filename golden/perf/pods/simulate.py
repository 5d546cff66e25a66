"""One run of the machine: networks to tiles, tiles to a schedule, and the figures of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import check, state
from .first_fit import first_fit
from .graph import Gemm, Graph
from .machine import Machine
from .tiling import Tiles, cut


@dataclass(frozen=True)
class Tenant:
    """A network that runs: when it arrives (cycles), and its priority; the lowest number goes first."""
    graph: Graph
    arrival: int = 0
    priority: int = 0


@dataclass(frozen=True)
class Outcome:
    """A schedule with what it was made from.

    Attributes
    ----------
    machine : Machine
    tiles : Tiles
    plan : state.Schedule
    tenant : ndarray of int
        Of each product.
    length : ndarray of int
        Cycles of each round.
    finished : ndarray of int
        Cycle in which each tenant's last row is in its bank.
    """
    machine: Machine
    tiles: Tiles
    plan: state.Schedule
    tenant: np.ndarray
    length: np.ndarray
    finished: np.ndarray

    @property
    def cycles(self) -> int:
        """From the first round to the last row of the last result."""
        return int(self.finished.max())

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all products; zeros that fill up tiles are none."""
        return sum(each.macs for each in self.tiles.gemms)

    @property
    def utilisation(self) -> float:
        """Multiply-accumulates over those that all elements could do in all cycles."""
        machine = self.machine
        return self.macs / (machine.pods * machine.rows * machine.columns * self.cycles)

    def figures(self) -> dict[str, Any]:
        """The figures of a run, by the names that its JSON has."""
        return {"cycles": self.cycles, "rounds": len(self.length), "round_cycles": int(self.length.max()),
                "operations": self.tiles.operations, "utilisation": self.utilisation,
                "occupancy": self.tiles.operations / (self.machine.pods * len(self.length)), "macs": self.macs,
                "additions": len(self.plan.add_a), "chained": int((self.plan.chained != state.NONE).sum()),
                "finished": [int(each) for each in self.finished]}


def joined(tenants: Sequence[Tenant]) -> tuple[list[Gemm], np.ndarray]:
    """The products of all tenants, numbered through, and the tenant of each."""
    gemms: list[Gemm] = []
    for tenant in tenants:
        base = len(gemms)
        gemms += [replace(each, sources={base + source: reach for source, reach in each.sources.items()})
                  for each in tenant.graph.gemms]
    return gemms, np.repeat(np.arange(len(tenants)), [len(each.graph.gemms) for each in tenants])


def run(tenants: Sequence[Tenant], machine: Machine, partition: int | None = None, by_layer: bool = False,
        checked: bool = False) -> Outcome:
    """Schedule networks on a machine by first fit.

    Parameters
    ----------
    tenants : sequence of Tenant
    machine : Machine
    partition : int, optional
        Rows of X in an operation; by default as many as the array has rows.
    by_layer : bool
        Whether a product waits for all of what it reads.
    checked : bool
        Whether the schedule is gone through once more by :mod:`golden.perf.pods.check`.
    """
    partition = partition or machine.rows
    gemms, tenant = joined(tenants)
    tiles = cut(gemms, [partition] * len(gemms), machine.rows, machine.columns, by_layer)
    ranks = [(each.priority, each.arrival, number) for number, each in enumerate(tenants)]
    order = sorted(range(len(gemms)), key=lambda number: (ranks[tenant[number]], number))
    cycles = machine.round(partition)
    plan = first_fit(tiles, machine, order, [-(-tenants[each].arrival // cycles) for each in tenant])
    length = np.full(int(plan.add_round.max()) + 1, cycles, np.int64)
    outcome = Outcome(machine, tiles, plan, tenant, length, _finished(machine, tiles, plan, tenant, length))
    if checked:
        check.verify(outcome.tiles, outcome.machine, outcome.plan, outcome.length)
    return outcome


def _finished(machine: Machine, tiles: Tiles, plan: state.Schedule, tenant: np.ndarray,
              length: np.ndarray) -> np.ndarray:
    starts = np.cumsum(length) - length
    gemm = np.searchsorted(tiles.first_row, plan.add_row, "right") - 1
    ends = starts[plan.add_round] + machine.sum_cycles + tiles.partition[gemm]
    return np.array([ends[tenant[gemm] == number].max() for number in range(tenant.max() + 1)])
