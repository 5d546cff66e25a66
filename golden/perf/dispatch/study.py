"""Figures of the dispatcher for one setting, and sweeps around it: loads, timeouts, training beside inference."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ...spec.dispatch import SHARE_WHOLE, Policy
from ..constants import published
from ..space import best, sweep
from ..workloads import WORKLOADS
from . import arrivals
from .colocation import demand, share
from .events import simulate

LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SWEPT = ("priority", "greedy", "alternate", "limited")
TIMEOUTS = (0, 0.25, 0.5, 1, 2, 3, 4, 6, 8)
TIMEOUT_LOADS = (0.1, 0.5, 0.9)
#: Bandwidths of the DRAM, bytes a second; and the workloads that train beside themselves.
BANDWIDTHS = tuple(25e9 * 2**n for n in range(7))
TRAINED = ("lstm", "resnet50")
#: Requests of one point, at most.
POINT = 200_000


def policy_of(name: str, batch: int, timeout: float, share: int) -> Policy:
    """A policy by its name; ``timeout`` in times of a batch, ``share`` in sixteenths of the time."""
    return Policy(batch=batch, timeout=0 if name == "greedy" else timeout, priority=name != "alternate",
                  training=name != "inference", share=share if name == "limited" else SHARE_WHOLE)


def served(policy: str, quantum: float) -> float:
    """The load from which on the queue grows without end: where batches are full and a policy of turns runs a quantum
    (in times of a batch) after each."""
    return 1 / (1 + quantum) if policy == "alternate" else 1.0


def run_setting(setting: dict[str, Any], times: np.ndarray | None = None) -> dict[str, float]:
    """Simulate one setting; its figures by name."""
    if times is None:
        rate = setting["load"] * setting["batch"]
        times = arrivals.times(setting["arrivals"], setting["requests"], rate, setting["seed"])
    policy = policy_of(setting["policy"], setting["batch"], setting["timeout"], setting["share"])
    outcome = simulate(times, policy, 1.0, setting["quantum"], setting["depth"])
    return {"p50": outcome.quantile(0.5), "p99": outcome.quantile(0.99), "max": float(outcome.latency.max()),
            "training": outcome.training / outcome.total, "fill": float(outcome.fills.mean()) / setting["batch"],
            "batches": len(outcome.fills), "requests": len(times)}


def run(setting: dict[str, Any], console: Console | None = None) -> dict[str, list[dict[str, Any]]]:
    """All sweeps around one setting.

    Parameters
    ----------
    setting : dict
        As of :func:`golden.perf.command.prepare_dispatch`.
    console : rich.console.Console, optional
        Shows a progress bar.

    Returns
    -------
    dict
        ``loads`` and ``timeouts``: a row of figures a point; ``training``: a row for each workload, load and bandwidth.
    """
    from rich.progress import track

    base = setting | {"requests": min(setting["requests"], POINT)}
    points = [("loads", {"policy": name, "load": load}) for name in SWEPT for load in LOADS]
    points += [("timeouts", {"policy": "priority", "timeout": timeout, "load": load})
               for load in TIMEOUT_LOADS for timeout in TIMEOUTS]
    result: dict[str, list[dict[str, Any]]] = {"loads": [], "timeouts": []}
    steps = track(points, "sweep", console=console, transient=True) if console else points
    for kind, change in steps:
        result[kind].append(change | run_setting(base | change))
    result["training"] = _training(result["loads"])
    return result


def _training(loads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Training beside inference over training alone, on the HBFP8 design of the most throughput within 500 us."""
    constants, _ = published("hbfp8")
    design = best(sweep(constants, WORKLOADS["lstm"][0]), 500)
    assert design is not None, "published constants have a design within 500 us"
    rows: list[dict[str, Any]] = []
    for name in TRAINED:
        products = WORKLOADS[name][0]
        own, = sweep(constants, products, [design.rows], [design.ghz])
        seconds = own.latency_us * 1e-6
        wants = demand(products, design.rows, constants.element_bytes, seconds)
        for row in loads:
            if row["policy"] == "priority":
                rows += [{"workload": name, "load": row["load"], "gigabytes": bandwidth / 1e9,
                          "speed": share(wants, bandwidth, row["load"], row["training"])} for bandwidth in BANDWIDTHS]
    return rows


def write(result: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Write the sweeps as CSV and as a picture."""
    from hbfp import files

    from .. import pictures

    columns = ("sweep", "policy", "load", "timeout", "p50", "p99", "max", "training", "fill")
    files.write_csv(folder / "dispatch.csv", columns,
                    [{"sweep": kind, **row} for kind in ("loads", "timeouts") for row in result[kind]])
    pictures.dispatch(folder / "dispatch.png", result)
