"""One run of the machine: networks to tiles, tiles to a schedule, and the figures of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import state
from .adaptive import adaptive
from .first_fit import first_fit
from .graph import Gemm, Graph, Sources
from .machine import Machine
from .tiling import Tiles, cut


@dataclass(frozen=True)
class Tenant:
    """A network that runs: when it arrives (cycles), and its priority; the lowest number goes first."""
    graph: Graph
    arrival: int = 0
    priority: int = 0


@dataclass(frozen=True)
class Scheduled:
    """A schedule with what it was made from.

    Attributes
    ----------
    machine : Machine
    tiles : Tiles
    plan : state.Schedule
    tenant : ndarray of int
        Of each product.
    finished : ndarray of int
        Cycle in which each tenant's last row is in its bank.
    """
    machine: Machine
    tiles: Tiles
    plan: state.Schedule
    tenant: np.ndarray
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
        """The figures of a run, by the names that its JSON has; ``finished`` in cycles, a tenant each."""
        return {"cycles": self.cycles, "rounds": len(self.plan.length), "round_cycles": int(self.plan.length.max()),
                "operations": self.tiles.operations, "utilisation": self.utilisation,
                "occupancy": self.tiles.operations / (self.machine.pods * len(self.plan.length)), "macs": self.macs,
                "additions": len(self.plan.add_a), "chained": int((self.plan.chained != state.NONE).sum()),
                "finished": [int(each) for each in self.finished]}


def _moved(sources: Sources, base: int) -> Sources:
    return {base + source: reach for source, reach in sources.items()}


def joined(tenants: Sequence[Tenant]) -> tuple[list[Gemm], np.ndarray]:
    """The products of all tenants, numbered through, and the tenant of each."""
    gemms: list[Gemm] = []
    for tenant in tenants:
        base = len(gemms)
        gemms += [replace(each, sources=_moved(each.sources, base), parts=tuple(
            (size, _moved(sources, base)) for size, sources in each.parts)) for each in tenant.graph.gemms]
    return gemms, np.repeat(np.arange(len(tenants)), [len(each.graph.gemms) for each in tenants])


def run(tenants: Sequence[Tenant], machine: Machine, partition: int | None = None, waits: str = "rows",
        scheduler: str = "first-fit", most: int = 4096, banks: str = "network") -> Scheduled:
    """Schedule networks on a machine.

    Parameters
    ----------
    tenants : sequence of Tenant
    machine : Machine
    partition : int, optional
        First fit: rows of X in an operation; by default as many as the array has rows.
    waits : str
        First fit: of :data:`golden.perf.pods.catalogue.WAITS`.
    scheduler : str
        ``first-fit`` or ``adaptive``.
    most : int
        Adaptive: rows of X that an operation may have.
    banks : str
        First fit: of :data:`golden.perf.pods.catalogue.BANKS`.
    """
    gemms, tenant = joined(tenants)
    ranks = [(each.priority, each.arrival, number) for number, each in enumerate(tenants)]
    order = sorted(range(len(gemms)), key=lambda number: (ranks[tenant[number]], number))
    partition = partition or machine.rows
    shortest = machine.round(machine.rows if scheduler == "adaptive" else partition)
    starts = [-(-tenants[each].arrival // shortest) for each in tenant]
    if scheduler == "adaptive":
        tiles, plan = adaptive(gemms, machine, order, starts, most)
    else:
        tiles = cut(gemms, [partition] * len(gemms), machine.rows, machine.columns, waits,
                    machine.pods if banks == "product" else 1)
        plan = first_fit(tiles, machine, order, starts)
    ends = state.ends(machine, tiles, plan)
    of = tenant[np.searchsorted(tiles.first_row, plan.add_row, "right") - 1]
    return Scheduled(machine, tiles, plan, tenant, np.array([ends[of == each].max() for each in range(len(tenants))]))
