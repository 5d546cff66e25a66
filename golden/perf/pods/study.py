"""The studies: what one machine does, changed in one thing at a time. Each gives rows of a table."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from ...command.workers import dask_workers
from . import catalogue, memory, power, simulate
from .fused import jobs
from .graph import Graph
from .interconnect import parse
from .machine import Machine

Row = dict[str, Any]
#: Rows and columns of arrays whose throughput is computed; of those that are simulated, too.
SIZES, SIMULATED = (8, 16, 32, 64, 128, 256, 512), (32, 64, 128, 256)
PARTITIONS = (8, 16, 32, 40, 49, 64, 96, 128)
INTERCONNECTS = ("butterfly-1", "butterfly-2", "butterfly-4", "crossbar", "benes")
BANKS, BANDWIDTHS = (8, 16, 32, 64, 128, 256, 512), (128, 256, 512, 1024)
FUSED = (1, 4, 16, 64)


@dataclass(frozen=True)
class Base:
    """What the studies start from: networks, a machine, sets of constants by name, and where simulations run."""
    graphs: tuple[Graph, ...]
    machine: Machine
    constants: dict[str, power.PodConstants]
    scheduler: str
    jobs: int = 1
    address: str | None = None
    progress: Callable[[int, int], object] = lambda done, total: None


def _all(base: Base, function: Callable[..., Any], points: Iterable[tuple]) -> list[Any]:
    calls, found = [joblib.delayed(function)(*point) for point in points], []
    with dask_workers(base.address) if base.address else nullcontext():
        for result in joblib.Parallel(base.jobs, return_as="generator")(calls):
            found.append(result)
            base.progress(len(found), len(calls))
    return found


def _cycles(graph: Graph, machine: Machine, partition: int | None = None, scheduler: str = "first-fit") -> int:
    return simulate.run([simulate.Tenant(graph)], machine, partition, scheduler=scheduler).cycles


def mean(values: Sequence[float]) -> float:
    """The harmonic mean, 0 if one of them is 0."""
    return len(values) / sum(1 / each for each in values) if all(values) else 0.0


def contention_free(graph: Graph, pods: int, rows: int, columns: int) -> int:
    """Cycles if every product ran alone, one operation a pod and round, without waiting."""
    return sum(-(-each.groups * -(-each.m // rows) * -(-each.k // rows) * -(-each.n // columns) // pods) * rows
               for each in graph.gemms)


def granularity(base: Base) -> list[Row]:
    """Harmonic mean of all networks' TOp/s within a budget of power, for arrays of every size."""
    rows: list[Row] = []
    points: list[tuple[Graph, Machine]] = []
    for name, constants in base.constants.items():
        for size in SIZES:
            pods = power.affordable(constants, size)
            if not pods:
                continue
            ideal = [contention_free(each, pods, size, size) for each in base.graphs]
            rows.append({"constants": name, "size": size, "pods": pods,
                         "tops": mean([2e-3 * each.macs * constants.ghz / cycles
                                       for each, cycles in zip(base.graphs, ideal, strict=True)]),
                         "utilisation": float(np.mean([each.macs / (cycles * pods * size * size)
                                                       for each, cycles in zip(base.graphs, ideal, strict=True)]))})
            if size in SIMULATED:
                rows[-1]["simulated_pods"] = simulated = max(1 << pods.bit_length() - 1, 2)
                points += [(each, Machine(simulated, size, size, parse("butterfly-2"))) for each in base.graphs]
    distinct = list(dict.fromkeys((graph.name, machine) for graph, machine in points))
    by_name = {graph.name: graph for graph in base.graphs}
    found = dict(zip(distinct, _all(base, _cycles, [(by_name[name], machine) for name, machine in distinct]),
                     strict=True))
    for row in rows:
        if "simulated_pods" in row:
            constants = base.constants[row["constants"]]
            machine = Machine(row["simulated_pods"], row["size"], row["size"], parse("butterfly-2"))
            scale = constants.budget_w / power.of(constants, machine).total
            row["simulated_tops"] = scale * mean([2e-3 * each.macs * constants.ghz / found[each.name, machine]
                                                  for each in base.graphs])
    return rows


def _relative(base: Base, points: Sequence[tuple[Row, Machine, int | None]]) -> list[Row]:
    """A row for each point, with the cycles of each network and the harmonic mean of their TOp/s."""
    runs = [(graph, machine, partition, base.scheduler) for _, machine, partition in points for graph in base.graphs]
    found = np.array(_all(base, _cycles, runs)).reshape(len(points), len(base.graphs))
    constants = next(iter(base.constants.values()))
    return [row | {"tops": mean([2e-3 * graph.macs * constants.ghz / cycles
                                 for graph, cycles in zip(base.graphs, each, strict=True)]),
                   "watts": power.of(constants, machine).total,
                   **{graph.name: int(cycles) for graph, cycles in zip(base.graphs, each, strict=True)}}
            for (row, machine, _), each in zip(points, found, strict=True)]


def partition(base: Base) -> list[Row]:
    """Cycles against the rows of X in an operation, the same for all layers; the adaptive scheduler chooses its own."""
    return _relative(base, [({"partition": each}, base.machine, each) for each in PARTITIONS])


def interconnect(base: Base) -> list[Row]:
    """Cycles and power of every network between pods and banks."""
    machines = {name: Machine(base.machine.pods, base.machine.rows, base.machine.columns, parse(name))
                for name in INTERCONNECTS}
    return _relative(base, [({"interconnect": name}, machine, None) for name, machine in machines.items()])


def _memories(graph: Graph, machine: Machine, scheduler: str) -> list[Row]:
    outcome = simulate.run([simulate.Tenant(graph)], machine, scheduler=scheduler)
    rows = []
    for bank in BANKS:
        for wide in BANDWIDTHS:
            traffic = memory.run(outcome.tiles, machine, outcome.plan, memory.Memory(bank * 1024, wide), outcome.cycles)
            rows.append({"network": graph.name, "bank": bank, "gigabytes": wide, "cycles": traffic.cycles,
                         "over_ideal": traffic.cycles / outcome.cycles, "weight_bytes": traffic.weight_bytes,
                         "spilled_bytes": traffic.spilled_bytes})
    return rows


def banks(base: Base) -> list[Row]:
    """Cycles against the size of banks (kB) and the DRAM's bandwidth (bytes a cycle: GB/s at 1 GHz)."""
    found = _all(base, _memories, [(graph, base.machine, base.scheduler) for graph in base.graphs])
    return [row for rows in found for row in rows]


def _together(pair: tuple[Graph, ...], machine: Machine, policy: str, waits: str) -> Row:
    tenants = [simulate.Tenant(each) for each in pair]
    alone = [simulate.run([each], machine, waits=waits, scheduler=policy).cycles for each in tenants]
    both = simulate.run(tenants, machine, waits=waits, scheduler=policy)
    return {"tenants": " + ".join(each.name for each in pair), "pods": machine.pods,
            "policy": policy + (", whole layers" if waits == "layer" else ""),
            "sequential": sum(alone), "together": both.cycles, "gain": sum(alone) / both.cycles,
            **{f"finished_{number}": int(each) for number, each in enumerate(both.finished)}}


def tenancy(base: Base) -> list[Row]:
    """Pairs of networks at once against one after the other, on 64 and on 256 pods; ``base.graphs`` are the pairs."""
    pairs = list(zip(base.graphs[::2], base.graphs[1::2], strict=True))
    points = [(pair, Machine(pods, base.machine.rows, base.machine.columns, base.machine.interconnect), *way)
              for pair in pairs for pods in (64, 256)
              for way in (("first-fit", "rows"), ("first-fit", "layer"), ("adaptive", "channels"))]
    return _all(base, _together, points)


def _fused(graph: Graph, count: int, machine: Machine) -> Row:
    alone = simulate.run([simulate.Tenant(graph)], machine).cycles
    together = simulate.run([simulate.Tenant(jobs(graph, count))], machine)
    return {"model": graph.name, "pods": machine.pods, "models": count, "serial": count * alone,
            "fused": together.cycles, "gain": count * alone / together.cycles, "utilisation": together.utilisation}


def fused(base: Base) -> list[Row]:
    """Several models as one job against one after the other, on ``base.machine`` and on two pods."""
    one = Machine(2, base.machine.rows, base.machine.columns, parse("crossbar"))
    return _all(base, _fused, [(graph, count, machine) for machine in (base.machine, one) for graph in base.graphs
                               for count in FUSED])


#: Name -> function of a :class:`Base`.
STUDIES = dict(zip(catalogue.STUDIES, (granularity, partition, interconnect, banks, tenancy, fused), strict=True))
